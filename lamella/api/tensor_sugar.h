// TensorSugar: the handwritten members of Tensor, which call its operators.
#pragma once
#include "lamella/api/tensor_autograd.h"
#include "lamella/core/accessor.h"
#include "lamella/core/ivalue.h"
#include "lamella/core/maybe_owned.h"

namespace lamella {

class TensorIndex;
class DispatchKeySet;
template <class T, size_t N, template <class> class PtrTraits, class Index>
class PackedTensorAccessor;

// The result of Tensor::type(): dtype and device, for code that queries both at once.
class TensorKind {
 public:
  TensorKind(ScalarType dtype, Device device) : dtype_(dtype), device_(device) {}
  ScalarType scalarType() const { return dtype_; }
  DeviceType device_type() const { return device_.type(); }
  bool is_cuda() const { return device_.is_cuda(); }
  TensorOptions options() const { return TensorOptions(dtype_).device(device_); }
  // The same device with another dtype, and the same dtype on the CPU.
  TensorKind toScalarType(ScalarType dtype) const { return {dtype, device_}; }
  TensorKind cpu() const { return {dtype_, Device(DeviceType::CPU)}; }
  // "CPUFloatType".
  LAMELLA_LAZY std::string toString() const {
    return str(device_type_name(device_.type(), false), lamella::toString(dtype_), "Type");
  }
  operator ScalarType() const { return dtype_; }        // NOLINT
  operator TensorOptions() const { return options(); }  // NOLINT
  bool operator==(const TensorKind&) const = default;

 private:
  ScalarType dtype_;
  Device device_;
};

// The result of Tensor::storage(): an owning reference to the memory of the tensor and its views.
// `data_ptr().get()` is the address, as in PyTorch.
class TensorMemory {
 public:
  TensorMemory() = default;
  explicit TensorMemory(TensorBase tensor) : tensor_(std::move(tensor)) {}
  operator bool() const { return tensor_.defined(); }  // NOLINT: as in PyTorch
  // One of the tensors that have the memory.
  const TensorBase& tensor() const { return tensor_; }
  size_t nbytes() const { return lamella_tensor_storage_bytes(tensor_.impl()); }
  const void* data() const { return lamella_tensor_storage_data(tensor_.impl()); }
  void* mutable_data() const {
    lamella_tensor_expose(tensor_.impl());
    return lamella_tensor_storage_data(tensor_.impl());
  }
  const TensorMemory& data_ptr() const { return *this; }
  const TensorMemory& mutable_data_ptr() const { return *this; }
  void* get() const { return mutable_data(); }
  // None: the storage keeps what frees its memory.
  void* get_context() const { return nullptr; }
  Device device() const { return tensor_.device(); }
  DeviceType device_type() const { return device().type(); }
  // All elements in the memory, in one dimension: what set_() takes as a source.
  template <std::same_as<Tensor> T>
  operator T() const {  // NOLINT: implicit
    if (!tensor_.defined()) return T();
    const auto size = static_cast<int64_t>(nbytes() / tensor_.itemsize());
    const int64_t stride = 1;
    lamella_tensor* all = nullptr;
    detail::check(lamella_tensor_as_strided(tensor_.impl(), 1, &size, &stride, 0, &all));
    return T(TensorBase::adopt(all));
  }
  // Identifies the storage: equal for tensors that share it, different for others.
  lamella_storage* unsafeGetStorageImpl() const {
    return tensor_.defined() ? tensor_.impl()->storage : nullptr;
  }
  bool is_alias_of(const TensorMemory& other) const {
    return unsafeGetStorageImpl() == other.unsafeGetStorageImpl();
  }

 private:
  TensorBase tensor_;
};

// T is Tensor. Everything here is a template, so that each body sees all of T's methods.
template <class T>
class TensorSugar : public TensorAutograd<T> {
 public:
  TensorSugar() = default;
  explicit TensorSugar(const TensorBase& base) : TensorAutograd<T>(base) {}
  explicit TensorSugar(TensorBase&& base) noexcept : TensorAutograd<T>(std::move(base)) {}

  // Entry `index` along the first dimension, as a view. Negative indices count from the end.
  T operator[](int64_t index) const { return self().select(0, index); }
  // The same for an index that is a number, or a tensor of one integer.
  T operator[](const T& index) const { return (*this)[index.item()]; }
  T operator[](const Scalar& index) const {
    LAMELLA_CHECK_INDEX(index.isIntegral(false), "select: expected 'index' to be an integer, got ",
                        index);
    return self().select(0, index.template to<int64_t>());
  }

  T& operator+=(const T& other) { return self().add_(other); }
  T& operator+=(const Scalar& other) { return self().add_(other); }
  T& operator-=(const T& other) { return self().sub_(other); }
  T& operator-=(const Scalar& other) { return self().sub_(other); }
  T& operator*=(const T& other) { return self().mul_(other); }
  T& operator*=(const Scalar& other) { return self().mul_(other); }
  T& operator/=(const T& other) { return self().div_(other); }
  T& operator/=(const Scalar& other) { return self().div_(other); }
  T& operator&=(const T& other) { return self().bitwise_and_(other); }
  T& operator&=(const Scalar& other) { return self().bitwise_and_(other); }
  T& operator|=(const T& other) { return self().bitwise_or_(other); }
  T& operator|=(const Scalar& other) { return self().bitwise_or_(other); }
  T& operator^=(const T& other) { return self().bitwise_xor_(other); }
  T& operator^=(const Scalar& other) { return self().bitwise_xor_(other); }
  T operator-() const { return self().neg(); }
  T operator~() const { return self().bitwise_not(); }

  T cpu() const { return self().to(TensorOptions(DeviceType::CPU)); }
  T cuda() const { return self().to(TensorOptions(DeviceType::CUDA)); }
  T toType(ScalarType type) const { return self().to(type); }

  // PyTorch's older spellings.
  TensorKind type() const { return TensorKind(this->scalar_type(), this->device()); }
  LAMELLA_LAZY std::string toString() const { return type().toString(); }
  // Prints the tensor's type and sizes to the standard output, without its elements.
  LAMELLA_LAZY void print() const {
    const std::string text = this->defined() ? str("[", toString(), " ", this->sizes(), "]\n")
                                             : std::string("[UndefinedTensor]\n");
    __builtin_printf("%s", text.c_str());
  }
  // function(*this, arguments...), for chains of methods.
  template <class F, class... A>
  decltype(auto) m(F function, A&&... arguments) const {
    return function(self(), std::forward<A>(arguments)...);
  }
  using TensorAutograd<T>::data;
  template <class U>
  U* data() const {
    return this->template data_ptr<U>();
  }
  // The dispatch keys of the tensor. Needs dispatch_key.h.
  template <class Keys = DispatchKeySet>
  Keys key_set() const {
    return Keys::from_raw_repr(TensorBase::key_set());
  }
  // Dimensions have no names.
  template <class Names>
  T refine_names(const Names&) const {
    LAMELLA_CHECK_NOT_IMPLEMENTED(false, "refine_names: expected a tensor without names");
    return T();
  }
  bool is_variable() const { return this->defined(); }
  // This tensor, borrowed, or a copy where it is not contiguous in the format.
  MaybeOwned<T> expect_contiguous(MemoryFormat format = MemoryFormat::Contiguous) const& {
    return this->is_contiguous(format) ? MaybeOwned<T>::borrowed(self())
                                       : MaybeOwned<T>::owned(self().contiguous(format));
  }
  MaybeOwned<T> expect_contiguous(MemoryFormat = MemoryFormat::Contiguous) && = delete;
  TensorMemory storage() const {
    LAMELLA_CHECK(this->defined(), "storage: expected a tensor that is defined");
    return TensorMemory(*this);
  }
  // Sizes are plain integers.
  IntArrayRef sym_sizes() const { return this->sizes(); }
  IntArrayRef sym_strides() const { return this->strides(); }
  int64_t sym_size(int64_t dim) const { return this->size(dim); }
  int64_t sym_stride(int64_t dim) const { return this->stride(dim); }
  int64_t sym_numel() const { return this->numel(); }
  int64_t sym_storage_offset() const { return this->storage_offset(); }
  bool is_sparse() const { return this->layout() == Layout::Sparse; }
  bool is_quantized() const { return false; }
  bool is_mkldnn() const { return false; }
  // Lamella never pins host memory.
  bool is_pinned() const { return false; }

  // An accessor with sizes and strides of its own, 32 or 64 bits wide. Needs packed_accessor.h.
  template <class U, size_t N, template <class> class PtrTraits = DefaultPtrTraits,
            class Index = int64_t>
  PackedTensorAccessor<U, N, PtrTraits, Index> generic_packed_accessor() const {
    return PackedTensorAccessor<U, N, PtrTraits, Index>(self().template accessor<U, N>());
  }
  template <class U, size_t N, template <class> class PtrTraits = DefaultPtrTraits>
  PackedTensorAccessor<U, N, PtrTraits, int32_t> packed_accessor32() const {
    return generic_packed_accessor<U, N, PtrTraits, int32_t>();
  }
  template <class U, size_t N, template <class> class PtrTraits = DefaultPtrTraits>
  PackedTensorAccessor<U, N, PtrTraits, int64_t> packed_accessor64() const {
    return generic_packed_accessor<U, N, PtrTraits, int64_t>();
  }

 private:
  const T& self() const { return static_cast<const T&>(*this); }
  T& self() { return static_cast<T&>(*this); }
};

}  // namespace lamella
