// XLA's spelling of options of compiling.
#pragma once
#include "xla/lamella_names.h"
