// XLA's names for comparisons.
#pragma once
#include "xla/lamella_names.h"
