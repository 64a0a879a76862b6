// XLA's names for loops.
#pragma once
#include "xla/lamella_names.h"
