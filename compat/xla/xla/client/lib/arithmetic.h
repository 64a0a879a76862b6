// XLA's names for computations on two scalars.
#pragma once
#include "xla/lamella_names.h"
