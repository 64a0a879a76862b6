// XLA's names for shardings.
#pragma once
#include "xla/lamella_names.h"
