// XLA's spelling of computations of two scalars.
#pragma once
#include "xla/lamella_names.h"
