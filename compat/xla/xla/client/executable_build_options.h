// XLA's names for compile options.
#pragma once
#include "xla/lamella_names.h"
