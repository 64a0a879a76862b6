// Gathers and scatters by index tensors.
#pragma once
#include "lamella/cuda/call.h"
#include "lamella/cuda/families.h"
#include "lamella/cuda/kernels/index.h"

namespace lamella::cuda {

// An index tensor of a call, with its strides in the walk's shape.
struct IndexOperand {
  Tensor index;
  Sizes strides;
  int64_t size, stride;  // of the indexed dimension, in elements
  bool wraps;
};
// Elements that lie beside the indices (`beside`), and those that are indexed (`base`, with strides
// of 0 along the indexed dimensions).
struct Indexing {
  const char* op;
  int device;
  ScalarType dtype;
  Sizes sizes;
  Strided beside, base;
  Few<IndexOperand, kMostIndices> indices;
  IndexText text = IndexText::kRange;
  std::optional<int64_t> skip = std::nullopt;  // an index that is passed over
};
// beside = base[indices]; base[indices] = beside; the same combined with what is there. False:
// kernels do not serve the call.
bool run_gather(const Indexing& p);
bool run_scatter(const Indexing& p);
bool run_combine(Indexing p, Combine how);

}  // namespace lamella::cuda
