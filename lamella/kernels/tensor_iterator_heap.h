// The part of an iterator that is allocated on the heap only when needed. Internal.
#pragma once
#include <vector>

#include "lamella/kernels/tensor_iterator.h"

namespace lamella {

struct TensorIteratorBase::Heap {
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  // Tensors that the iterator holds: outputs it made, temporaries, operands given as owned.
  std::vector<TensorBase> owned;
  // Outputs that were replaced by temporaries: operand number and original.
  std::vector<std::pair<int, TensorBase>> originals;
};

inline TensorIteratorBase::Heap& TensorIteratorBase::heap() {
  if (heap_ == nullptr) heap_ = new Heap;
  return *heap_;
}

}  // namespace lamella
