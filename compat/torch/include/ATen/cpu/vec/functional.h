// at::vec::map, at::vec::reduce_all and similar functions.
#pragma once
#include <ATen/cpu/vec/vec.h>

#include "lamella/kernels/cpu/vectorized_functional.h"
