// XLA's spelling of built computations.
#pragma once
#include "xla/lamella_names.h"
