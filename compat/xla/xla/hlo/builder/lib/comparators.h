// XLA's names for comparators.
#pragma once
#include "xla/lamella_names.h"
