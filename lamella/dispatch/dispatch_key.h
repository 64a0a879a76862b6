// DispatchKey and DispatchKeySet: which layers and which backend a call goes through.
// Derived from lamella/abi/dispatch_keys.def; see Note [Keys, backends and functionalities] there.
#pragma once
#include <cstddef>
#include <cstdint>

#include "lamella/abi/abi.h"
#include "lamella/core/key_set.h"
#include "lamella/core/macros.h"

namespace lamella {

namespace detail {
// Ranks of the functionalities that are split by backend.
enum class SplitRank : uint8_t {
#define LAMELLA_FUNCTIONALITY(name, group)
#define LAMELLA_SPLIT(name, prefix, group) name,
#include "lamella/abi/dispatch_keys.def"
  Count
};
static_assert(static_cast<int>(SplitRank::Count) <= LAMELLA_SPLIT_FUNCTIONALITIES);
inline constexpr uint16_t kSplitBase = 1 + LAMELLA_FUNCTIONALITY_BITS;
}  // namespace detail

// A run-time key's value is its slot; alias keys come behind the slots.
enum class DispatchKey : uint16_t {
  Undefined = 0,
#define LAMELLA_FUNCTIONALITY(name, group) name = 1 + static_cast<int>(detail::Functionality::name),
#include "lamella/abi/dispatch_keys.def"
#define LAMELLA_SPLIT_KEY(backend, number, text, prefix, split)                         \
  prefix##backend = detail::kSplitBase +                                                \
                    static_cast<int>(detail::SplitRank::split) * LAMELLA_BACKEND_BITS + \
                    static_cast<int>(BackendComponent::backend##Bit),
#define LAMELLA_FUNCTIONALITY(name, group)
#define LAMELLA_SPLIT(name, prefix, group)          \
  LAMELLA_BACKENDS(LAMELLA_SPLIT_KEY, prefix, name) \
  StartOf##name##Backends = prefix##CPU, EndOf##name##Backends = prefix##Meta,
#include "lamella/abi/dispatch_keys.def"
#undef LAMELLA_SPLIT_KEY
  EndOfRuntimeBackendKeys = EndOfAutocastFunctionalityBackends,
  FirstAlias = LAMELLA_SLOTS - 1,
#define LAMELLA_ALIAS(name) name,
#include "lamella/abi/dispatch_keys.def"
  EndOfKeys,
  StartOfAliasKeys = FirstAlias + 1,
  EndOfAliasKeys = EndOfKeys - 1,
  EndOfFunctionalityKeys = EndOfKeys,  // the end of a walk through a key set
#define LAMELLA_SYNONYM(name, key) name = key,
#include "lamella/abi/dispatch_keys.def"
  None = 0xffff,  // "no key given" in registrations
};

inline constexpr bool is_alias_key(DispatchKey key) {
  return key > DispatchKey::FirstAlias && key < DispatchKey::EndOfKeys;
}
inline constexpr bool is_runtime_key(DispatchKey key) {
  return static_cast<uint16_t>(key) < LAMELLA_SLOTS;
}

namespace detail {
// For each bit of a key set as the highest one: the first slot, and whether backends choose.
struct SlotTable {
  uint16_t base[64];
  uint32_t backend_mask[64];
};
inline constexpr SlotTable make_slot_table() {
  SlotTable table{};
  for (int f = 0; f < LAMELLA_FUNCTIONALITY_BITS; ++f) {
    table.base[LAMELLA_BACKEND_BITS + f] = static_cast<uint16_t>(1 + f);
  }
  auto split = [&table](Functionality f, SplitRank rank) {
    int bit = LAMELLA_BACKEND_BITS + static_cast<int>(f);
    table.base[bit] =
        static_cast<uint16_t>(kSplitBase + static_cast<int>(rank) * LAMELLA_BACKEND_BITS);
    table.backend_mask[bit] = (1u << LAMELLA_BACKEND_BITS) - 1;
  };
#define LAMELLA_FUNCTIONALITY(name, group)
#define LAMELLA_SPLIT(name, prefix, group) split(Functionality::name, SplitRank::name);
#define LAMELLA_SHARED(name, to, group) split(Functionality::name, SplitRank::to);
#include "lamella/abi/dispatch_keys.def"
  return table;
}
LAMELLA_HIDDEN inline constexpr SlotTable kSlotTable = make_slot_table();

// The slot that serves a key set: two bit scans and one small table.
inline constexpr uint32_t slot_of(uint64_t key_set) {
  uint64_t high = 63u ^ static_cast<uint64_t>(__builtin_clzll(key_set | 1));
  uint32_t backends = static_cast<uint32_t>(key_set) & kSlotTable.backend_mask[high];
  return kSlotTable.base[high] + (31u ^ static_cast<uint32_t>(__builtin_clz(backends | 1)));
}
inline constexpr Functionality functionality_of_split(int rank) {
  constexpr Functionality table[] = {
#define LAMELLA_FUNCTIONALITY(name, group)
#define LAMELLA_SPLIT(name, prefix, group) Functionality::name,
#include "lamella/abi/dispatch_keys.def"
  };
  return table[rank];
}
}  // namespace detail

// A set of run-time keys as 64 bits: backends below, functionalities above; the highest wins.
class DispatchKeySet final {
 public:
  enum Full { FULL };
  enum FullAfter { FULL_AFTER };
  enum Raw { RAW };

  constexpr DispatchKeySet() = default;
  constexpr DispatchKeySet(Full) : bits_(~uint64_t{0}) {}
  // Every functionality of lower priority than the key's, and every backend.
  constexpr DispatchKeySet(FullAfter, DispatchKey key)
      : bits_(detail::kBackendMask | (functionality_bits(key) - 1)) {}
  constexpr DispatchKeySet(Raw, uint64_t bits) : bits_(bits) {}
  constexpr explicit DispatchKeySet(BackendComponent backend)
      : bits_(uint64_t{1} << static_cast<int>(backend)) {}
  // A split key gives its functionality and its backend; an alias key the functionality that it
  // stands for, where it stands for one.
  constexpr explicit DispatchKeySet(DispatchKey key)
      : bits_(functionality_bits(key) | backend_bits(key)) {}
  template <class Key, size_t N>
  constexpr explicit DispatchKeySet(const Key (&keys)[N]) {
    for (Key key : keys) bits_ |= DispatchKeySet(key).bits_;
  }

  constexpr bool has(DispatchKey key) const {
    uint64_t bits = DispatchKeySet(key).bits_;
    return bits != 0 && (bits_ & bits) == bits;
  }
  constexpr bool has_backend(BackendComponent backend) const {
    return (bits_ >> static_cast<int>(backend)) & 1;
  }
  constexpr bool has_any(DispatchKeySet other) const {
    return (bits_ & other.bits_ & ~detail::kBackendMask) != 0;
  }
  constexpr bool has_all(DispatchKeySet other) const {
    return (bits_ & other.bits_) == other.bits_;
  }
  constexpr bool isSupersetOf(DispatchKeySet other) const { return has_all(other); }
  constexpr DispatchKeySet operator|(DispatchKeySet other) const {
    return {RAW, bits_ | other.bits_};
  }
  constexpr DispatchKeySet operator&(DispatchKeySet other) const {
    return {RAW, bits_ & other.bits_};
  }
  // Takes away functionalities; the backends stay, since other functionalities may need them.
  constexpr DispatchKeySet operator-(DispatchKeySet other) const {
    return {RAW, bits_ & (detail::kBackendMask | ~other.bits_)};
  }
  constexpr DispatchKeySet operator^(DispatchKeySet other) const {
    return {RAW, bits_ ^ other.bits_};
  }
  constexpr bool operator==(const DispatchKeySet& other) const = default;
  constexpr DispatchKeySet add(DispatchKey key) const { return *this | DispatchKeySet(key); }
  constexpr DispatchKeySet remove(DispatchKey key) const {
    return {RAW, bits_ & ~functionality_bits(key)};
  }
  constexpr DispatchKeySet remove_backend(BackendComponent b) const {
    return {RAW, bits_ & ~(uint64_t{1} << static_cast<int>(b))};
  }
  constexpr bool empty() const { return bits_ == 0; }
  // The run-time keys, lowest priority first: a split functionality's once for each backend.
  class iterator;
  constexpr iterator begin() const;
  constexpr iterator end() const;
  constexpr uint64_t raw_repr() const { return bits_; }
  static constexpr DispatchKeySet from_raw_repr(uint64_t bits) { return {RAW, bits}; }
  static constexpr DispatchKeySet from_raw_repr(DispatchKeySet set) { return set; }
  // The run-time key of highest priority; Undefined for a set without functionality.
  constexpr DispatchKey highestPriorityTypeId() const {
    return static_cast<DispatchKey>(detail::slot_of(bits_));
  }
  constexpr uint32_t slot() const { return detail::slot_of(bits_); }
  constexpr int getDispatchTableIndexForDispatchKeySet() const { return static_cast<int>(slot()); }

 private:
  static constexpr uint64_t functionality_bits(DispatchKey key) {
    uint16_t value = static_cast<uint16_t>(key);
    if (value == 0 || key == DispatchKey::None) return 0;
    if (value < detail::kSplitBase) return uint64_t{1} << (LAMELLA_BACKEND_BITS + value - 1);
    if (value < LAMELLA_SLOTS) {
      int rank = (value - detail::kSplitBase) / LAMELLA_BACKEND_BITS;
      if (rank >= static_cast<int>(detail::SplitRank::Count)) return 0;
      return detail::functionality_bit(detail::functionality_of_split(rank));
    }
    if (key == DispatchKey::Autograd) return detail::functionality_bits(detail::KeyGroup::Autograd);
    if (key == DispatchKey::Autocast) return detail::functionality_bits(detail::KeyGroup::Autocast);
    return 0;
  }
  static constexpr uint64_t backend_bits(DispatchKey key) {
    uint16_t value = static_cast<uint16_t>(key);
    if (value < detail::kSplitBase || value >= LAMELLA_SLOTS) return 0;
    return uint64_t{1} << ((value - detail::kSplitBase) % LAMELLA_BACKEND_BITS);
  }

  uint64_t bits_ = 0;
};

// All autograd keys, with the bookkeeping of in-place writes and views below them.
LAMELLA_HIDDEN inline constexpr DispatchKeySet autograd_dispatch_keyset =
    DispatchKeySet(DispatchKey::Autograd);
LAMELLA_HIDDEN inline constexpr DispatchKeySet autograd_dispatch_keyset_with_ADInplaceOrView =
    DispatchKeySet(DispatchKey::Autograd) | DispatchKeySet(DispatchKey::ADInplaceOrView);
LAMELLA_HIDDEN inline constexpr DispatchKeySet after_autograd_keyset =
    DispatchKeySet(DispatchKeySet::FULL_AFTER, DispatchKey::AutogradOther);
LAMELLA_HIDDEN inline constexpr DispatchKeySet after_ADInplaceOrView_keyset =
    DispatchKeySet(DispatchKeySet::FULL_AFTER, DispatchKey::ADInplaceOrView);

// "CPU", "AutogradCUDA", ...; "Undefined" for 0.
inline const char* toString(DispatchKey key) {
  return lamella_dispatch_key_name(static_cast<uint16_t>(key));
}

}  // namespace lamella
