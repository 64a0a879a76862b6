// Guards that include or exclude dispatch keys for every call of this thread during their lifetime.
#pragma once
#include "lamella/dispatch/dispatch_key.h"

namespace lamella {

namespace detail {
// Guards end in the reverse order of their beginning, so the former word can be put back.
class ThreadKeysGuard {
 public:
  ThreadKeysGuard(uint64_t lamella_thread_state::*word, uint64_t bits)
      : word_(word), before_(lamella_thread.*word) {
    lamella_thread.*word = before_ | bits;
    added_ = bits & ~before_;
  }
  ~ThreadKeysGuard() { lamella_thread.*word_ &= ~added_; }
  ThreadKeysGuard(const ThreadKeysGuard&) = delete;
  ThreadKeysGuard& operator=(const ThreadKeysGuard&) = delete;

 private:
  uint64_t lamella_thread_state::*word_;
  uint64_t before_;
  uint64_t added_;
};
}  // namespace detail

// Adds keys to every key set computed on this thread.
class IncludeDispatchKeyGuard : detail::ThreadKeysGuard {
 public:
  explicit IncludeDispatchKeyGuard(DispatchKeySet keys)
      : ThreadKeysGuard(&lamella_thread_state::included, keys.raw_repr()) {}
  explicit IncludeDispatchKeyGuard(DispatchKey key)
      : IncludeDispatchKeyGuard(DispatchKeySet(key)) {}
};
// Takes functionalities from every key set computed on this thread. Backends are left: another
// functionality may need them.
class ExcludeDispatchKeyGuard : detail::ThreadKeysGuard {
 public:
  explicit ExcludeDispatchKeyGuard(DispatchKeySet keys)
      : ThreadKeysGuard(&lamella_thread_state::excluded, keys.raw_repr() & ~detail::kBackendMask) {}
  explicit ExcludeDispatchKeyGuard(DispatchKey key)
      : ExcludeDispatchKeyGuard(DispatchKeySet(key)) {}
};

// Below autograd: no gradients are recorded, in-place and view bookkeeping stays.
class AutoDispatchBelowAutograd : ExcludeDispatchKeyGuard {
 public:
  AutoDispatchBelowAutograd() : ExcludeDispatchKeyGuard(autograd_dispatch_keyset) {}
};
// Below the bookkeeping of in-place writes and views as well.
class AutoDispatchBelowADInplaceOrView : ExcludeDispatchKeyGuard {
 public:
  AutoDispatchBelowADInplaceOrView()
      : ExcludeDispatchKeyGuard(autograd_dispatch_keyset_with_ADInplaceOrView) {}
};

}  // namespace lamella
