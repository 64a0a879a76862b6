// XLA's names for factories of shapes.
#pragma once
#include "xla/lamella_names.h"
