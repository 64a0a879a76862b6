// XLA's names for buffers.
#pragma once
#include "xla/lamella_names.h"
