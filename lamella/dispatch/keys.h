// Names of dispatch keys, and the sets of run-time keys that alias keys stand for.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lamella/dispatch/dispatch_key.h"

namespace lamella {

// "AutogradCPU" for a run-time or alias key; "" for a number that names none.
const std::string& dispatch_key_name(DispatchKey key);
// Synonyms included.
std::optional<DispatchKey> dispatch_key_from_name(std::string_view name);
// "{CPU, AutogradCPU}", highest first.
std::string to_string(DispatchKeySet keys);
// The run-time keys of a set, highest priority first.
std::vector<DispatchKey> keys_by_priority(DispatchKeySet keys);
// All run-time keys that have a name, by slot.
const std::vector<DispatchKey>& runtime_keys();

// The split functionality of a run-time key and its backend, where it has them.
struct SplitKey {
  detail::SplitRank rank;
  int backend;
};
std::optional<SplitKey> split_key(DispatchKey key);
// A key at which a backend's own kernel is registered: CPU, SparseCUDA, MkldnnCPU, ...
bool is_backend_key(DispatchKey key);
bool is_autograd_key(DispatchKey key);
bool is_autocast_key(DispatchKey key);
// For AutogradCPU the key CPU; for AutogradOther Undefined.
DispatchKey backend_of_autograd(DispatchKey key);
// Whether a kernel for `alias` serves `key`, other rules aside.
bool alias_includes(DispatchKey alias, DispatchKey key);

}  // namespace lamella
