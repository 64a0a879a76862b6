// Names and groups of dispatch keys, all derived from dispatch_keys.def.
#include "lamella/dispatch/keys.h"

#include <unordered_map>

#include "lamella/core/error.h"

namespace lamella {
namespace {

using detail::SplitRank;

// A split functionality's own number is not a run-time key; its backends' keys are.
bool has_own_slot(DispatchKey key) { return DispatchKeySet(key).highestPriorityTypeId() == key; }

template <detail::KeyGroup group>
bool is_in(DispatchKey key) {
  constexpr uint64_t bits = detail::functionality_bits(group);
  return (DispatchKeySet(key).raw_repr() & bits) != 0 && has_own_slot(key);
}

struct Names {
  std::vector<std::string> by_value = std::vector<std::string>(LAMELLA_SLOTS + 64);
  std::unordered_map<std::string, DispatchKey> by_name;
  std::vector<DispatchKey> runtime;

  void add(DispatchKey key, std::string name) {
    by_name.emplace(name, key);
    by_value[static_cast<size_t>(key)] = std::move(name);
  }
  Names() {
    add(DispatchKey::Undefined, "Undefined");
#define LAMELLA_FUNCTIONALITY(name, group) add(DispatchKey::name, #name);
#include "lamella/abi/dispatch_keys.def"
#define LAMELLA_SPLIT_KEY(backend, number, text, prefix) \
  add(DispatchKey::prefix##backend, #prefix #backend);
#define LAMELLA_FUNCTIONALITY(name, group)
#define LAMELLA_SPLIT(name, prefix, group) LAMELLA_BACKENDS(LAMELLA_SPLIT_KEY, prefix)
#include "lamella/abi/dispatch_keys.def"
#undef LAMELLA_SPLIT_KEY
#define LAMELLA_ALIAS(name) add(DispatchKey::name, #name);
#include "lamella/abi/dispatch_keys.def"
#define LAMELLA_SYNONYM(name, key) by_name.emplace(#name, DispatchKey::key);
#include "lamella/abi/dispatch_keys.def"
    for (uint16_t slot = 0; slot < LAMELLA_SLOTS; ++slot) {
      const auto key = static_cast<DispatchKey>(slot);
      if (!by_value[slot].empty() && has_own_slot(key)) runtime.push_back(key);
    }
  }
};

const Names& names() {
  static const Names* table = new Names;
  return *table;
}

}  // namespace

const std::string& dispatch_key_name(DispatchKey key) {
  size_t value = static_cast<size_t>(key);
  static const std::string* none = new std::string;
  return value < names().by_value.size() ? names().by_value[value] : *none;
}

std::optional<DispatchKey> dispatch_key_from_name(std::string_view name) {
  auto found = names().by_name.find(std::string(name));
  if (found == names().by_name.end()) return std::nullopt;
  return found->second;
}

const std::vector<DispatchKey>& runtime_keys() { return names().runtime; }

std::vector<DispatchKey> keys_by_priority(DispatchKeySet keys) {
  std::vector<DispatchKey> result;
  uint64_t bits = keys.raw_repr();
  while ((bits & ~detail::kBackendMask) != 0) {
    DispatchKey key = static_cast<DispatchKey>(detail::slot_of(bits));
    if (result.empty() || result.back() != key) result.push_back(key);
    bits &= ~(uint64_t{1} << (63 - __builtin_clzll(bits)));
  }
  return result;
}

std::string to_string(DispatchKeySet keys) {
  std::string text = "{";
  for (DispatchKey key : keys_by_priority(keys)) {
    if (text.size() > 1) text += ", ";
    text += dispatch_key_name(key);
  }
  return text + "}";
}

std::optional<SplitKey> split_key(DispatchKey key) {
  uint16_t value = static_cast<uint16_t>(key);
  if (value < detail::kSplitBase || value >= LAMELLA_SLOTS) return std::nullopt;
  int rank = (value - detail::kSplitBase) / LAMELLA_BACKEND_BITS;
  return SplitKey{static_cast<SplitRank>(rank),
                  (value - detail::kSplitBase) % LAMELLA_BACKEND_BITS};
}

bool is_backend_key(DispatchKey key) { return is_in<detail::KeyGroup::Backend>(key); }
bool is_autograd_key(DispatchKey key) { return is_in<detail::KeyGroup::Autograd>(key); }
bool is_autocast_key(DispatchKey key) { return is_in<detail::KeyGroup::Autocast>(key); }

DispatchKey backend_of_autograd(DispatchKey key) {
  auto split = split_key(key);
  if (!split || split->rank != SplitRank::AutogradFunctionality) return DispatchKey::Undefined;
  return static_cast<DispatchKey>(detail::kSplitBase +
                                  static_cast<int>(SplitRank::Dense) * LAMELLA_BACKEND_BITS +
                                  split->backend);
}

bool alias_includes(DispatchKey alias, DispatchKey key) {
  auto split = split_key(key);
  bool nested =
      (split && split->rank == SplitRank::NestedTensor) || key == DispatchKey::AutogradNestedTensor;
  switch (alias) {
    case DispatchKey::Autograd:
      return is_autograd_key(key);
    case DispatchKey::Autocast:
      return is_autocast_key(key);
    case DispatchKey::CompositeImplicitAutograd:
      return (is_backend_key(key) || is_autograd_key(key) || key == DispatchKey::Undefined) &&
             !nested;
    case DispatchKey::CompositeImplicitAutogradNestedTensor:
      return nested;
    case DispatchKey::CompositeExplicitAutograd:
    case DispatchKey::CompositeExplicitAutogradNonFunctional:
      return is_backend_key(key) || key == DispatchKey::Undefined;
    case DispatchKey::FuncTorchBatchedDecomposition:
      return key == DispatchKey::Batched;
    default:
      return false;
  }
}

}  // namespace lamella

extern "C" {

lamella_status lamella_dispatch_key_from_name(const char* name, uint16_t* key) noexcept {
  if (auto found = lamella::dispatch_key_from_name(name)) {
    *key = static_cast<uint16_t>(*found);
    return LAMELLA_OK;
  }
  std::string text = std::string("unknown dispatch key '") + name + "'";
  return lamella::detail::fail(LAMELLA_VALUE_ERROR, text);
}

const char* lamella_dispatch_key_name(uint16_t key) noexcept {
  return lamella::dispatch_key_name(static_cast<lamella::DispatchKey>(key)).c_str();
}

}  // extern "C"
