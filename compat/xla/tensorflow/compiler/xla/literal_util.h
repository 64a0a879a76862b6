// XLA's names for factories of literals.
#pragma once
#include "xla/lamella_names.h"
