// XLA's spelling of element types.
#pragma once
#include "xla/lamella_names.h"
