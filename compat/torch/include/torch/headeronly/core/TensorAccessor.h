// torch::headeronly::HeaderOnlyTensorAccessor.
#pragma once
#include <ATen/core/TensorAccessor.h>
#include <torch/headeronly/lamella_names.h>

namespace torch::headeronly {
template <class T, size_t N, template <class> class PtrTraits = lamella::DefaultPtrTraits,
          class Index = int64_t>
using HeaderOnlyTensorAccessor = lamella::TensorAccessor<T, N, PtrTraits, Index>;
}
