// XLA's names for run options.
#pragma once
#include "xla/lamella_names.h"
