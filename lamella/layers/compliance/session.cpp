// One call of a composite kernel: makes the guards of its tensors and checks them.
#include "lamella/layers/compliance/session.h"

#include "lamella/abi/autograd.h"
#include "lamella/core/error.h"

namespace lamella::compliance {
namespace {

// A flag for type promotion that composite kernels may set on tensors that they make from numbers.
constexpr uint32_t kFree = LAMELLA_TENSOR_WRAPPED_NUMBER;

void drop_trap(void* context) { delete static_cast<std::shared_ptr<Trap>*>(context); }

ScalarType dtype_of(const lamella_tensor* t) { return static_cast<ScalarType>(t->scalar_type); }
IntArrayRef sizes_of(const lamella_tensor* t) { return {t->sizes, static_cast<size_t>(t->ndim)}; }
IntArrayRef strides_of(const lamella_tensor* t) {
  return {t->strides, static_cast<size_t>(t->ndim)};
}
// The flags of a tensor's guard: a view may require gradients without having the flag itself.
uint32_t flags_for(lamella_tensor* real) {
  bool required = lamella_tensor_requires_grad(real) != 0;
  return required ? real->flags | LAMELLA_TENSOR_REQUIRES_GRAD
                  : real->flags & ~static_cast<uint32_t>(LAMELLA_TENSOR_REQUIRES_GRAD);
}

}  // namespace

void Session::fail(const std::string& what) const {
  throw Error(name() + ": expected its composite kernel only to call operators, but it " + what);
}

Storage* Session::storage_for(Storage* real, const std::string& origin) {
  auto [at, fresh] = storages_.try_emplace(real);
  GuardedStorage& made = at->second;
  if (fresh) {
    made.origin = origin;
    Device device(real->device_type, real->device_index);
    if (real->data != nullptr && real->nbytes > 0) {
      made.trap = std::make_shared<Trap>(real->nbytes);
      auto context = std::make_unique<std::shared_ptr<Trap>>(made.trap);
      made.storage =
          make_foreign_storage(made.trap->data(), real->nbytes, device, &drop_trap, context.get());
      context.release();
    } else {
      made.storage = make_foreign_storage(nullptr, real->nbytes, device, nullptr, nullptr);
    }
    real_storages_[made.storage] = real;
    return made.storage;  // the first tensor takes the first reference
  }
  storage_retain(made.storage);
  return made.storage;
}

TensorBase Session::guard(const TensorBase& tensor, const std::string& origin) {
  lamella_tensor* t = tensor.impl();
  if (t == nullptr || t->storage == nullptr || by_guard_.count(t) != 0) return tensor;
  if (auto at = by_real_.find(t); at != by_real_.end()) return guarded_[at->second].guard;
  guarded_.reserve(guarded_.size() + 1);
  TensorBase guard = make_tensor(storage_for(t->storage, origin), sizes_of(t), strides_of(t),
                                 t->storage_offset, dtype_of(t), t->key_set);
  guard.impl()->flags = flags_for(t);
  by_real_[t] = by_guard_[guard.impl()] = guarded_.size();
  guarded_.push_back({tensor, guard, origin, guard.impl()->flags, t->key_set});
  return guard;
}

void Session::check_metadata(const Guarded& guarded) const {
  const lamella_tensor* guard = guarded.guard.impl();
  const lamella_tensor* real = guarded.real.impl();
  const char* what = nullptr;
  if (!sizes_of(guard).equals(sizes_of(real))) {
    what = "sizes";
  } else if (!strides_of(guard).equals(strides_of(real)) ||
             guard->storage_offset != real->storage_offset) {
    what = "strides";
  } else if (guard->scalar_type != real->scalar_type) {
    what = "dtype";
  } else if (((guard->flags ^ guarded.flags) & ~kFree) != 0 || guard->key_set != guarded.key_set) {
    what = "flags";
  } else if (auto at = real_storages_.find(guard->storage);
             at == real_storages_.end() || at->second != real->storage) {
    what = "storage";
  }
  if (what != nullptr) fail(std::string("changed the ") + what + " of " + guarded.origin);
}

TensorBase Session::real(const TensorBase& tensor) {
  lamella_tensor* t = tensor.impl();
  if (t == nullptr) return tensor;
  auto at = by_guard_.find(t);
  if (at == by_guard_.end()) {
    if (auto storage = real_storages_.find(t->storage); storage != real_storages_.end()) {
      fail("made a view of " + storages_.at(storage->second).origin + " itself");
    }
    return tensor;
  }
  const Guarded& guarded = guarded_[at->second];
  check_metadata(guarded);
  lamella_tensor* real = guarded.real.impl();
  real->flags = (real->flags & ~kFree) | (t->flags & kFree);
  return guarded.real;
}

void Session::renew(const TensorBase& tensor) {
  auto at = by_guard_.find(tensor.impl());
  if (at == by_guard_.end()) return;
  Guarded& guarded = guarded_[at->second];
  auto* guard = TensorImpl::of(guarded.guard);
  lamella_tensor* real = guarded.real.impl();
  if (real_storages_.at(guard->storage) != real->storage) {
    set_storage(guard, storage_for(real->storage, guarded.origin), sizes_of(real), strides_of(real),
                real->storage_offset);
  } else if (!sizes_of(guard).equals(sizes_of(real)) ||
             !strides_of(guard).equals(strides_of(real)) ||
             guard->storage_offset != real->storage_offset) {
    set_sizes_and_strides(guard, sizes_of(real), strides_of(real), real->storage_offset);
  }
  guard->scalar_type = real->scalar_type;
  guard->key_set = guarded.key_set = real->key_set;
  guard->flags = guarded.flags = flags_for(real);
}

void Session::renew_flags() {
  for (Guarded& guarded : guarded_) {
    lamella_tensor* guard = guarded.guard.impl();
    lamella_tensor* real = guarded.real.impl();
    bool untouched =
        ((guard->flags ^ guarded.flags) & ~kFree) == 0 && guard->key_set == guarded.key_set;
    if (!untouched || (flags_for(real) == guarded.flags && real->key_set == guarded.key_set)) {
      continue;
    }
    guard->key_set = guarded.key_set = real->key_set;
    guarded.flags = flags_for(real);
    guard->flags = (guarded.flags & ~kFree) | (guard->flags & kFree);
  }
}

void Session::check_memory() {
  for (auto& [real, guarded] : storages_) {
    if (guarded.reported || guarded.trap == nullptr || !guarded.trap->touched()) continue;
    guarded.reported = true;
    fail("read or wrote the elements of " + guarded.origin);
  }
}

}  // namespace lamella::compliance
