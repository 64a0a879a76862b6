// Wrapper tensors and the hooks of the vmap layer: Note [Batched tensors, seen from elsewhere].
#include "lamella/core/wrapper.h"

#include "lamella/core/dual_hook.h"
#include "lamella/core/error.h"

namespace lamella {
namespace {

BatchingHooks batching;
ExposeDual exposing = nullptr;

}  // namespace

void set_batching_hooks(const BatchingHooks& value) { batching = value; }
const BatchingHooks& batching_hooks() { return batching; }

void set_expose_dual(ExposeDual hook) { exposing = hook; }
ExposeDual expose_dual() { return exposing; }

namespace detail {

void throw_batched_view() {
  throw Error(
      "view: expected a tensor with memory of its own, got a batched one; a kernel that makes "
      "views "
      "itself cannot run on batched tensors");
}

TensorBase make_detached_batch(const lamella_tensor* b) {
  constexpr uint32_t kept = LAMELLA_TENSOR_CONJ | LAMELLA_TENSOR_NEG | LAMELLA_TENSOR_INFERENCE;
  TensorBase value = make_detached(TensorBase::borrow(wrapped(b)));
  auto dims = static_cast<size_t>(b->ndim);
  TensorBase made =
      make_wrapper({b->sizes, dims}, {b->strides, dims}, static_cast<ScalarType>(b->scalar_type),
                   Device(static_cast<DeviceType>(b->device_type), b->device_index),
                   b->key_set & ~kGradientBits);
  auto* t = TensorImpl::of(made);
  t->layout = b->layout;
  t->flags |= b->flags & kept;
  t->reserved = b->reserved;
  t->base = static_cast<TensorImpl*>(value.unsafe_release());
  return made;
}

}  // namespace detail
}  // namespace lamella
