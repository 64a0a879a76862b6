// TensorImpl: a complete tensor: the public header of abi.h and the fields that only Lamella reads.
// Internal: for the core, the kernels that make results and views, and the layers.
#pragma once
#include <cstddef>
#include <cstdint>

#include "lamella/abi/abi.h"
#include "lamella/core/memory_format.h"
#include "lamella/core/storage.h"
#include "lamella/core/tensor_base.h"

namespace lamella {

// Note [Views know their base]
//   A view keeps its base alive instead of the storage: one counter for both. `base` is always the
//   tensor that the first view was taken of, never a view itself, and it owns the storage that its
//   views point to. A base that gets another storage while it has views parks the old one until it
//   ends. Through `base`, autograd finds the tensors that a write through a view affects, so making
//   a view needs no call into the autograd layer. Views of floating-point and complex tensors made
//   while gradients are recorded carry AutogradRequired, since a later write may give their base a
//   history. Views made under no_grad of a tensor with gradients are leaves that require gradients,
//   with LAMELLA_TENSOR_NO_GRAD_VIEW, so that a later write to them is noticed. Detached aliases
//   share the storage and have no base.
//
// Sizes and strides of up to 5 dimensions lie in the object, longer ones in a separate block.
struct alignas(64) TensorImpl : lamella_tensor {
  static constexpr int kInlineDims = 5;

  int64_t inline_sizes[kInlineDims];
  int64_t inline_strides[kInlineDims];
  uint8_t heap_dims;   // capacity of the block, 0: none
  uint8_t has_parked;  // former storages are parked
  // Note [Who counts writes]; 0: the storage counts. A view's counter is owned by its base.
  uint32_t version_counter;
  TensorImpl* base;  // owned; the tensor that this one is a view of (of a wrapper under vmap:
                     // what it wraps), NULL: none

  static TensorImpl* of(const TensorBase& tensor) {
    return static_cast<TensorImpl*>(tensor.impl());
  }
  // The size of the block that holds `dims` sizes and as many strides.
  static size_t heap_bytes(int32_t dims) { return static_cast<size_t>(dims) * 2 * sizeof(int64_t); }
  int64_t* mutable_sizes() { return const_cast<int64_t*>(sizes); }
  int64_t* mutable_strides() { return const_cast<int64_t*>(strides); }
};
static_assert(sizeof(TensorImpl) == 192);

// ---- Making tensors. Results are owned by the caller. ----

// Uninitialised. Sizes must not be negative; errors begin with "empty: ".
TensorBase make_empty(IntArrayRef sizes, ScalarType dtype, Device device,
                      MemoryFormat format = MemoryFormat::Contiguous);
TensorBase make_empty_strided(IntArrayRef sizes, IntArrayRef strides, ScalarType dtype,
                              Device device);
inline TensorBase make_empty(IntArrayRef sizes, const TensorOptions& options) {
  return make_empty(sizes, options.dtype(), options.device(),
                    options.memory_format_opt().value_or(MemoryFormat::Contiguous));
}
// Uninitialised, with the sizes of `like` and its strides if it is dense (else contiguous).
TensorBase make_empty_like(const TensorBase& like, ScalarType dtype, Device device);

// A tensor over a storage. Takes over one reference to the storage, also if this throws. Does not
// check that the elements lie within it.
TensorBase make_tensor(Storage* storage, IntArrayRef sizes, IntArrayRef strides,
                       int64_t storage_offset, ScalarType dtype, uint64_t key_set);
// A view of the same storage: Note [Views know their base]. Carries conj, neg and inference over.
// Elements outside of the storage are an error, which the second reports as as_strided's.
TensorBase make_view(const TensorBase& base, IntArrayRef sizes, IntArrayRef strides,
                     int64_t storage_offset);
TensorBase make_checked_view(const TensorBase& base, IntArrayRef sizes, IntArrayRef strides,
                             int64_t storage_offset);
// The same memory under another type of the same size, or with sizes and offset that the caller
// has adapted to another one. storage_offset counts elements of `dtype`.
LAMELLA_PRIVATE_API TensorBase make_view_as(const TensorBase& base, IntArrayRef sizes,
                                            IntArrayRef strides, int64_t storage_offset,
                                            ScalarType dtype);
// An alias of the same shape that is not a view: autograd does not connect the two.
LAMELLA_PRIVATE_API TensorBase make_detached(const TensorBase& source);
// A tensor over the caller's memory; see lamella_tensor_from_blob. strides may be absent.
TensorBase make_from_blob(void* data, IntArrayRef sizes, OptionalIntArrayRef strides,
                          ScalarType dtype, Device device, void (*deleter)(void*), void* context);

// ---- Changing tensors in place ----

// New sizes and strides over the same storage, without a check of the bounds.
void set_sizes_and_strides(TensorImpl* tensor, IntArrayRef sizes, IntArrayRef strides,
                           int64_t storage_offset);
// Gives the tensor these sizes, dense in `format`. Its storage is kept if it is large enough;
// otherwise a new one takes its place (aliases keep the old one), with the old elements in front
// if `keep_contents`. Throws if the tensor stands over foreign memory that is too small.
void resize_tensor(TensorImpl* tensor, IntArrayRef sizes,
                   MemoryFormat format = MemoryFormat::Contiguous, bool keep_contents = false);
// The same with strides that the caller chooses.
void resize_tensor_strided(TensorImpl* tensor, IntArrayRef sizes, IntArrayRef strides);
// Turns a view into a tensor without a base that shares the storage.
void leave_base(TensorImpl* tensor);
// Replaces the storage; takes over one reference to it.
void set_storage(TensorImpl* tensor, Storage* storage, IntArrayRef sizes, IntArrayRef strides,
                 int64_t storage_offset);
// Makes `tensor` what `source` is (storage, shape, type, keys), keeping its identity, its autograd
// and its Python object.
LAMELLA_PRIVATE_API void shallow_copy_from(TensorImpl* tensor, const TensorImpl* source);

LAMELLA_PRIVATE_API void set_requires_grad(TensorImpl* tensor, bool value);
inline void set_flag(TensorImpl* tensor, uint32_t flag, bool value) {
  tensor->flags = value ? tensor->flags | flag : tensor->flags & ~flag;
}

// ---- Facts about shapes ----

// LAMELLA_TENSOR_CONTIGUOUS, _CHANNELS_LAST, _CHANNELS_LAST_3D, _DENSE and _LIKES_CHANNELS_LAST.
uint32_t shape_flags(IntArrayRef sizes, IntArrayRef strides, int64_t numel);
// Product of the sizes, checked against overflow and negative sizes. `op` begins the message.
int64_t checked_numel(IntArrayRef sizes, const char* op);
// Elements that a storage needs for the shape at offset 0; 0 if there are none. Checked.
int64_t storage_elements(IntArrayRef sizes, IntArrayRef strides, const char* op);
namespace detail {
// Throws an error that names the reason: a negative size, or too many bytes.
[[noreturn]] LAMELLA_COLD void throw_bad_sizes(IntArrayRef sizes, const char* op);
}  // namespace detail

// ---- Data that other parts of Lamella attach to tensors ----

// Called when a tensor ends whose `autograd` or `python_object` is set.
struct TensorHooks {
  void (*release_autograd)(lamella_tensor* tensor) = nullptr;
  void (*release_python)(lamella_tensor* tensor) = nullptr;
};
// Members that are null leave the hook unchanged.
LAMELLA_PRIVATE_API void set_tensor_hooks(const TensorHooks& hooks);
const TensorHooks& tensor_hooks();
// Releases the storages that a base parked. For lamella_tensor_destroy().
void release_parked_storages(TensorImpl* tensor) noexcept;

}  // namespace lamella
