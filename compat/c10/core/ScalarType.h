// c10::ScalarType, at::kFloat, ….
#pragma once
#include <c10/lamella_names.h>
#include "lamella/core/scalar_type.h"
