// from_blob: tensors over memory that the caller owns.
#pragma once
#include "lamella/api/tensor.h"

namespace lamella {

namespace detail {
// Owns a deleter of any type until the storage ends.
template <class D>
void run_deleter(void* context) {
  auto* held = static_cast<std::pair<D, void*>*>(context);
  held->first(held->second);
  delete held;
}
LAMELLA_LAZY inline Tensor make_from_blob(void* data, IntArrayRef sizes, const int64_t* strides,
                                          void (*deleter)(void*), void* context,
                                          const TensorOptions& options) {
  lamella_tensor* result = nullptr;
  Device device = options.device();
  check(lamella_tensor_from_blob(data, static_cast<int32_t>(sizes.size()), sizes.data(), strides,
                                 static_cast<uint8_t>(options.dtype().toScalarType()),
                                 static_cast<uint8_t>(device.type()), device.index(), deleter,
                                 context, &result));
  return with_requires_grad(Tensor(TensorBase::adopt(result)), options);
}
inline void check_strides(IntArrayRef sizes, IntArrayRef strides) {
  if (LAMELLA_LIKELY(sizes.size() == strides.size())) return;
  throw_printf(LAMELLA_ERROR, "from_blob: expected as many strides as sizes, %zu, got %zu",
               sizes.size(), strides.size());
}
}  // namespace detail

// A tensor over `data`, which must outlive it: `sizes` elements of options' dtype (float32 by
// default), contiguous or with strides counted in elements.
LAMELLA_LAZY inline Tensor from_blob(void* data, IntArrayRef sizes,
                                     const TensorOptions& options = {}) {
  return detail::make_from_blob(data, sizes, nullptr, nullptr, nullptr, options);
}
LAMELLA_LAZY inline Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides,
                                     const TensorOptions& options = {}) {
  detail::check_strides(sizes, strides);
  return detail::make_from_blob(data, sizes, strides.data(), nullptr, nullptr, options);
}
// `deleter(data)` runs once when the last alias of the memory is gone.
template <class D, class = std::enable_if_t<std::is_invocable_v<D&, void*>>>
Tensor from_blob(void* data, IntArrayRef sizes, D deleter, const TensorOptions& options = {}) {
  auto* context = new std::pair<D, void*>(std::move(deleter), data);
  return detail::make_from_blob(data, sizes, nullptr, &detail::run_deleter<D>, context, options);
}
template <class D, class = std::enable_if_t<std::is_invocable_v<D&, void*>>>
Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, D deleter,
                 const TensorOptions& options = {}) {
  detail::check_strides(sizes, strides);
  auto* context = new std::pair<D, void*>(std::move(deleter), data);
  return detail::make_from_blob(data, sizes, strides.data(), &detail::run_deleter<D>, context,
                                options);
}

}  // namespace lamella
