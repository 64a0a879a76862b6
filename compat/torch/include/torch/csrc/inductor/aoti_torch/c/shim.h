// The C functions beneath PyTorch's stable interface, as far as kernels call them. Each returns 0,
// or an error status; lamella_error_text() then has the message.
#pragma once
#include <ATen/core/Tensor.h>

#include "lamella/dispatch/word_kernel.h"

using AtenTensorHandle = lamella_tensor*;
using AOTITorchError = int32_t;
#define AOTI_TORCH_SUCCESS 0
#define AOTI_TORCH_FAILURE 1
#define TORCH_ERROR_CODE_CHECK(call) ::lamella::detail::check(call)
#define AOTI_TORCH_ERROR_CODE_CHECK(call) TORCH_ERROR_CODE_CHECK(call)

inline AOTITorchError aoti_torch_delete_tensor_object(AtenTensorHandle tensor) {
  lamella::TensorBase::adopt(tensor);
  return AOTI_TORCH_SUCCESS;
}
// Defines a function that gives a property of `tensor`.
#define LAMELLA_SHIM(name, Result, value)                                            \
  inline AOTITorchError aoti_torch_##name(AtenTensorHandle tensor, Result* result) { \
    return lamella::detail::guarded([&] { *result = value; });                       \
  }
LAMELLA_SHIM(get_data_ptr, void*, lamella::TensorBase::borrow(tensor).data_ptr())
LAMELLA_SHIM(get_dim, int64_t, tensor->ndim)
LAMELLA_SHIM(get_numel, int64_t, tensor->numel)
LAMELLA_SHIM(get_storage_offset, int64_t, tensor->storage_offset)
LAMELLA_SHIM(get_sizes, int64_t*, const_cast<int64_t*>(tensor->sizes))
LAMELLA_SHIM(get_strides, int64_t*, const_cast<int64_t*>(tensor->strides))
LAMELLA_SHIM(get_dtype, int32_t, tensor->scalar_type)
LAMELLA_SHIM(get_device_type, int32_t, tensor->device_type)
LAMELLA_SHIM(get_device_index, int32_t, tensor->device_index)
LAMELLA_SHIM(is_contiguous, bool, (tensor->flags & LAMELLA_TENSOR_CONTIGUOUS) != 0)
LAMELLA_SHIM(is_defined, bool, tensor != nullptr)
#undef LAMELLA_SHIM
inline AOTITorchError aoti_torch_get_size(AtenTensorHandle tensor, int64_t d, int64_t* result) {
  return lamella::detail::guarded([&] { *result = lamella::TensorBase::borrow(tensor).size(d); });
}
inline AOTITorchError aoti_torch_get_stride(AtenTensorHandle tensor, int64_t d, int64_t* result) {
  return lamella::detail::guarded([&] { *result = lamella::TensorBase::borrow(tensor).stride(d); });
}
inline int32_t aoti_torch_device_type_cpu() { return 0; }
inline int32_t aoti_torch_dtype_float32() { return static_cast<int32_t>(lamella::kFloat); }
inline int32_t aoti_torch_dtype_float64() { return static_cast<int32_t>(lamella::kDouble); }
inline int32_t aoti_torch_dtype_int32() { return static_cast<int32_t>(lamella::kInt); }
inline int32_t aoti_torch_dtype_int64() { return static_cast<int32_t>(lamella::kLong); }
// Calls an operator: `stack` holds the arguments as words, and receives the results.
inline AOTITorchError aoti_torch_call_dispatcher(const char* name, const char* overload,
                                                 lamella::Word* stack) {
  return lamella::detail::guarded([&] { lamella::call_words(name, overload, stack); });
}
