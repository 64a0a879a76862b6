// c10::impl::cow: no memory is copied at the first write, since at::_lazy_clone copies at once.
#pragma once
#include <c10/core/Allocator.h>

namespace c10::impl::cow {
template <class Pointer>
constexpr bool is_cow_data_ptr(const Pointer&) {
  return false;
}
}  // namespace c10::impl::cow
