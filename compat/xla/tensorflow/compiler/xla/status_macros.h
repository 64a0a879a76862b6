// XLA's names for macros that return errors.
#pragma once
#include "xla/lamella_status.h"
