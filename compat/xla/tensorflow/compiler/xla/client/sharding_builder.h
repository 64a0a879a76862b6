// XLA's spelling of shardings.
#pragma once
#include "xla/lamella_names.h"
