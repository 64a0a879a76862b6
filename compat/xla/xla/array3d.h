// XLA's names for arrays of three dimensions.
#pragma once
#include "xla/lamella_names.h"
