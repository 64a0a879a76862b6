// XLA's names for arrays of four dimensions.
#pragma once
#include "xla/lamella_names.h"
