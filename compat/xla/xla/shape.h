// XLA's names for shapes.
#pragma once
#include "xla/lamella_names.h"
