// XLA's names for constants of each type.
#pragma once
#include "xla/lamella_names.h"
