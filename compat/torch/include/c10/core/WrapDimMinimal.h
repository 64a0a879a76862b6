// c10::maybe_wrap_dim.
#pragma once
#include <c10/lamella_names.h>

#include "lamella/core/wrap_dim.h"
