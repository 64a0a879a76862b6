// XLA's spelling of constants of each type.
#pragma once
#include "xla/lamella_names.h"
