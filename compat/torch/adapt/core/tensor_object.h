// TensorObject: a tensor's header with the members of PyTorch's TensorImpl that code reads through
// Tensor::unsafeGetTensorImpl(), and makes with make_intrusive; StorageObject: memory that code
// allocates itself and makes tensors over. Classes cannot add data to a tensor by deriving from
// TensorObject.
#pragma once
#include "lamella/abi/autograd.h"
#include "lamella/core/device_interfaces.h"
#include "lamella/core/intrusive_ptr.h"
#include "lamella/core/tensor_base.h"
#include "lamella/dispatch/dispatch_key.h"

namespace lamella {

// How a view came about, as far as writes to it are restricted.
enum class CreationMeta : uint8_t {
  DEFAULT,
  IN_CUSTOM_FUNCTION,
  MULTI_OUTPUT_NODE,
  NO_GRAD_MODE,
  INFERENCE_MODE
};

// Data that a backend keeps with a tensor. Tensors here have no place for it.
struct BackendMeta : intrusive_ptr_target {
  virtual intrusive_ptr<BackendMeta> clone(const intrusive_ptr<BackendMeta>& self) const {
    return self;
  }
};

struct TensorObject;
// The autograd part of a tensor. Its address is the tensor's.
struct AutogradPart {
  bool has_bw_view() const {
    return lamella_tensor_base(
               reinterpret_cast<lamella_tensor*>(const_cast<AutogradPart*>(this))) != nullptr;
  }
  CreationMeta get_creation_meta() const;
};

struct TensorObject : lamella_tensor {
  enum ImplType { VIEW };
  class Version {
   public:
    explicit Version(lamella_tensor* tensor) : tensor_(tensor) {}
    uint32_t current_version() const { return lamella_tensor_version(tensor_); }
    bool enabled() const { return (tensor_->flags & LAMELLA_TENSOR_INFERENCE) == 0; }
    void bump() const { lamella_tensor_bump_version(tensor_); }

   private:
    lamella_tensor* tensor_;
  };

  TensorBase tensor() const { return TensorBase::borrow(const_cast<TensorObject*>(this)); }
  DispatchKeySet key_set() const { return DispatchKeySet::from_raw_repr(lamella_tensor::key_set); }
  IntArrayRef sizes() const { return {lamella_tensor::sizes, static_cast<size_t>(ndim)}; }
  IntArrayRef strides() const { return {lamella_tensor::strides, static_cast<size_t>(ndim)}; }
  int64_t dim() const { return ndim; }
  int64_t size(int64_t d) const { return tensor().size(d); }
  int64_t stride(int64_t d) const { return tensor().stride(d); }
  int64_t numel() const { return lamella_tensor::numel; }
  int64_t storage_offset() const { return lamella_tensor::storage_offset; }
  TypeMeta dtype() const { return TypeMeta(static_cast<ScalarType>(scalar_type)); }
  Device device() const { return tensor().device(); }
  const void* data() const { return lamella_tensor::data; }
  void* mutable_data() { return tensor().mutable_data_ptr(); }
  bool has_storage() const { return lamella_tensor::storage != nullptr; }
  bool is_contiguous(MemoryFormat format = MemoryFormat::Contiguous) const {
    return tensor().is_contiguous(format);
  }
  bool is_inference() const { return (flags & LAMELLA_TENSOR_INFERENCE) != 0; }
  bool requires_grad() const { return (flags & LAMELLA_TENSOR_REQUIRES_GRAD) != 0; }
  bool is_wrapped_number() const { return (flags & LAMELLA_TENSOR_WRAPPED_NUMBER) != 0; }
  void set_wrapped_number(bool on) { lamella_tensor_set_wrapped_number(this, on); }
  Version version_counter() { return Version(this); }
  void bump_version() { lamella_tensor_bump_version(this); }
  AutogradPart* autograd_meta() { return reinterpret_cast<AutogradPart*>(this); }
  BackendMeta* get_backend_meta() const { return nullptr; }
  intrusive_ptr<BackendMeta> get_backend_meta_intrusive_ptr() const { return {}; }
  void set_backend_meta(const intrusive_ptr<BackendMeta>&) {
    LAMELLA_CHECK_NOT_IMPLEMENTED(false, "set_backend_meta: tensors keep no data of a backend");
  }
  // Takes the memory, shape, dtype and device of another tensor.
  void shallow_copy_from(const TensorBase& source) {
    detail::check(lamella_tensor_set_data(this, source.impl()));
  }
  // Gives the tensor another shape over its memory. RuntimeError if the memory is too small.
  void set_sizes_and_strides(IntArrayRef sizes, IntArrayRef strides,
                             std::optional<int64_t> offset = std::nullopt) {
    LAMELLA_CHECK(sizes.size() == strides.size(),
                  "set_sizes_and_strides: expected sizes and strides of one length, got ",
                  sizes.size(), " and ", strides.size());
    lamella_tensor* view = nullptr;
    detail::check(lamella_tensor_as_strided(this, static_cast<int32_t>(sizes.size()), sizes.data(),
                                            strides.data(), offset.value_or(storage_offset()),
                                            &view));
    const uint64_t keys = lamella_tensor::key_set;
    shallow_copy_from(TensorBase::adopt(view));
    lamella_tensor::key_set = keys;
  }
  void set_sizes_contiguous(IntArrayRef sizes) {
    std::vector<int64_t> strides(sizes.size());
    uint64_t step = 1;
    for (size_t i = sizes.size(); i-- > 0;
         step *= sizes[i] > 1 ? static_cast<uint64_t>(sizes[i]) : 1) {
      strides[i] = static_cast<int64_t>(step);
    }
    set_sizes_and_strides(sizes, strides);
  }
  // Calls no longer pass through autograd on their way down.
  void remove_autograd_key() {
    lamella_tensor::key_set =
        (key_set() - autograd_dispatch_keyset_with_ADInplaceOrView).raw_repr();
  }
};
inline CreationMeta AutogradPart::get_creation_meta() const {
  const auto* tensor = reinterpret_cast<const lamella_tensor*>(this);
  if ((tensor->flags & LAMELLA_TENSOR_INFERENCE) != 0) return CreationMeta::INFERENCE_MODE;
  if ((tensor->flags & LAMELLA_TENSOR_NO_GRAD_VIEW) != 0) return CreationMeta::NO_GRAD_MODE;
  return CreationMeta::DEFAULT;
}

// PyTorch's StorageImpl: memory of an allocator, which tensors share.
class StorageObject : public intrusive_ptr_target {
 public:
  struct use_byte_size_t {};
  StorageObject(use_byte_size_t, size_t nbytes, interfaces::DataPtr data,
                interfaces::Allocator* allocator, bool resizable)
      : data_(std::move(data)), nbytes_(nbytes), allocator_(allocator), resizable_(resizable) {}
  StorageObject(use_byte_size_t tag, size_t nbytes, interfaces::Allocator* allocator,
                bool resizable)
      : StorageObject(tag, nbytes, allocator->allocate(nbytes), allocator, resizable) {}

  size_t nbytes() const { return nbytes_; }
  const void* data() const { return data_.get(); }
  void* mutable_data() { return data_.get(); }
  const interfaces::DataPtr& data_ptr() const { return data_; }
  interfaces::DataPtr& mutable_data_ptr() { return data_; }
  interfaces::Allocator* allocator() const { return allocator_; }
  bool resizable() const { return resizable_; }
  Device device() const { return data_.device(); }
  DeviceType device_type() const { return device().type(); }

 private:
  interfaces::DataPtr data_;
  size_t nbytes_;
  interfaces::Allocator* allocator_;
  bool resizable_;
};

// The tensor with all bytes of the memory.
inline TensorBase bytes_of(intrusive_ptr<StorageObject> storage) {
  const Device device = storage->device();
  const auto size = static_cast<int64_t>(storage->nbytes());
  void* data = storage->mutable_data();
  lamella_tensor* made = nullptr;
  detail::check(lamella_tensor_from_blob(
      data, 1, &size, nullptr, static_cast<uint8_t>(ScalarType::Byte),
      static_cast<uint8_t>(device.type()), device.index(),
      [](void* kept) { intrusive_ptr<StorageObject>::reclaim(static_cast<StorageObject*>(kept)); },
      storage.release(), &made));
  return TensorBase::adopt(made);
}

// The object of undefined tensors.
struct UndefinedTensorImpl {
  static TensorObject* singleton() { return nullptr; }
};

// A key, or several, as an argument.
struct OwnKeys {
  OwnKeys(DispatchKeySet keys) : bits(keys.raw_repr()) {}             // NOLINT: implicit
  OwnKeys(DispatchKey key) : bits(DispatchKeySet(key).raw_repr()) {}  // NOLINT: implicit
  uint64_t bits;
};

// A tensor counts the references of its header. make() gives one without elements, with these keys
// and those of autograd.
template <class Null>
class intrusive_ptr<TensorObject, Null> : public TensorBase {
 public:
  intrusive_ptr() = default;
  intrusive_ptr(TensorBase tensor) : TensorBase(std::move(tensor)) {}  // NOLINT: implicit
  static intrusive_ptr make(OwnKeys keys, TypeMeta dtype, std::optional<Device> device) {
    LAMELLA_CHECK(device.has_value(), "TensorImpl: expected a device, got none");
    const int64_t size = 0;
    lamella_tensor* made = nullptr;
    detail::check(lamella_tensor_from_blob(
        nullptr, 1, &size, nullptr, static_cast<uint8_t>(dtype.toScalarType()),
        static_cast<uint8_t>(device->type()), device->index(), nullptr, nullptr, &made));
    made->key_set =
        keys.bits | (made->key_set & autograd_dispatch_keyset_with_ADInplaceOrView.raw_repr() &
                     ~detail::kBackendMask);
    return TensorBase::adopt(made);
  }
  // Over the memory of a tensor, or of a c10::Storage or StorageObject.
  static intrusive_ptr make(const TensorBase& memory, OwnKeys keys, TypeMeta dtype) {
    intrusive_ptr made = make(keys, dtype, memory.device());
    const uint64_t all = made.key_set();
    made->shallow_copy_from(make(TensorObject::VIEW, memory, keys, dtype));
    made.impl()->key_set = all;
    return made;
  }
  static intrusive_ptr make(intrusive_ptr<StorageObject> memory, OwnKeys keys, TypeMeta dtype) {
    return make(bytes_of(std::move(memory)), keys, dtype);
  }
  // A view of the tensor whose memory it is.
  static intrusive_ptr make(TensorObject::ImplType, const TensorBase& memory, OwnKeys keys,
                            TypeMeta dtype) {
    const int64_t size = 0, stride = 1;
    lamella_tensor* made = nullptr;
    detail::check(lamella_tensor_as_strided(memory.impl(), 1, &size, &stride, 0, &made));
    made->scalar_type = static_cast<uint8_t>(dtype.toScalarType());
    made->key_set = keys.bits;
    return TensorBase::adopt(made);
  }
  TensorObject* get() const { return unsafeGetTensorImpl(); }
  TensorObject* operator->() const { return get(); }
  TensorObject& operator*() const { return *get(); }
  explicit operator bool() const { return defined(); }
};

// The key of a tensor's backend: its highest key below autograd.
inline DispatchKey legacyExtractDispatchKey(DispatchKeySet keys) {
  return (keys - autograd_dispatch_keyset_with_ADInplaceOrView -
          DispatchKeySet(DispatchKey::Functionalize) -
          DispatchKeySet(DispatchKey::PythonDispatcher))
      .highestPriorityTypeId();
}
inline DispatchKey legacyExtractDispatchKey(uint64_t keys) {
  return legacyExtractDispatchKey(DispatchKeySet::from_raw_repr(keys));
}

}  // namespace lamella
