// XLA's names for layouts.
#pragma once
#include "xla/lamella_names.h"
