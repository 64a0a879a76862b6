// Sorting of values without their positions, for operators that need no more. The keys are sorted
// in the memory of the result: order_keys.h, Note [Keys].
#include <algorithm>
#include <cstring>
#include <vector>

#include "lamella/core/visit_dtype.h"
#include "lamella/kernels/cpu/line_keys.h"
#include "lamella/kernels/cpu/simd/sort_long_words.h"
#include "lamella/kernels/selecting.h"

namespace lamella::native {
namespace {

// What the bits of elements are, given their keys.
template <class U>
struct BitsOfKeys {
  KeyKind kind;
  U zero = 0, nan = 0;  // keys of both zeros are equal, and so are those of all NaN

  explicit BitsOfKeys(const Line& line) : kind(line.kind) {
    if (!kind.is_float) return;
    auto infinity = static_cast<U>(kind.infinity);
    nan = static_cast<U>(infinity | (infinity & (~infinity + 1)) >> 1);
    // The first zero stands for all of them.
    for (int64_t i = 0; i < line.n; ++i) {
      U bits;
      std::memcpy(&bits, line.element(i), sizeof(U));
      if (static_cast<U>(bits << 1) != 0) continue;
      zero = bits;
      break;
    }
  }
  U operator()(U key) const {
    constexpr U kSign = static_cast<U>(U(1) << (sizeof(U) * 8 - 1));
    if (!kind.is_float) return static_cast<U>(key ^ static_cast<U>(kind.flip));
    if (key == kSign) return zero;
    if (key == static_cast<U>(~U(0))) return nan;
    return static_cast<U>(key & kSign ? key ^ kSign : ~key);
  }
};

bool sort_long_on(uint64_t* keys, int64_t n) { return sort_long_words_on(kCPU, keys, n); }
bool sort_long_on(uint32_t* keys, int64_t n) { return sort_long_keys_on(kCPU, keys, n); }

template <class K>
void sort_by_keys(const Line& line, K* keys) {
  for_each_block<K>(line, 0, line.n, [&](const K* some, int64_t count, int64_t at) {
    std::copy(some, some + count, keys + at);
    return true;
  });
  if (!sort_long_on(keys, line.n)) {
    std::sort(keys, keys + line.n, [](K a, K b) {
      count_steps(1);
      return a < b;
    });
  }
  BitsOfKeys<K> bits_of_key(line);
  for (int64_t i = 0; i < line.n; ++i) keys[i] = bits_of_key(keys[i]);
}

// Elements of at most 16 bits are counted.
template <class U>
void sort_by_counts(const Line& line, U* sorted) {
  // Consecutive increments of one counter would wait for each other.
  constexpr size_t kKeys = size_t{1} << (8 * sizeof(U)), kTables = sizeof(U) == 1 ? 4 : 1;
  std::vector<int64_t> counts(kTables * kKeys);
  for_each_block<uint32_t>(line, 0, line.n, [&](const uint32_t* keys, int64_t count, int64_t) {
    for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
      ++counts[i % kTables * kKeys + static_cast<U>(keys[i])];
    }
    return true;
  });
  BitsOfKeys<U> bits_of_key(line);
  for (size_t key = 0; key < kKeys; ++key) {
    for (size_t at = key; at < counts.size(); at += kKeys) {
      sorted = std::fill_n(sorted, counts[at], bits_of_key(static_cast<U>(key)));
    }
  }
}

void sort_values_kernel(const Tensor& line, const Tensor& sorted) {
  visit_real(signed_type(line.scalar_type()), "sort", [](auto) {});
  KeyKind kind = key_kind(line.scalar_type(), false);
  Line all{kind, static_cast<const char*>(line.const_data_ptr()), kind.bytes, line.numel()};
  void* to = sorted.data_ptr();
  if (all.n == 0) return;
  switch (kind.bytes) {
    case 1:
      return sort_by_counts(all, static_cast<uint8_t*>(to));
    case 2:
      return sort_by_counts(all, static_cast<uint16_t*>(to));
    case 4:
      return sort_by_keys(all, static_cast<uint32_t*>(to));
    default:
      return sort_by_keys(all, static_cast<uint64_t*>(to));
  }
}

}  // namespace

LAMELLA_REGISTER_KERNEL(sort_values_on, &sort_values_kernel);

}  // namespace lamella::native
