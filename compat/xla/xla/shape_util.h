// XLA's spelling of what makes shapes.
#pragma once
#include "xla/lamella_names.h"
