// XLA's spelling of arrays of four dimensions.
#pragma once
#include "xla/lamella_names.h"
