// XLA's names for elementwise functions.
#pragma once
#include "xla/lamella_names.h"
