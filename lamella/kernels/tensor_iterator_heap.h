// What an iterator keeps on the heap, where it needs to. Internal.
#pragma once
#include <vector>

#include "lamella/kernels/tensor_iterator.h"

namespace lamella {

struct TensorIteratorBase::Heap {
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  // Tensors that the iterator holds: outputs it made, temporaries, operands given as owned.
  std::vector<TensorBase> owned;
  // Outputs that temporaries stand for: operand and original.
  std::vector<std::pair<int, TensorBase>> originals;
};

inline TensorIteratorBase::Heap& TensorIteratorBase::heap() {
  if (heap_ == nullptr) heap_ = new Heap;
  return *heap_;
}

}  // namespace lamella
