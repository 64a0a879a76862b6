// Operators along lines of elements: reductions, scans, softmax, norms, losses.
#pragma once
#include "lamella/cuda/backend.h"

namespace lamella::cuda {

void register_lines(Library& aten);

}  // namespace lamella::cuda
