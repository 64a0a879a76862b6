// XLA's spelling of what makes literals.
#pragma once
#include "xla/lamella_names.h"
