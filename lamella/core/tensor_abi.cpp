// The C functions that create and destroy tensors.
#include "lamella/abi/backend.h"
#include "lamella/core/error.h"
#include "lamella/core/memory_pool.h"
#include "lamella/core/tensor_impl.h"
#include "lamella/core/version_counter.h"
#include "lamella/core/wrapper.h"

using lamella::TensorImpl;

namespace {

LAMELLA_COLD void release_python(lamella_tensor* t) {
  if (auto* release = lamella::tensor_hooks().release_python) release(t);
  t->python_object = nullptr;
}

LAMELLA_COLD void release_extras(TensorImpl* t, bool view) {
  if (t->heap_dims != 0) {
    lamella::cpu_free(t->mutable_sizes(), TensorImpl::heap_bytes(t->heap_dims));
    t->heap_dims = 0;
  }
  if (t->has_parked != 0) lamella::release_parked_storages(t);
  t->has_parked = 0;
  uint32_t counter = std::exchange(t->version_counter, 0);
  if (counter != 0 && !view) lamella::detail::release_version_counter(counter);
}

LAMELLA_ALWAYS_INLINE void free_impl(lamella_tensor* t) {
  lamella::detail::pool_free(t, lamella::detail::pool_class(sizeof(TensorImpl)));
}

template <class F>
LAMELLA_ALWAYS_INLINE lamella_status make(lamella_tensor** result, F f) noexcept {
  try {
    *result = f().unsafe_release();
    return LAMELLA_OK;
  } catch (...) {
    *result = nullptr;
    return lamella::detail::status_of_current_exception();
  }
}

// Checks a scalar type that comes from a C caller.
lamella::ScalarType checked_type(uint8_t type, const char* op) {
  auto dtype = static_cast<lamella::ScalarType>(type);
  LAMELLA_CHECK_TYPE(type < 64 && lamella::is_supported(dtype), op,
                     ": expected a supported dtype, got number ", static_cast<int>(type));
  return dtype;
}
lamella::Device checked_device(uint8_t type, int8_t index, const char* op) {
  LAMELLA_CHECK(type < lamella::kDeviceTypes, op, ": expected a known device type, got ",
                static_cast<int>(type));
  lamella::Device device(static_cast<lamella::DeviceType>(type), index);
  if (!device.has_index() && lamella_has_backend(type) != 0) {
    device.set_index(lamella_device_current(type));
  }
  return device;
}
lamella::IntArrayRef checked_list(int32_t ndim, const int64_t* list, const char* op) {
  LAMELLA_CHECK(ndim >= 0 && (ndim == 0 || list != nullptr), op, ": expected ", ndim,
                " sizes and strides, got none");
  return {list, static_cast<size_t>(ndim)};
}

}  // namespace

extern "C" {

void lamella_tensor_destroy(lamella_tensor* tensor) noexcept {
  auto* t = static_cast<TensorImpl*>(tensor);
  if (t->autograd != nullptr) {
    if (auto* release = lamella::tensor_hooks().release_autograd) release(t);
    t->autograd = nullptr;
  }
  if (LAMELLA_UNLIKELY(t->python_object != nullptr)) release_python(t);
  lamella_storage* storage = std::exchange(t->storage, nullptr);
  bool view = t->base != nullptr;
  if (TensorImpl* base = t->base) {  // owns the storage
    t->base = nullptr;
    lamella::detail::release(base);
  } else if (storage != nullptr) {
    lamella::storage_release(storage);
  }
  if (LAMELLA_UNLIKELY((t->heap_dims | t->has_parked | t->version_counter) != 0)) {
    release_extras(t, view);
  }
  // Drops the weak reference that all strong references hold; Note [Reference counts].
  if (LAMELLA_UNLIKELY(__atomic_load_n(&t->weak_references, __ATOMIC_ACQUIRE) != 0)) {
    lamella_tensor_release_weak(t);
  } else {
    free_impl(t);
  }
}

void lamella_tensor_release_weak(lamella_tensor* tensor) noexcept {
  if (lamella::detail::count_down(&tensor->weak_references) == 0) free_impl(tensor);
}

int32_t lamella_tensor_lock(lamella_tensor* tensor) noexcept {
  if (!LAMELLA_ONE_THREAD) {
    return lamella::detail::count_up_unless_zero(&tensor->references) ? 1 : 0;
  }
  // Written as retain() writes it, which says why.
  auto* pair = reinterpret_cast<lamella::detail::reference_pair*>(tensor);
  if (static_cast<uint32_t>(*pair) == 0) return 0;
  ++*pair;
  return 1;
}

lamella_status lamella_tensor_from_blob(void* data, int32_t ndim, const int64_t* sizes,
                                        const int64_t* strides, uint8_t scalar_type,
                                        uint8_t device_type, int8_t device_index,
                                        void (*deleter)(void*), void* context,
                                        lamella_tensor** result) noexcept {
  bool mine = true;  // the deleter is still ours to run
  lamella_status status = make(result, [&] {
    constexpr const char* op = "from_blob";
    lamella::ScalarType dtype = checked_type(scalar_type, op);
    lamella::Device device = checked_device(device_type, device_index, op);
    lamella::IntArrayRef size_list = checked_list(ndim, sizes, op);
    lamella::OptionalIntArrayRef stride_list;
    if (strides != nullptr) stride_list = checked_list(ndim, strides, op);
    mine = false;
    return lamella::make_from_blob(data, size_list, stride_list, dtype, device, deleter, context);
  });
  if (mine && deleter != nullptr) deleter(context);
  return status;
}

lamella_status lamella_tensor_empty(int32_t ndim, const int64_t* sizes, uint8_t scalar_type,
                                    uint8_t device_type, int8_t device_index,
                                    lamella_tensor** result) noexcept {
  return make(result, [&] {
    lamella::ScalarType dtype = checked_type(scalar_type, "empty");
    lamella::Device device = checked_device(device_type, device_index, "empty");
    return lamella::make_empty(checked_list(ndim, sizes, "empty"), dtype, device);
  });
}

lamella_status lamella_tensor_as_strided(lamella_tensor* tensor, int32_t ndim, const int64_t* sizes,
                                         const int64_t* strides, int64_t storage_offset,
                                         lamella_tensor** result) noexcept {
  return make(result, [&] {
    lamella::IntArrayRef size_list = checked_list(ndim, sizes, "as_strided");
    lamella::IntArrayRef stride_list = checked_list(ndim, strides, "as_strided");
    return lamella::make_checked_view(lamella::TensorBase::borrow(tensor), size_list, stride_list,
                                      storage_offset);
  });
}

uint32_t lamella_tensor_version(const lamella_tensor* tensor) noexcept {
  while (lamella::is_batched(tensor)) tensor = lamella::wrapped(tensor);
  return lamella::version_of(tensor);
}

void lamella_tensor_bump_version(lamella_tensor* tensor) noexcept {
  lamella::bump_version(lamella::behind_levels(tensor));
}

void lamella_tensor_expose(lamella_tensor* tensor) noexcept {
  // Wrappers have no memory, and their layers use `reserved` for something else.
  if (tensor->storage == nullptr || tensor->storage->data == nullptr) return;
  if ((tensor->flags & LAMELLA_TENSOR_WRAPPER) != 0) return;
  lamella::expose_storage(tensor->storage);
  __atomic_store_n(&tensor->reserved, 1u, __ATOMIC_RELAXED);
}

size_t lamella_tensor_storage_bytes(const lamella_tensor* tensor) noexcept {
  return tensor->storage != nullptr ? tensor->storage->nbytes : 0;
}

void* lamella_tensor_storage_data(const lamella_tensor* tensor) noexcept {
  if (tensor->storage == nullptr) return nullptr;
  lamella::expose_storage(tensor->storage);
  return tensor->storage->data;
}

void lamella_tensor_set_wrapped_number(lamella_tensor* tensor, int32_t wrapped) noexcept {
  auto* t = static_cast<TensorImpl*>(tensor);
  lamella::set_flag(t, LAMELLA_TENSOR_WRAPPED_NUMBER, wrapped != 0);
}

}  // extern "C"
