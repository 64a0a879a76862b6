// XLA's spelling of shapes.
#pragma once
#include "xla/lamella_names.h"
