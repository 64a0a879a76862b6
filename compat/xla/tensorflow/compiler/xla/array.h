// XLA's names for arrays.
#pragma once
#include "xla/lamella_names.h"
