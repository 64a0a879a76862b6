// XLA's names for element types.
#pragma once
#include "xla/lamella_names.h"
