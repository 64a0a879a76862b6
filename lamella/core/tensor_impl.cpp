// TensorImpl: creation and views.
#include "lamella/core/tensor_impl.h"

#include <atomic>
#include <cstring>

#include "lamella/abi/autograd.h"
#include "lamella/abi/backend.h"
#include "lamella/core/checked_size.h"
#include "lamella/core/detach_hook.h"
#include "lamella/core/dual_hook.h"
#include "lamella/core/error.h"
#include "lamella/core/memory_pool.h"
#include "lamella/core/tensor_header.h"
#include "lamella/core/version_counter.h"
#include "lamella/core/wrapper.h"

namespace lamella {
using namespace detail::header;
namespace {

constexpr int kImplClass = detail::pool_class(sizeof(TensorImpl));
TensorHooks hooks;

// Writes every field of the header.
LAMELLA_ALWAYS_INLINE void init_header(TensorImpl* t, ScalarType dtype, Device device,
                                       uint64_t key_set, uint32_t flags, int32_t ndim,
                                       int64_t numel, Storage* storage, void* data) {
  t->references = 1;
  t->weak_references = 0;
  t->key_set = key_set;
  t->data = data;
  t->numel = numel;
  t->sizes = t->inline_sizes;
  t->strides = t->inline_strides;
  t->storage_offset = 0;
  t->storage = storage;
  t->ndim = ndim;
  // scalar_type, device_type, device_index and layout (0) in one store.
  uint32_t kind = static_cast<uint8_t>(dtype) |
                  static_cast<uint32_t>(static_cast<uint8_t>(device.type())) << 8 |
                  static_cast<uint32_t>(static_cast<uint8_t>(device.index())) << 16;
  constexpr size_t at = offsetof(lamella_tensor, scalar_type);
  static_assert(offsetof(lamella_tensor, device_type) == at + 1 &&
                offsetof(lamella_tensor, device_index) == at + 2 &&
                offsetof(lamella_tensor, layout) == at + 3);
  std::memcpy(&t->scalar_type, &kind, sizeof(kind));
  t->flags = flags;
  t->reserved = 0;
  t->python_object = nullptr;
  t->autograd = nullptr;
  t->heap_dims = 0;
  t->has_parked = 0;
  t->version_counter = 0;
  t->base = nullptr;
}

// One reference, no dimensions and no storage.
LAMELLA_ALWAYS_INLINE TensorImpl* allocate_impl(ScalarType dtype, Device device, uint64_t key_set) {
  auto* t = static_cast<TensorImpl*>(detail::pool_allocate(kImplClass));
  init_header(t, dtype, device, key_set, LAMELLA_TENSOR_CONTIGUOUS | LAMELLA_TENSOR_DENSE, 0, 1,
              nullptr, nullptr);
  return t;
}

// The flags that a view inherits from its base.
constexpr uint32_t kInheritedFlags =
    LAMELLA_TENSOR_CONJ | LAMELLA_TENSOR_NEG | LAMELLA_TENSOR_INFERENCE;

// Tensors made in inference mode take no part in autograd.
LAMELLA_ALWAYS_INLINE void mark_inference(TensorImpl* t) {
  if (LAMELLA_UNLIKELY((lamella_thread.modes & LAMELLA_MODE_INFERENCE) != 0)) {
    t->flags |= LAMELLA_TENSOR_INFERENCE;
    t->key_set = default_key_set(static_cast<DeviceType>(t->device_type), true);
  }
}
// Views do not inherit the key Python: a class's handler belongs to the object it was made for.
constexpr uint64_t kPythonBit = detail::functionality_bit(detail::Functionality::Python);

// The keys and flags that a view has for autograd: Note [Views know their base].
struct ViewBits {
  uint64_t keys;
  uint32_t flags;
};
LAMELLA_ALWAYS_INLINE ViewBits bits_of_view(const lamella_tensor* of, ScalarType dtype) {
  uint64_t keys = of->key_set & ~(kGradientBits | kPythonBit);
  uint32_t flags = of->flags & kInheritedFlags;
  if (LAMELLA_UNLIKELY((of->flags & LAMELLA_TENSOR_INFERENCE) != 0) ||
      !(is_floating_point(dtype) || is_complex(dtype))) {
    return {keys, flags};
  }
  if (LAMELLA_LIKELY((lamella_thread.excluded & kRequiresGradBits) == 0)) {
    return {keys | kRequiresGradBits, flags | (of->flags & LAMELLA_TENSOR_NO_GRAD_VIEW)};
  }
  const auto* base = static_cast<const TensorImpl*>(of)->base;
  uint32_t with = (base != nullptr ? base->flags : of->flags) & LAMELLA_TENSOR_REQUIRES_GRAD;
  if (LAMELLA_LIKELY(with == 0)) return {keys, flags};
  flags |= LAMELLA_TENSOR_NO_GRAD_VIEW;
  // While a call is recorded its views get their history afterwards.
  if ((lamella_thread.modes & LAMELLA_MODE_NO_GRAD) != 0) flags |= LAMELLA_TENSOR_REQUIRES_GRAD;
  return {keys | kRequiresGradBits, flags};
}
LAMELLA_ALWAYS_INLINE TensorImpl* retained_base(lamella_tensor* tensor) {
  auto* t = static_cast<TensorImpl*>(tensor);
  TensorImpl* base = t->base != nullptr ? t->base : t;
  detail::retain(base);
  return base;
}

struct KeySets {
  uint64_t of[64];
};
constexpr KeySets make_key_sets() {
  KeySets table{};
  for (int i = 0; i < kDeviceTypes; ++i) {
    table.of[i] = default_key_set(static_cast<DeviceType>(i));
  }
  return table;
}
constexpr KeySets kKeySets = make_key_sets();
LAMELLA_ALWAYS_INLINE uint64_t key_set_of(DeviceType type) {
  return kKeySets.of[static_cast<uint8_t>(type) & 63];
}

[[noreturn]] LAMELLA_COLD void throw_unsupported(ScalarType dtype) {
  throw TypeError(str("empty: expected a supported dtype, got ", dtype));
}

// The strides of a dense tensor; false if the number of dimensions does not fit the format.
void fill_format(TensorImpl* t, IntArrayRef sizes, MemoryFormat format) {
  make_room(t, sizes.size());
  std::memcpy(t->mutable_sizes(), sizes.data(), sizes.size() * sizeof(int64_t));
  strides_of_format(sizes, format, t->mutable_strides());
  t->flags = (t->flags & ~kShapeFlags) | shape_flags(sizes, {t->strides, sizes.size()}, t->numel);
}

struct Filled {
  int64_t numel;
  int64_t bytes;
  uint32_t flags;
  bool bad;  // negative sizes, or more bytes than fit int64
};

// Writes sizes and row-major strides, and computes all that derives from them in the same pass; the
// hot path of empty().
LAMELLA_ALWAYS_INLINE Filled fill_contiguous(int64_t* to_sizes, int64_t* to_strides,
                                             IntArrayRef sizes, ScalarType dtype) {
  size_t n = sizes.size();
  int64_t stride = 1;
  int64_t signs = 0;
  bool empty = false;
  bool overflow = false;
  for (size_t d = n; d-- > 0;) {
    int64_t size = sizes[d];
    to_sizes[d] = size;
    to_strides[d] = stride;
    signs |= size;
    empty |= size == 0;
    overflow |= __builtin_mul_overflow(stride, size + (size == 0), &stride);
  }
  Filled filled{stride, 0, LAMELLA_TENSOR_CONTIGUOUS | LAMELLA_TENSOR_DENSE, false};
  overflow |=
      __builtin_mul_overflow(stride, static_cast<int64_t>(element_size(dtype)), &filled.bytes);
  filled.bad = overflow || signs < 0;
  if (LAMELLA_UNLIKELY(empty)) filled.numel = filled.bytes = 0;
  // Row-major is channels_last as well only if channels or space are trivial.
  if (LAMELLA_UNLIKELY(n == 4 || n == 5) && (to_sizes[1] == 1 || to_strides[1] == 1 || empty)) {
    filled.flags = shape_flags({to_sizes, n}, {to_strides, n}, filled.numel);
  }
  return filled;
}

// Owns a tensor that is not complete yet.
struct Guard {
  TensorImpl* tensor;
  ~Guard() {
    if (tensor != nullptr) lamella_tensor_destroy(tensor);
  }
  TensorBase done() { return TensorBase::adopt(std::exchange(tensor, nullptr)); }
};

LAMELLA_ALWAYS_INLINE void require_supported(ScalarType dtype) {
  if (LAMELLA_UNLIKELY(!is_supported(dtype))) throw_unsupported(dtype);
}

}  // namespace

// ---- Making tensors ----

namespace {
// The usual case: sizes are checked before anything is allocated, and each field is written once.
LAMELLA_ALWAYS_INLINE TensorBase make_small_empty(IntArrayRef sizes, ScalarType dtype,
                                                  Device device) {
  auto* t = static_cast<TensorImpl*>(detail::pool_allocate(kImplClass));
  Filled filled = fill_contiguous(t->inline_sizes, t->inline_strides, sizes, dtype);
  Storage* storage = nullptr;
  try {
    if (LAMELLA_UNLIKELY(filled.bad)) detail::throw_bad_sizes(sizes, "empty");
    storage = make_storage(static_cast<size_t>(filled.bytes), device);
  } catch (...) {
    detail::pool_free(t, kImplClass);
    throw;
  }
  init_header(t, dtype, device, key_set_of(device.type()), filled.flags,
              static_cast<int32_t>(sizes.size()), filled.numel, storage, storage->data);
  mark_inference(t);
  return TensorBase::adopt(t);
}

LAMELLA_NOINLINE TensorBase make_other_empty(IntArrayRef sizes, ScalarType dtype, Device device,
                                             MemoryFormat format) {
  LAMELLA_CHECK(format != MemoryFormat::Preserve,
                "empty: expected a memory format other than preserve_format");
  int64_t numel = checked_numel(sizes, "empty");
  int64_t bytes = checked_bytes(numel, dtype, sizes, "empty");
  Guard guard{allocate_impl(dtype, device, key_set_of(device.type()))};
  TensorImpl* t = guard.tensor;
  t->numel = numel;
  fill_format(t, sizes, format);
  t->storage = make_storage(static_cast<size_t>(bytes), device);
  t->data = t->storage->data;
  mark_inference(t);
  return guard.done();
}
}  // namespace

TensorBase make_empty(IntArrayRef sizes, ScalarType dtype, Device device, MemoryFormat format) {
  require_supported(dtype);
  if (LAMELLA_LIKELY(format == MemoryFormat::Contiguous &&
                     sizes.size() <= TensorImpl::kInlineDims)) {
    return make_small_empty(sizes, dtype, device);
  }
  return make_other_empty(sizes, dtype, device, format);
}

TensorBase make_empty_strided(IntArrayRef sizes, IntArrayRef strides, ScalarType dtype,
                              Device device) {
  require_supported(dtype);
  checked_numel(sizes, "empty_strided");
  int64_t elements = storage_elements(sizes, strides, "empty_strided");
  int64_t bytes = checked_bytes(elements, dtype, sizes, "empty_strided");
  Guard guard{allocate_impl(dtype, device, key_set_of(device.type()))};
  TensorImpl* t = guard.tensor;
  fill_fresh(t, sizes, strides, 0);
  t->storage = make_storage(static_cast<size_t>(bytes), device);
  t->data = t->storage->data;
  mark_inference(t);
  return guard.done();
}

TensorBase make_empty_like(const TensorBase& like, ScalarType dtype, Device device) {
  if (like.is_contiguous() || !like.is_non_overlapping_and_dense()) {
    return make_empty(like.sizes(), dtype, device);
  }
  return make_empty_strided(like.sizes(), like.strides(), dtype, device);
}

TensorBase make_tensor(Storage* storage, IntArrayRef sizes, IntArrayRef strides,
                       int64_t storage_offset, ScalarType dtype, uint64_t key_set) {
  TensorImpl* t = nullptr;
  try {
    t = allocate_impl(dtype, Device(storage->device_type, storage->device_index), key_set);
  } catch (...) {
    storage_release(storage);
    throw;
  }
  t->storage = storage;
  Guard guard{t};
  fill_fresh(t, sizes, strides, storage_offset);
  point_at_data(t);
  return guard.done();
}

namespace {
// Throws unless the shape, of elements of `itemsize` bytes, lies within the storage.
void check_within_storage(const lamella_tensor* base, IntArrayRef sizes, IntArrayRef strides,
                          int64_t storage_offset, size_t itemsize, const char* op) {
  LAMELLA_CHECK(storage_offset >= 0, op, ": expected a 'storage_offset' of at least 0, got ",
                storage_offset);
  checked_numel(sizes, op);
  int64_t elements = storage_elements(sizes, strides, op);
  if (elements == 0) return;
  int64_t bytes = 0;
  bool over = __builtin_add_overflow(elements, storage_offset, &elements) ||
              __builtin_mul_overflow(elements, static_cast<int64_t>(itemsize), &bytes);
  size_t there = lamella_tensor_storage_bytes(base);
  LAMELLA_CHECK(!over && static_cast<size_t>(bytes) <= there, op,
                ": expected a view within the storage of ", there, " bytes, got size ", sizes,
                ", stride ", strides, ", storage_offset ", storage_offset, ", which need ",
                over ? std::string("more than fit int64") : str(bytes));
}

// How far a view reaches.
struct Reach {
  int64_t numel = 1;
  int64_t last;  // position of the last element in the storage
  bool bad;

  explicit Reach(int64_t storage_offset) : last(storage_offset), bad(storage_offset < 0) {}
  LAMELLA_ALWAYS_INLINE void add(int64_t size, int64_t stride) {
    int64_t span;
    bad |= (size | stride) < 0;
    bad |= __builtin_mul_overflow(numel, size, &numel);
    bad |= __builtin_mul_overflow(size - 1, stride, &span);
    bad |= __builtin_add_overflow(last, span, &last);
  }
  LAMELLA_ALWAYS_INLINE bool fits(const Storage* storage, size_t itemsize) const {
    if (storage == nullptr) return !bad;
    size_t bytes;
    bool over = __builtin_mul_overflow(static_cast<size_t>(last) + 1, itemsize, &bytes);
    return !bad && (numel == 0 || (!over && bytes <= storage->nbytes));
  }
};

// The slow check of a view that seems to leave its storage: throws if it does. A view whose storage
// shrank under it may still be viewed in another shape that fits.
LAMELLA_COLD LAMELLA_NOINLINE void check_view(const lamella_tensor* base, IntArrayRef sizes,
                                              IntArrayRef strides, int64_t storage_offset,
                                              ScalarType dtype) {
  auto bytes_of = [](IntArrayRef shape, IntArrayRef steps, int64_t offset, size_t itemsize) {
    CheckedSize elements(storage_elements(shape, steps, "view"), "view");
    return ((elements + offset) * static_cast<int64_t>(itemsize)).value();
  };
  auto dims = static_cast<size_t>(base->ndim);
  if (base->storage != nullptr && storage_offset >= 0 && base->numel != 0) {
    checked_numel(sizes, "view");
    int64_t there = bytes_of({base->sizes, dims}, {base->strides, dims}, base->storage_offset,
                             element_size(static_cast<ScalarType>(base->scalar_type)));
    if (static_cast<size_t>(there) > base->storage->nbytes &&
        bytes_of(sizes, strides, storage_offset, element_size(dtype)) <= there) {
      return;
    }
  }
  check_within_storage(base, sizes, strides, storage_offset, element_size(dtype), "view");
}

std::atomic<ViewWatch> view_watch{nullptr};
LAMELLA_ALWAYS_INLINE TensorBase watched(TensorBase view) {
  ViewWatch watch = view_watch.load(std::memory_order_acquire);
  if (LAMELLA_UNLIKELY(watch != nullptr)) watch(view);
  return view;
}

// Views of more than kInlineDims dimensions.
LAMELLA_NOINLINE TensorBase make_deep_view(const TensorBase& base, IntArrayRef sizes,
                                           IntArrayRef strides, int64_t storage_offset,
                                           ScalarType dtype) {
  const lamella_tensor* b = base.impl();
  Guard guard{allocate_impl(dtype, Device(static_cast<DeviceType>(b->device_type), b->device_index),
                            bits_of_view(b, dtype).keys)};
  TensorImpl* t = guard.tensor;
  t->layout = b->layout;
  t->flags = bits_of_view(b, dtype).flags;
  Reach reach(storage_offset);
  for (size_t d = 0; d < sizes.size(); ++d) reach.add(sizes[d], strides[d]);
  if (!reach.fits(b->storage, element_size(dtype))) {
    check_view(b, sizes, strides, storage_offset, dtype);
  }
  fill_fresh(t, sizes, strides, storage_offset);
  t->base = retained_base(base.impl());
  t->version_counter = static_cast<const TensorImpl*>(b)->version_counter;
  t->storage = b->storage;
  point_at_data(t);
  return watched(guard.done());
}
}  // namespace

void watch_views(ViewWatch watch) { view_watch.store(watch, std::memory_order_release); }

TensorBase make_view_as(const TensorBase& base, IntArrayRef sizes, IntArrayRef strides,
                        int64_t storage_offset, ScalarType dtype) {
  size_t n = sizes.size();
  LAMELLA_INTERNAL_ASSERT(n == strides.size(), "sizes ", sizes, ", strides ", strides);
  if (LAMELLA_UNLIKELY(is_batched(base.impl()))) detail::throw_batched_view();
  if (LAMELLA_UNLIKELY(n > TensorImpl::kInlineDims)) {
    return make_deep_view(base, sizes, strides, storage_offset, dtype);
  }
  const lamella_tensor* b = base.impl();
  Reach reach(storage_offset);
  for (size_t d = 0; d < n; ++d) reach.add(sizes[d], strides[d]);
  if (LAMELLA_UNLIKELY(!reach.fits(b->storage, element_size(dtype)))) {
    check_view(b, sizes, strides, storage_offset, dtype);
  }
  // Every field is written once, from here on nothing throws.
  auto* t = static_cast<TensorImpl*>(detail::pool_allocate(kImplClass));
  for (size_t d = 0; d < n; ++d) {
    t->inline_sizes[d] = sizes[d];
    t->inline_strides[d] = strides[d];
  }
  int64_t numel = reach.numel;
  char* data =
      element_address(b->storage != nullptr ? b->storage->data : nullptr, storage_offset, dtype);
  ViewBits bits = bits_of_view(b, dtype);
  uint32_t flags = bits.flags;
  if (n == 1 && (strides[0] == 1 || numel <= 1)) {
    flags |= LAMELLA_TENSOR_CONTIGUOUS | LAMELLA_TENSOR_DENSE;
  } else {
    flags |= shape_flags(sizes, strides, numel);
  }
  init_header(t, dtype, Device(static_cast<DeviceType>(b->device_type), b->device_index), bits.keys,
              flags, static_cast<int32_t>(n), numel, b->storage, data);
  t->base = retained_base(base.impl());
  t->version_counter = static_cast<const TensorImpl*>(b)->version_counter;
  t->storage_offset = storage_offset;
  t->layout = b->layout;
  return watched(TensorBase::adopt(t));
}

TensorBase make_view(const TensorBase& base, IntArrayRef sizes, IntArrayRef strides,
                     int64_t storage_offset) {
  return make_view_as(base, sizes, strides, storage_offset, base.scalar_type());
}

TensorBase (*detach_by_class)(const TensorBase& source) = nullptr;
void (*detach_history)(lamella_tensor* tensor) = nullptr;

TensorBase make_detached(const TensorBase& source) {
  const lamella_tensor* b = source.impl();
  if (LAMELLA_UNLIKELY(b == nullptr)) detail::throw_undefined("detach");
  if (LAMELLA_UNLIKELY(is_batched(b))) return detail::make_detached_batch(b);
  if (LAMELLA_UNLIKELY((b->key_set & kPythonBit) != 0) && detach_by_class != nullptr) {
    if (TensorBase made = detach_by_class(source); made.defined()) return made;
  }
  Guard guard{allocate_impl(static_cast<ScalarType>(b->scalar_type),
                            Device(static_cast<DeviceType>(b->device_type), b->device_index),
                            b->key_set & ~(kGradientBits | kPythonBit))};
  TensorImpl* t = guard.tensor;
  auto dims = static_cast<size_t>(b->ndim);
  make_room(t, dims);
  std::memcpy(t->mutable_sizes(), b->sizes, dims * sizeof(int64_t));
  std::memcpy(t->mutable_strides(), b->strides, dims * sizeof(int64_t));
  t->layout = b->layout;
  t->flags = b->flags & (kShapeFlags | kInheritedFlags);
  t->numel = b->numel;
  t->storage_offset = b->storage_offset;
  t->data = b->data;
  if (b->storage != nullptr) storage_retain(b->storage);
  t->storage = b->storage;
  t->version_counter = static_cast<const TensorImpl*>(b)->version_counter;
  if (LAMELLA_UNLIKELY(t->version_counter != 0)) detail::retain_version_counter(t->version_counter);
  return guard.done();
}

TensorBase make_wrapper(IntArrayRef sizes, IntArrayRef strides, ScalarType dtype, Device device,
                        uint64_t key_set) {
  Guard guard{allocate_impl(dtype, device, key_set)};
  fill_fresh(guard.tensor, sizes, strides, 0);
  guard.tensor->flags |= LAMELLA_TENSOR_WRAPPER;
  return guard.done();
}

TensorBase make_checked_view(const TensorBase& base, IntArrayRef sizes, IntArrayRef strides,
                             int64_t storage_offset) {
  LAMELLA_CHECK(base.defined(), "as_strided: expected 'self' to be defined");
  check_within_storage(base.impl(), sizes, strides, storage_offset, base.itemsize(), "as_strided");
  return make_view(base, sizes, strides, storage_offset);
}

TensorBase make_from_blob(void* data, IntArrayRef sizes, OptionalIntArrayRef strides,
                          ScalarType dtype, Device device, void (*deleter)(void*), void* context) {
  Storage* storage = nullptr;
  int64_t row_major[64];
  try {
    LAMELLA_CHECK_TYPE(is_supported(dtype), "from_blob: expected a supported dtype, got ", dtype);
    LAMELLA_CHECK(sizes.size() <= 64, "from_blob: expected at most 64 dimensions, got ",
                  sizes.size());
    int64_t numel = checked_numel(sizes, "from_blob");
    if (!strides.has_value()) {
      contiguous_strides(sizes, row_major);
      strides = IntArrayRef(row_major, sizes.size());
    }
    int64_t elements = storage_elements(sizes, *strides, "from_blob");
    int64_t bytes = checked_bytes(elements, dtype, sizes, "from_blob");
    LAMELLA_CHECK(data != nullptr || numel == 0 || device.is_meta(),
                  "from_blob: expected 'data' for ", numel, " elements, got a null pointer");
    storage = make_foreign_storage(data, static_cast<size_t>(bytes), device, deleter, context);
  } catch (...) {
    if (deleter != nullptr) deleter(context);
    throw;
  }
  return make_tensor(storage, sizes, *strides, 0, dtype, default_key_set(device.type()));
}

// ---- Flags and hooks ----

void set_requires_grad(TensorImpl* t, bool value) {
  auto dtype = static_cast<ScalarType>(t->scalar_type);
  LAMELLA_CHECK(!value || is_floating_point(dtype) || is_complex(dtype),
                "requires_grad_: expected a floating-point or complex tensor, got ", dtype);
  set_flag(t, LAMELLA_TENSOR_REQUIRES_GRAD, value);
  t->key_set = value ? t->key_set | kRequiresGradBits : t->key_set & ~kRequiresGradBits;
}

void set_tensor_hooks(const TensorHooks& value) {
  if (value.release_autograd != nullptr) hooks.release_autograd = value.release_autograd;
  if (value.release_python != nullptr) hooks.release_python = value.release_python;
}
const TensorHooks& tensor_hooks() { return hooks; }

}  // namespace lamella
