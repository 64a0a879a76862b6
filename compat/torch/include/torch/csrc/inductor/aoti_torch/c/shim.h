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

namespace lamella::detail {
template <class T>
AOTITorchError shim_result(T* result, T value) {
  *result = value;
  return AOTI_TORCH_SUCCESS;
}
}  // namespace lamella::detail

inline AOTITorchError aoti_torch_delete_tensor_object(AtenTensorHandle tensor) {
  lamella::TensorBase::adopt(tensor);
  return AOTI_TORCH_SUCCESS;
}
inline AOTITorchError aoti_torch_get_data_ptr(AtenTensorHandle tensor, void** result) {
  return lamella::detail::shim_result(result, lamella::TensorBase::borrow(tensor).data_ptr());
}
inline AOTITorchError aoti_torch_get_dim(AtenTensorHandle tensor, int64_t* result) {
  return lamella::detail::shim_result(result, int64_t{tensor->ndim});
}
inline AOTITorchError aoti_torch_get_numel(AtenTensorHandle tensor, int64_t* result) {
  return lamella::detail::shim_result(result, tensor->numel);
}
inline AOTITorchError aoti_torch_get_storage_offset(AtenTensorHandle tensor, int64_t* result) {
  return lamella::detail::shim_result(result, tensor->storage_offset);
}
inline AOTITorchError aoti_torch_get_sizes(AtenTensorHandle tensor, int64_t** result) {
  return lamella::detail::shim_result(result, const_cast<int64_t*>(tensor->sizes));
}
inline AOTITorchError aoti_torch_get_strides(AtenTensorHandle tensor, int64_t** result) {
  return lamella::detail::shim_result(result, const_cast<int64_t*>(tensor->strides));
}
inline AOTITorchError aoti_torch_get_size(AtenTensorHandle tensor, int64_t d, int64_t* result) {
  return lamella::detail::guarded([&] { *result = lamella::TensorBase::borrow(tensor).size(d); });
}
inline AOTITorchError aoti_torch_get_stride(AtenTensorHandle tensor, int64_t d, int64_t* result) {
  return lamella::detail::guarded([&] { *result = lamella::TensorBase::borrow(tensor).stride(d); });
}
inline AOTITorchError aoti_torch_get_dtype(AtenTensorHandle tensor, int32_t* result) {
  return lamella::detail::shim_result(result, int32_t{tensor->scalar_type});
}
inline AOTITorchError aoti_torch_get_device_type(AtenTensorHandle tensor, int32_t* result) {
  return lamella::detail::shim_result(result, int32_t{tensor->device_type});
}
inline AOTITorchError aoti_torch_get_device_index(AtenTensorHandle tensor, int32_t* result) {
  return lamella::detail::shim_result(result, int32_t{tensor->device_index});
}
inline AOTITorchError aoti_torch_is_contiguous(AtenTensorHandle tensor, bool* result) {
  return lamella::detail::shim_result(result, (tensor->flags & LAMELLA_TENSOR_CONTIGUOUS) != 0);
}
inline AOTITorchError aoti_torch_is_defined(AtenTensorHandle tensor, bool* result) {
  return lamella::detail::shim_result(result, tensor != nullptr);
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
