// The keys that the thread adds to and removes from every key set, and the guards for them.
#pragma once
#include <c10/core/DispatchKeySet.h>

#include "lamella/dispatch/guards.h"

namespace lamella {
// The older name.
using AutoNonVariableTypeMode = AutoDispatchBelowAutograd;
}  // namespace lamella

namespace c10::impl {
using lamella::ExcludeDispatchKeyGuard;
using lamella::IncludeDispatchKeyGuard;

// The keys that this thread currently includes and excludes.
struct LocalDispatchKeySet {
  DispatchKeySet included_;
  DispatchKeySet excluded_;
};
inline LocalDispatchKeySet tls_local_dispatch_key_set() {
  return {DispatchKeySet::from_raw_repr(lamella_thread.included),
          DispatchKeySet::from_raw_repr(lamella_thread.excluded)};
}
#define LAMELLA_TLS_IS(included)                                                                \
  inline bool tls_is_dispatch_key_##included(DispatchKey key) {                                 \
    return DispatchKeySet::from_raw_repr(lamella_thread.included).has_any(DispatchKeySet(key)); \
  }                                                                                             \
  inline bool tls_is_dispatch_keyset_##included(DispatchKeySet keys) {                          \
    return DispatchKeySet::from_raw_repr(lamella_thread.included).isSupersetOf(keys);           \
  }
LAMELLA_TLS_IS(included)
LAMELLA_TLS_IS(excluded)
#undef LAMELLA_TLS_IS
}  // namespace c10::impl
