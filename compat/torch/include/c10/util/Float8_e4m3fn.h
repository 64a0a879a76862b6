// c10::Float8_e4m3fn.
#pragma once
#include <c10/lamella_names.h>
#include "lamella/core/half.h"
