// XLA's names for factories of layouts.
#pragma once
#include "xla/lamella_names.h"
