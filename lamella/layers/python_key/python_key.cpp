// Registers the kernel of the key Python, and makes the tensors that carry it.
#include "lamella/layers/python_key/python_key.h"

#include "lamella/abi/autograd.h"
#include "lamella/core/error.h"
#include "lamella/core/tensor_impl.h"
#include "lamella/dispatch/layer_fallback.h"

namespace lamella::python_key {

void register_kernel(lamella_boxed_function boxed) {
  register_layer_fallback(DispatchKey::Python, boxed, __FILE__, __LINE__);
}

TensorBase make_wrapper(IntArrayRef sizes, IntArrayRef strides, int64_t storage_offset,
                        ScalarType dtype, Device device) {
  LAMELLA_CHECK_VALUE(sizes.size() == strides.size(), "_make_wrapper_subclass: expected ",
                      sizes.size(), " strides, got ", strides.size());
  LAMELLA_CHECK(sizes.size() <= 64, "_make_wrapper_subclass: expected at most 64 dimensions, got ",
                sizes.size());
  checked_numel(sizes, "_make_wrapper_subclass");
  bool inference = (lamella_thread.modes & LAMELLA_MODE_INFERENCE) != 0;
  Storage* storage = make_foreign_storage(nullptr, 0, device, nullptr, nullptr);
  TensorBase made = make_tensor(storage, sizes, strides, storage_offset, dtype,
                                default_key_set(device.type(), inference) | kBit);
  made.impl()->flags |=
      LAMELLA_TENSOR_WRAPPER | (inference ? uint32_t{LAMELLA_TENSOR_INFERENCE} : 0u);
  return made;
}

void share_storage(lamella_tensor* tensor, lamella_tensor* of, bool is_view) {
  auto *t = static_cast<TensorImpl*>(tensor), *source = static_cast<TensorImpl*>(of);
  if (t == source || t->storage == source->storage || source->storage == nullptr) return;
  auto dims = static_cast<size_t>(t->ndim);
  std::vector<int64_t> sizes(t->sizes, t->sizes + dims), strides(t->strides, t->strides + dims);
  storage_retain(source->storage);
  set_storage(t, source->storage, sizes, strides, t->storage_offset);
  if (!is_view) return;
  TensorImpl* base = source->base != nullptr ? source->base : source;
  detail::retain(base);
  t->base = base;
  storage_release(t->storage);  // the base owns it
}

void mark_view(lamella_tensor* tensor) {
  auto* t = static_cast<TensorImpl*>(tensor);
  auto dtype = static_cast<ScalarType>(t->scalar_type);
  if (t->base == nullptr || (t->flags & LAMELLA_TENSOR_INFERENCE) != 0 ||
      (lamella_thread.excluded & kRequiresGradBits) != 0 ||
      !(is_floating_point(dtype) || is_complex(dtype))) {
    return;
  }
  t->key_set |= kRequiresGradBits;
}

}  // namespace lamella::python_key
