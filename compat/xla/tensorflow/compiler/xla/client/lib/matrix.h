// XLA's names for matrices.
#pragma once
#include "xla/lamella_names.h"
