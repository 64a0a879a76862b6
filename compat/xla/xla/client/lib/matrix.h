// XLA's spelling of matrices.
#pragma once
#include "xla/lamella_names.h"
