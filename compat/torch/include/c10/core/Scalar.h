// c10::Scalar.
#pragma once
#include <c10/core/ScalarType.h>
#include "lamella/core/scalar.h"
