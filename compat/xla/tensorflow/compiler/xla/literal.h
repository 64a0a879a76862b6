// XLA's spelling of literals.
#pragma once
#include "xla/lamella_names.h"
