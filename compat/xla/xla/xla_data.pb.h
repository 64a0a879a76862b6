// XLA's names for types, numbers of dimensions and options.
#pragma once
#include "xla/lamella_names.h"
