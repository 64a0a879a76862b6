// c10::Scalar.
#pragma once
#include <c10/lamella_names.h>
#include "lamella/core/scalar.h"
