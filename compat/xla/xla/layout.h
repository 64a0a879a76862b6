// XLA's spelling of layouts.
#pragma once
#include "xla/lamella_names.h"
