// XLA's spelling of comparisons.
#pragma once
#include "xla/lamella_names.h"
