// XLA's spelling of comparators.
#pragma once
#include "xla/lamella_names.h"
