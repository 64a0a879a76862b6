// XLA's spelling of arrays of two dimensions.
#pragma once
#include "xla/lamella_names.h"
