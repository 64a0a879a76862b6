// The keys that the thread adds to and removes from every key set, and the guards for them.
#pragma once
#include <c10/core/DispatchKeySet.h>

#include "lamella/dispatch/guards.h"

namespace c10::impl {
using lamella::ExcludeDispatchKeyGuard;
using lamella::IncludeDispatchKeyGuard;
using lamella::LocalDispatchKeySet;
using lamella::tls_is_dispatch_key_excluded;
using lamella::tls_is_dispatch_key_included;
using lamella::tls_local_dispatch_key_set;
}  // namespace c10::impl
