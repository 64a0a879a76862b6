// c10::BFloat16.
#pragma once
#include <c10/lamella_names.h>
#include "lamella/core/half.h"
