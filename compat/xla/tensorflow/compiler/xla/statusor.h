// XLA's names for a value or an error.
#pragma once
#include "xla/lamella_status.h"
