// Storage: creation and destruction.
#include "lamella/core/storage.h"

#include <utility>

#include "lamella/abi/operators.h"
#include "lamella/core/code.h"
#include "lamella/core/kept_forms.h"
#include "lamella/core/memory_pool.h"
#include "lamella/core/thread_allocator.h"

namespace lamella {
namespace detail {

bool cpu_allocator_replaced = false;

namespace {
constexpr int kHeaderClass = pool_class(sizeof(Storage));
thread_local const lamella_host_memory* host_memory = nullptr;
thread_local Allocator* thread_allocator = nullptr;
thread_local DeviceType thread_allocator_type = DeviceType::CPU;
}  // namespace

void free_foreign_memory(Storage* s) noexcept {
  if (s->has_kept_forms != 0) forget_kept_forms(s);
  if (s->allocator != nullptr) {
    s->allocator->deallocate(s->data, s->capacity, s->device_index, s->context);
  } else if (s->deleter != nullptr) {
    const void* function = code::address_of(s->deleter);
    s->deleter(s->context);
    code::release(function);
  }
}

Storage* make_separate_storage(size_t nbytes, Device device) {
  bool memory = nbytes != 0 && device.type() != DeviceType::Meta;
  Allocator* allocator = memory ? get_allocator(device.type()) : nullptr;
  Storage* s = init_storage(pool_allocate(kHeaderClass), kHeaderClass, device, nullptr, nbytes, 0);
  if (!memory) return s;
  if (host_memory != nullptr && device.is_cpu()) {
    s->data = host_memory->allocate(host_memory->context, nbytes, &s->context);
    if (s->data != nullptr) {
      s->deleter = host_memory->release;
      s->capacity = nbytes;
      code::retain(code::address_of(s->deleter));
      return s;
    }
  }
  try {
    if (!device.is_cpu() && thread_allocator != nullptr && device.type() == thread_allocator_type) {
      s->data = thread_allocator->allocate(nbytes, device.index(), &s->context);
      if (s->data != nullptr) allocator = thread_allocator;
    }
    if (s->data == nullptr) s->data = allocator->allocate(nbytes, device.index(), &s->context);
  } catch (...) {
    pool_free(s, kHeaderClass);
    throw;
  }
  s->allocator = allocator;
  s->capacity = nbytes;
  return s;
}

}  // namespace detail

ThreadAllocator::ThreadAllocator(DeviceType type, Allocator* allocator) noexcept
    : type_before_(std::exchange(detail::thread_allocator_type, type)),
      before_(std::exchange(detail::thread_allocator, allocator)) {}
ThreadAllocator::~ThreadAllocator() {
  detail::thread_allocator_type = type_before_;
  detail::thread_allocator = before_;
}

Storage* make_foreign_storage(void* data, size_t nbytes, Device device, void (*deleter)(void*),
                              void* context) {
  Storage* s = detail::init_storage(detail::pool_allocate(detail::kHeaderClass),
                                    detail::kHeaderClass, device, data, nbytes, nbytes);
  if (deleter != nullptr) code::retain(code::address_of(deleter));
  s->deleter = deleter;
  s->context = context;
  s->flags = kStorageForeign;
  s->is_exposed = 1;
  return s;
}

}  // namespace lamella

extern "C" {

const lamella_host_memory* lamella_set_host_memory(const lamella_host_memory* memory) noexcept {
  return std::exchange(lamella::detail::host_memory, memory);
}

int32_t lamella_tensor_move_blob(lamella_tensor* tensor, void* data) noexcept {
  lamella::Storage* s = tensor->storage;
  constexpr uint32_t kPlain = LAMELLA_TENSOR_CONTIGUOUS;
  constexpr uint32_t kOther = LAMELLA_TENSOR_CONJ | LAMELLA_TENSOR_NEG | LAMELLA_TENSOR_WRAPPER |
                              LAMELLA_TENSOR_REQUIRES_GRAD | LAMELLA_TENSOR_TANGENT;
  const bool is_sole =
      s != nullptr && __atomic_load_n(&tensor->references, __ATOMIC_ACQUIRE) == 1 &&
      __atomic_load_n(&tensor->weak_references, __ATOMIC_ACQUIRE) == 0 &&
      __atomic_load_n(&s->references, __ATOMIC_ACQUIRE) == 1 && s->data == tensor->data &&
      (s->flags & lamella::kStorageForeign) != 0 && s->deleter == nullptr &&
      tensor->autograd == nullptr && tensor->python_object == nullptr &&
      (tensor->flags & (kPlain | kOther)) == kPlain;
  if (!is_sole) return 0;
  s->data = tensor->data = data;
  return 1;
}

void* lamella_tensor_host_memory(const lamella_tensor* tensor,
                                 const lamella_host_memory* memory) noexcept {
  const lamella::Storage* s = tensor->storage;
  return s != nullptr && s->deleter == memory->release ? s->context : nullptr;
}

}  // extern "C"
