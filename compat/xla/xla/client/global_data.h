// XLA's spelling of values that a client holds.
#pragma once
#include "xla/lamella_names.h"
