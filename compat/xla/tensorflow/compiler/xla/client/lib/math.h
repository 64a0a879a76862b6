// XLA's spelling of functions on each element.
#pragma once
#include "xla/lamella_names.h"
