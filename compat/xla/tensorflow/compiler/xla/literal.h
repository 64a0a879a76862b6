// XLA's names for literals.
#pragma once
#include "xla/lamella_names.h"
