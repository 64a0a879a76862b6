// at::TensorAccessor.
#pragma once
#include <c10/lamella_names.h>
#include "lamella/core/accessor.h"
