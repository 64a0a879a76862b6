// XLA's spelling of arrays.
#pragma once
#include "xla/lamella_names.h"
