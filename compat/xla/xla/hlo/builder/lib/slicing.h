// XLA's names for slices of the last dimensions.
#pragma once
#include "xla/lamella_names.h"
