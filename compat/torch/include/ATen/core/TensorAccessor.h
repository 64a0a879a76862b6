// at::TensorAccessor and its packed form.
#pragma once
#include <ATen/core/TensorBase.h>

#include "lamella/core/packed_accessor.h"

namespace at {
template <class T, size_t N, template <class> class PtrTraits = lamella::DefaultPtrTraits>
using PackedTensorAccessor32 = lamella::PackedTensorAccessor<T, N, PtrTraits, int32_t>;
template <class T, size_t N, template <class> class PtrTraits = lamella::DefaultPtrTraits>
using PackedTensorAccessor64 = lamella::PackedTensorAccessor<T, N, PtrTraits, int64_t>;
template <class T, size_t N, template <class> class PtrTraits = lamella::DefaultPtrTraits,
          class Index = int64_t>
using GenericPackedTensorAccessor = lamella::PackedTensorAccessor<T, N, PtrTraits, Index>;
template <class T, size_t N, template <class> class PtrTraits = lamella::DefaultPtrTraits,
          class Index = int64_t>
using GenericPackedTensorAccessorBase = lamella::PackedTensorAccessorBase<T, N, PtrTraits, Index>;
}  // namespace at
