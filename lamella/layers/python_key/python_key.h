// The key Python: routes calls on some tensors or threads to a handler written in Python.
// Internal to Lamella; python/src/python_key.cpp has the kernel.
//
// Note [The key Python]
//   A tensor whose class has a handler carries the functionality Python; a thread with a mode on
//   includes it in every call. It comes below autograd and all other layers, above the backends: a
//   handler sees the operators that would reach a backend (for composite ones the operators that
//   they call) and those of their gradients. While a handler runs, all keys above this one are
//   excluded on its thread, so that its calls are not recorded, cast or batched a second time. Lazy
//   conjugates and negatives are the exception, as a tensor inside of a wrapper may be one.
#pragma once
#include "lamella/core/array_ref.h"
#include "lamella/core/tensor_base.h"
#include "lamella/dispatch/dispatch_key.h"

namespace lamella::python_key {

inline constexpr uint64_t kBit =
    lamella::detail::functionality_bit(lamella::detail::Functionality::Python);
// The functionalities above it that a handler's calls do not meet. A thread must meet ThreadInit
// all the same.
inline constexpr uint64_t kAbove =
    ~((kBit << 1) - 1) &
    ~(lamella::detail::functionality_bit(lamella::detail::Functionality::ThreadInit) |
      lamella::detail::functionality_bit(lamella::detail::Functionality::Conjugate) |
      lamella::detail::functionality_bit(lamella::detail::Functionality::Negative));

// Registers the boxed kernel that serves the key for all operators; throws if that fails.
LAMELLA_PRIVATE_API void register_kernel(lamella_boxed_function kernel);

// A tensor that has no memory (LAMELLA_TENSOR_WRAPPER), of class instances that hold other tensors.
// Its storage is empty, and counts versions. Strides are in elements; the sizes must not be
// negative.
LAMELLA_PRIVATE_API TensorBase make_wrapper(IntArrayRef sizes, IntArrayRef strides,
                                            int64_t storage_offset, ScalarType dtype,
                                            Device device);

// Makes `tensor` share the storage of `of`, and with `is_view` a view of it, as autograd knows
// views. Both are wrappers.
LAMELLA_PRIVATE_API void share_storage(lamella_tensor* tensor, lamella_tensor* of, bool is_view);

// What a view made while autograd was excluded lacks, where its call is not below autograd: Note
// [Views know their base] in tensor_impl.h.
LAMELLA_PRIVATE_API void mark_view(lamella_tensor* tensor);

}  // namespace lamella::python_key
