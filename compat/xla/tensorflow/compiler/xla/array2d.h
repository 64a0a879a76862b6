// XLA's names for arrays of two dimensions.
#pragma once
#include "xla/lamella_names.h"
