// XLA's spelling of arrays of three dimensions.
#pragma once
#include "xla/lamella_names.h"
