// XLA's names of numbers.
#pragma once
#include "xla/types.h"
