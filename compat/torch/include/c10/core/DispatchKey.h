// c10::DispatchKey.
#pragma once
#include <c10/lamella_names.h>

#include <cstddef>
#include <iterator>

#include "lamella/core/error.h"
#include "lamella/dispatch/dispatch_key.h"

#include "lamella/core/text_stream.h"

#define C10_FORALL_FUNCTIONALITY_KEYS(_) \
  _(Dense, )                             \
  _(Quantized, Quantized)                \
  _(Sparse, Sparse)                      \
  _(SparseCsr, SparseCsr)                \
  _(NestedTensor, NestedTensor)          \
  _(AutogradFunctionality, Autograd) _(AutocastFunctionality, Autocast)

// Declared in the type's namespace, so that argument-dependent lookup finds it.
namespace lamella {
// Undefined counts as a functionality. Shared functionalities have no keys of their own.
inline constexpr uint8_t num_backends = LAMELLA_BACKEND_BITS;
inline constexpr uint8_t num_functionality_keys =
    1 + static_cast<int>(detail::Functionality::Count);
inline constexpr uint16_t num_runtime_entries = 1
#define LAMELLA_FUNCTIONALITY(name, group) +1
#define LAMELLA_SPLIT(name, prefix, group) +num_backends
#define LAMELLA_SHARED(name, split, group)
#include "lamella/abi/dispatch_keys.def"
    ;

class DispatchKeySet::iterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = DispatchKey;
  using difference_type = std::ptrdiff_t;
  using pointer = const DispatchKey*;
  using reference = DispatchKey;

  // Begins at bit `functionality` of the set, which is at least num_backends.
  constexpr explicit iterator(const uint64_t* set, int functionality = num_backends)
      : set_(*set), bit_(functionality) {
    LAMELLA_CHECK(bit_ <= num_backends + num_functionality_keys,
                  "DispatchKeySet: expected an iterator up to bit ",
                  num_backends + num_functionality_keys, ", got ", bit_);
    settle();
  }
  constexpr DispatchKey operator*() const { return key_; }
  constexpr iterator& operator++() {
    ++backend_;
    settle();
    return *this;
  }
  constexpr iterator operator++(int) {
    iterator before = *this;
    ++*this;
    return before;
  }
  constexpr bool operator==(const iterator& other) const {
    return set_ == other.set_ && key_ == other.key_;
  }

 private:
  // Advances to the next key from here on.
  constexpr void settle() {
    for (; bit_ < num_backends + num_functionality_keys - 1; ++bit_, backend_ = 0) {
      if ((set_ >> bit_ & 1) == 0) continue;
      const uint64_t mask = detail::kSlotTable.backend_mask[bit_];
      const uint64_t rest = (mask == 0 ? 1 : set_ & mask) >> backend_;
      if (rest == 0) continue;
      backend_ += __builtin_ctzll(rest);
      key_ = static_cast<DispatchKey>(detail::kSlotTable.base[bit_] + backend_);
      if ((DispatchKeySet(key_).raw_repr() >> bit_ & 1) != 0) return;
    }
    key_ = DispatchKey::EndOfFunctionalityKeys;
  }
  uint64_t set_;
  int bit_, backend_ = 0;
  DispatchKey key_ = DispatchKey::Undefined;
};
constexpr DispatchKeySet::iterator DispatchKeySet::begin() const { return iterator(&bits_); }
constexpr DispatchKeySet::iterator DispatchKeySet::end() const {
  return iterator(&bits_, num_backends + num_functionality_keys);
}

// The run-time key of a functionality on a backend, the autograd key of a backend, and the highest
// key of a backend's own kernels.
constexpr DispatchKey toRuntimePerBackendFunctionalityKey(DispatchKey functionality,
                                                          BackendComponent backend) {
  return (DispatchKeySet(functionality) | DispatchKeySet(backend)).highestPriorityTypeId();
}
constexpr DispatchKey getAutogradKeyFromBackend(BackendComponent backend) {
  return toRuntimePerBackendFunctionalityKey(DispatchKey::AutogradFunctionality, backend);
}
constexpr DispatchKey highestPriorityBackendTypeId(DispatchKeySet keys) {
  return (keys & DispatchKeySet(
                     DispatchKeySet::RAW,
                     detail::kBackendMask | detail::functionality_bits(detail::KeyGroup::Backend)))
      .highestPriorityTypeId();
}
// The functionality and the backend of a key that is split by backend.
constexpr DispatchKey toFunctionalityKey(DispatchKey key) {
  const uint64_t bits = DispatchKeySet(key).raw_repr() >> num_backends;
  return static_cast<DispatchKey>(bits == 0 ? 0 : 64 - __builtin_clzll(bits));
}
constexpr BackendComponent toBackendComponent(DispatchKey key) {
  const uint64_t bits = DispatchKeySet(key).raw_repr() & detail::kBackendMask;
  return static_cast<BackendComponent>(63 - __builtin_clzll(bits | 1));
}
inline const char* toString(BackendComponent backend) {
#define LAMELLA_NAME(name, ...) #name "Bit",
  constexpr const char* names[] = {LAMELLA_BACKENDS(LAMELLA_NAME)};
#undef LAMELLA_NAME
  return names[static_cast<int>(backend)];
}
LAMELLA_HIDDEN inline constexpr DispatchKey kAutograd = DispatchKey::Autograd;

template <detail::TextStream Stream>
Stream& operator<<(Stream& out, DispatchKey key) {
  return detail::stream(out, toString(key));
}
}  // namespace lamella
