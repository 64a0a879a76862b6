// XLA's names for built computations.
#pragma once
#include "xla/lamella_names.h"
