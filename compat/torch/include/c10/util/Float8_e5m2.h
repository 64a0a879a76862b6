// c10::Float8_e5m2.
#pragma once
#include <c10/lamella_names.h>
#include "lamella/core/half.h"
