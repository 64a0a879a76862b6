// c10::complex.
#pragma once
#include <c10/lamella_names.h>
#include "lamella/core/complex.h"
