// The lines of tensors along a dimension.
#include "lamella/kernels/cpu/ordering.h"

namespace lamella::native {

Lines::Lines(std::initializer_list<const Tensor*> tensors, int64_t dim, int64_t skipped) {
  const Tensor& self = **tensors.begin();
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (d == skipped) continue;
    if (d == dim) {
      size_ = self.size(d);
      continue;
    }
    sizes_.push_back(self.size(d));
    count_ *= self.size(d);
  }
  size_t t = 0;
  for (const Tensor* tensor : tensors) {
    along_[t] = tensor->dim() == 0 ? 1 : tensor->strides()[static_cast<size_t>(dim)];
    for (int64_t d = 0; d < self.dim(); ++d) {
      if (d != dim && d != skipped)
        strides_[t].push_back(tensor->strides()[static_cast<size_t>(d)]);
    }
    ++t;
  }
  for (; t < kMaxTensors; ++t) strides_[t] = Dims(sizes_.size(), 0);
}

}  // namespace lamella::native
