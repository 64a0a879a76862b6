// TensorBase: one reference to a tensor, with accessors for its header but without operators; the
// generated class Tensor adds those, and no fields.
//
// Note [Reference counts]
//   Strong references count in `references`. `weak_references` is 0 until the first weak
//   reference is made; from then on all strong references together hold one. So {1, 0}, read in one
//   load, means that no other reference exists, and the tensor ends without a locked operation.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>

#include "lamella/abi/abi.h"
#include "lamella/core/array_ref.h"
#include "lamella/core/device.h"
#include "lamella/core/error.h"
#include "lamella/core/key_set.h"
#include "lamella/core/layout.h"
#include "lamella/core/memory_format.h"
#include "lamella/core/reference_count.h"
#include "lamella/core/scalar_type.h"
#include "lamella/core/tensor_options.h"
#include "lamella/core/wrap_dim.h"

namespace lamella {

// The type of the pointer that an accessor holds.
template <class T>
struct DefaultPtrTraits {
  using PtrType = T*;
};
template <class T, size_t N, template <class> class PtrTraits = DefaultPtrTraits,
          class Index = int64_t>
class TensorAccessor;
struct TensorObject;

namespace detail {

static_assert(offsetof(lamella_tensor, references) == 0 &&
              offsetof(lamella_tensor, weak_references) == 4);
typedef uint64_t __attribute__((may_alias)) reference_pair;
inline constexpr uint64_t kSoleReference = 1;  // references 1, weak_references 0, little endian

// Both counts are written together because they are read together: a load that is wider than a
// recent store stalls until the store has left the store buffer, as long as two locked operations.
LAMELLA_ALWAYS_INLINE void retain(lamella_tensor* tensor) {
  auto* pair = reinterpret_cast<reference_pair*>(tensor);
  if (LAMELLA_ONE_THREAD) {  // Note [Counting with one thread]
    ++*pair;
  } else {
    __atomic_fetch_add(pair, 1, __ATOMIC_RELAXED);
  }
}
LAMELLA_ALWAYS_INLINE void release(lamella_tensor* tensor) {
  auto* pair = reinterpret_cast<reference_pair*>(tensor);
  if (__atomic_load_n(pair, __ATOMIC_ACQUIRE) == kSoleReference ||
      static_cast<uint32_t>(
          LAMELLA_ONE_THREAD ? --*pair : __atomic_sub_fetch(pair, 1, __ATOMIC_ACQ_REL)) == 0) {
    lamella_tensor_destroy(tensor);
  }
}

[[noreturn]] LAMELLA_COLD inline void throw_undefined(const char* what) {
  throw_printf(LAMELLA_ERROR, "%s: expected a defined tensor, got an undefined one", what);
}
[[noreturn]] LAMELLA_COLD inline void throw_wrong_dtype(const char* what, ScalarType expected,
                                                        ScalarType got) {
  throw_printf(LAMELLA_ERROR, "%s: expected a tensor of %s, got %s", what, dtype_name(expected),
               dtype_name(got));
}

// The header of an undefined tensor: as in PyTorch, one dimension of size 0.
inline constexpr int64_t kUndefinedSizes[] = {0};
inline constexpr lamella_tensor make_undefined_header() {
  lamella_tensor header{};
  header.flags = LAMELLA_TENSOR_CONTIGUOUS | LAMELLA_TENSOR_DENSE;
  header.sizes = kUndefinedSizes;
  header.ndim = 1;
  header.scalar_type = static_cast<uint8_t>(ScalarType::Undefined);
  return header;
}
inline constexpr lamella_tensor kUndefinedHeader = make_undefined_header();

}  // namespace detail

// A default-constructed one is undefined: it has one dimension of size 0 and no dtype, and other
// accessors throw.
class TensorBase {
 public:
  constexpr TensorBase() = default;
  TensorBase(const TensorBase& other) : tensor_(other.tensor_) {
    if (tensor_) detail::retain(tensor_);
  }
  TensorBase(TensorBase&& other) noexcept : tensor_(detail::take(other.tensor_)) {}
  TensorBase& operator=(const TensorBase& other) {
    TensorBase copy(other);
    detail::swap_plain(tensor_, copy.tensor_);
    return *this;
  }
  TensorBase& operator=(TensorBase&& other) noexcept {
    detail::swap_plain(tensor_, other.tensor_);
    return *this;
  }
  ~TensorBase() {
    if (tensor_) detail::release(tensor_);
  }

  // Takes over one reference from the caller; a null pointer gives an undefined tensor.
  static TensorBase adopt(lamella_tensor* tensor) { return TensorBase(tensor); }
  // Adds a reference; the caller keeps its own.
  static TensorBase borrow(lamella_tensor* tensor) {
    if (tensor) detail::retain(tensor);
    return TensorBase(tensor);
  }
  // Transfers the reference to the caller; this becomes undefined.
  lamella_tensor* unsafe_release() { return detail::take(tensor_); }

  // The header; NULL if undefined.
  lamella_tensor* impl() const { return tensor_; }
  // The header with PyTorch's members. Needs tensor_object.h.
  TensorObject* unsafeGetTensorImpl() const { return reinterpret_cast<TensorObject*>(tensor_); }
  // A tensor is the counted pointer to its header.
  const TensorBase& getIntrusivePtr() const { return *this; }
  void reset() { *this = TensorBase(); }

  bool defined() const { return tensor_ != nullptr; }
  bool is_same(const TensorBase& other) const { return tensor_ == other.tensor_; }
  // All strong references together are one of them.
  uint32_t weak_use_count() const {
    if (!tensor_) return 0;
    uint32_t count = __atomic_load_n(&tensor_->weak_references, __ATOMIC_RELAXED);
    return count != 0 ? count : 1;
  }
  uint32_t use_count() const {
    return tensor_ ? __atomic_load_n(&tensor_->references, __ATOMIC_RELAXED) : 0;
  }

  // ---- Shape ----

  int64_t dim() const { return header()->ndim; }
  int64_t ndimension() const { return dim(); }
  bool is_same_size(const TensorBase& other) const { return sizes() == other.sizes(); }
  IntArrayRef sizes() const {
    const lamella_tensor* t = header();
    return {t->sizes, static_cast<size_t>(t->ndim)};
  }
  IntArrayRef strides() const {
    const lamella_tensor* t = get("strides");
    return {t->strides, static_cast<size_t>(t->ndim)};
  }
  // Negative dimensions count from the end; IndexError if out of range.
  int64_t size(int64_t dim) const { return header()->sizes[wrap(dim, "size")]; }
  int64_t stride(int64_t dim) const { return get("stride")->strides[wrap(dim, "stride")]; }
  int64_t numel() const { return header()->numel; }
  size_t nbytes() const { return static_cast<size_t>(numel()) * itemsize(); }
  size_t itemsize() const {
    return lamella::element_size(static_cast<ScalarType>(get("itemsize")->scalar_type));
  }
  int64_t element_size() const { return static_cast<int64_t>(itemsize()); }
  int64_t storage_offset() const { return header()->storage_offset; }

  bool is_contiguous(MemoryFormat format = MemoryFormat::Contiguous) const {
    uint32_t flag = format == MemoryFormat::ChannelsLast     ? LAMELLA_TENSOR_CHANNELS_LAST
                    : format == MemoryFormat::ChannelsLast3d ? LAMELLA_TENSOR_CHANNELS_LAST_3D
                                                             : LAMELLA_TENSOR_CONTIGUOUS;
    return has_flag(flag);
  }
  // No two elements share memory and there are no gaps.
  bool is_non_overlapping_and_dense() const { return has_flag(LAMELLA_TENSOR_DENSE); }
  // The format that an operator should give its result. With `exact`, only if this tensor is dense
  // in it.
  MemoryFormat suggest_memory_format(bool exact = false) const {
    const lamella_tensor* t = header();
    if (layout() == Layout::Strided && (t->flags & LAMELLA_TENSOR_LIKES_CHANNELS_LAST) != 0) {
      if (t->ndim == 4 && (!exact || (t->flags & LAMELLA_TENSOR_CHANNELS_LAST) != 0)) {
        return MemoryFormat::ChannelsLast;
      }
      if (t->ndim == 5 && (!exact || (t->flags & LAMELLA_TENSOR_CHANNELS_LAST_3D) != 0)) {
        return MemoryFormat::ChannelsLast3d;
      }
    }
    return MemoryFormat::Contiguous;
  }

  // ---- Kind ----

  ScalarType scalar_type() const { return static_cast<ScalarType>(header()->scalar_type); }
  TypeMeta dtype() const { return TypeMeta(scalar_type()); }
  Device device() const {
    const lamella_tensor* t = get("device");
    return Device(static_cast<DeviceType>(t->device_type), t->device_index);
  }
  DeviceIndex get_device() const { return get("get_device")->device_index; }
  Layout layout() const { return static_cast<Layout>(header()->layout); }
  TensorOptions options() const {
    return TensorOptions().dtype(dtype()).device(device()).layout(layout());
  }
  uint64_t key_set() const { return header()->key_set; }

#define LAMELLA_IS(name, Type) \
  bool name() const { return is_on(DeviceType::Type); }
  LAMELLA_DEVICE_PREDICATES(LAMELLA_IS)
#undef LAMELLA_IS
  bool is_floating_point() const { return lamella::is_floating_point(dtype()); }
  bool is_complex() const { return lamella::is_complex(dtype()); }
  bool is_signed() const { return lamella::is_signed_type(dtype()); }
  bool is_conj() const { return has_flag(LAMELLA_TENSOR_CONJ); }
  bool is_neg() const { return has_flag(LAMELLA_TENSOR_NEG); }
  bool is_inference() const { return has_flag(LAMELLA_TENSOR_INFERENCE); }
  bool requires_grad() const { return has_flag(LAMELLA_TENSOR_REQUIRES_GRAD); }
  // True for a number of the host language, which ranks below tensors in type promotion.
  bool is_wrapped_number() const { return has_flag(LAMELLA_TENSOR_WRAPPED_NUMBER); }

  // ---- Memory ----

  // Writes through an address are not counted, so no packed forms are kept with the storage once an
  // address was given out. Use const_data_ptr() to read.
  LAMELLA_ALWAYS_INLINE void* data_ptr() const { return exposed(get("data_ptr"))->data; }
  const void* const_data_ptr() const { return get("const_data_ptr")->data; }
  LAMELLA_ALWAYS_INLINE void* mutable_data_ptr() const {
    return exposed(get("mutable_data_ptr"))->data;
  }
  // Throws unless T is the element type.
  template <class T>
  LAMELLA_ALWAYS_INLINE T* data_ptr() const {
    T* data = typed<T>("data_ptr");
    if constexpr (!std::is_const_v<T>) exposed(tensor_);
    return data;
  }
  template <class T>
  const T* const_data_ptr() const {
    return typed<T>("const_data_ptr");
  }
  template <class T>
  LAMELLA_ALWAYS_INLINE T* mutable_data_ptr() const {
    T* data = typed<T>("mutable_data_ptr");
    exposed(tensor_);
    return data;
  }

  bool has_storage() const { return tensor_ != nullptr && tensor_->storage != nullptr; }
  lamella_storage* storage_impl() const { return get("storage")->storage; }
  bool is_alias_of(const TensorBase& other) const {
    return has_storage() && other.has_storage() && tensor_->storage == other.tensor_->storage;
  }
  // The number of writes to the memory so far, through any alias.
  uint32_t _version() const { return tensor_ != nullptr ? lamella_tensor_version(tensor_) : 0; }

  // Fast element access for N dimensions of T; both are checked. Needs accessor.h.
  template <class T, size_t N>
  TensorAccessor<T, N> accessor() const;

 protected:
  explicit constexpr TensorBase(lamella_tensor* tensor) : tensor_(tensor) {}

 private:
  LAMELLA_ALWAYS_INLINE const lamella_tensor* header() const {
    return LAMELLA_LIKELY(tensor_ != nullptr) ? tensor_ : &detail::kUndefinedHeader;
  }
  // The header; throws for an undefined tensor, naming the accessor.
  LAMELLA_ALWAYS_INLINE lamella_tensor* get(const char* what) const {
    if (LAMELLA_UNLIKELY(tensor_ == nullptr)) detail::throw_undefined(what);
    return tensor_;
  }
  // Not needed in Lamella's own libraries: their kernels write through operators, which count.
  LAMELLA_ALWAYS_INLINE static lamella_tensor* exposed(lamella_tensor* tensor) {
#ifndef LAMELLA_BUILDING_LIBRARY
    if (LAMELLA_UNLIKELY(__atomic_load_n(&tensor->reserved, __ATOMIC_RELAXED) == 0)) {
      lamella_tensor_expose(tensor);
    }
#endif
    return tensor;
  }
  bool is_on(DeviceType type) const {
    return tensor_ != nullptr && tensor_->device_type == static_cast<uint8_t>(type);
  }
  bool has_flag(uint32_t flag) const { return (header()->flags & flag) != 0; }
  int64_t wrap(int64_t dim, const char* what) const {
    int64_t ndim = header()->ndim;
    if (LAMELLA_UNLIKELY(ndim == 0)) {
      detail::throw_printf(LAMELLA_INDEX_ERROR,
                           "%s: expected a tensor with dimensions, got 'dim' %lld for one without",
                           what, static_cast<long long>(dim));
    }
    return maybe_wrap_dim(dim, ndim, what);
  }
  template <class T>
  T* typed(const char* what) const {
    constexpr ScalarType type = CppTypeToScalarType<std::remove_const_t<T>>::value;
    const lamella_tensor* t = get(what);
    if (LAMELLA_UNLIKELY(t->scalar_type != static_cast<uint8_t>(type))) {
      detail::throw_wrong_dtype(what, type, static_cast<ScalarType>(t->scalar_type));
    }
    return static_cast<T*>(t->data);
  }

  lamella_tensor* tensor_ = nullptr;
};
static_assert(sizeof(TensorBase) == sizeof(lamella_tensor*));

// A reference that does not keep its tensor alive.
class WeakTensorRef {
 public:
  constexpr WeakTensorRef() = default;
  explicit WeakTensorRef(const TensorBase& tensor) : tensor_(tensor.impl()) { retain(); }
  WeakTensorRef(const WeakTensorRef& other) : tensor_(other.tensor_) { retain(); }
  WeakTensorRef(WeakTensorRef&& other) noexcept : tensor_(detail::take(other.tensor_)) {}
  WeakTensorRef& operator=(WeakTensorRef other) noexcept {
    detail::swap_plain(tensor_, other.tensor_);
    return *this;
  }
  ~WeakTensorRef() {
    if (tensor_) lamella_tensor_release_weak(tensor_);
  }

  // The tensor, or an undefined one if it is gone.
  TensorBase lock() const {
    return TensorBase::adopt(tensor_ && lamella_tensor_lock(tensor_) ? tensor_ : nullptr);
  }
  uint32_t use_count() const {
    return tensor_ ? __atomic_load_n(&tensor_->references, __ATOMIC_ACQUIRE) : 0;
  }
  uint32_t weak_use_count() const {
    return tensor_ ? __atomic_load_n(&tensor_->weak_references, __ATOMIC_RELAXED) : 0;
  }
  bool expired() const {
    return tensor_ == nullptr || __atomic_load_n(&tensor_->references, __ATOMIC_ACQUIRE) == 0;
  }

 private:
  // The first weak reference also adds the one of the strong references: Note [Reference counts].
  void retain() {
    if (!tensor_) return;
    uint32_t count = __atomic_load_n(&tensor_->weak_references, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&tensor_->weak_references, &count,
                                        count == 0 ? 2 : count + 1, true, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED)) {
    }
  }

  lamella_tensor* tensor_ = nullptr;
};

}  // namespace lamella
