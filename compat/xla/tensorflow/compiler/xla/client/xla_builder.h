// XLA's names for the builder.
#pragma once
#include "xla/lamella_names.h"
