// XLA's spelling of the builder.
#pragma once
#include "xla/lamella_names.h"
