// XLA's names for numbers.
#pragma once
#include "xla/types.h"
