// XLA's spelling of loops.
#pragma once
#include "xla/lamella_names.h"
