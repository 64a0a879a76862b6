// Mixed precision: regions of autocast, and the casts that kernels for the key Autocast make.
#pragma once
#include "lamella/layers/autocast/autocast.h"
