// all, any and counts of nonzero elements. An element is read as an integer of its width: a
// floating-point number is zero if all its bits except the sign are.
#include "lamella/kernels/cpu/simd/reduce_fold.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {
namespace {

// The bits of T that make it true.
template <class T>
constexpr BitsOf<T> bits_that_count() {
  using U = BitsOf<T>;
  constexpr bool kFraction = !std::is_integral_v<T>;
  return kFraction ? static_cast<U>(static_cast<U>(~U(0)) >> 1) : static_cast<U>(~U(0));
}

enum class Truth { kAny, kAll, kCount };
template <class T, Truth kind>
struct Look {
  using Lane = BitsOf<T>;
  static constexpr Lane kBits = bits_that_count<T>();
  static constexpr Lane kIdentity = kind == Truth::kAll ? kBits : 0;
  template <class X>
  static X lift(X x) {
    if constexpr (kind != Truth::kCount) {
      return x & kBits;
    } else if constexpr (std::is_same_v<X, Lane>) {
      return (x & kBits) != 0 ? 1 : 0;
    } else {
      return (X)((x & kBits) != 0) & 1;
    }
  }
  template <class X>
  static X join(X a, X b) {
    if constexpr (kind == Truth::kAny) {
      return a | b;
    } else if constexpr (kind == Truth::kAll) {
      return a < b ? a : b;
    } else {
      return a + b;
    }
  }
};

// The maximum number of elements that lanes of one byte count without overflow.
constexpr int64_t kCounted = 62 * 4 * kGranuleBytes;

template <class T>
int64_t count_of(const BitsOf<T>* x, int64_t n) {
  using Op = Look<T, Truth::kCount>;
  using U = BitsOf<T>;
  int64_t total = 0;
  while (n > 0) {
    int64_t now = n < kCounted ? n : kCounted;
    if (now >= Granule<U>::kLanes) {
      Granule<U> lanes = fold_lanes<Op>(x, now);
      U each[Granule<U>::kLanes];
      std::memcpy(each, &lanes, sizeof(each));
      for (U lane : each) total += static_cast<int64_t>(lane);
    } else {
      for (int64_t i = 0; i < now; ++i) total += static_cast<int64_t>(Op::lift(x[i]));
    }
    x += now;
    n -= now;
  }
  return total;
}

template <class T, Truth kind>
void along_truth(void* acc, const ReduceInput& in) {
  using U = BitsOf<T>;
  using Op = Look<T, kind>;
  each_line<U>(in, [&](int64_t j, const U* x) {
    if constexpr (kind == Truth::kCount) {
      static_cast<int64_t*>(acc)[j] += count_of<T>(x, in.n);
    } else {
      auto& seen = static_cast<uint8_t*>(acc)[j];
      bool found = fold<Op>(x, in.n) != 0;
      seen = kind == Truth::kAny ? seen | found : seen & found;
    }
  });
}
template <class T, Truth kind>
void across_truth(void* acc, const ReduceInput& in) {
  using U = BitsOf<T>;
  auto row = [&](int64_t r) {
    return reinterpret_cast<const U*>(static_cast<const char*>(in.data) + r * in.stride);
  };
  auto is = [](U x) { return (x & bits_that_count<T>()) != 0; };
  if constexpr (kind == Truth::kCount && sizeof(U) > 1) {
    auto* a = static_cast<int64_t*>(acc);
    for (int64_t r = 0; r < in.count; ++r) {
      const U* x = row(r);
#pragma GCC ivdep
      for (int64_t j = 0; j < in.n; ++j) a[j] += is(x[j]) ? 1 : 0;
    }
  } else if constexpr (kind == Truth::kCount) {
    // Bytes count as many rows as they can.
    constexpr int64_t kRows = 255, kColumns = 256;
    U counts[kColumns];
    for (int64_t first = 0; first < in.count; first += kRows) {
      const int64_t end = in.count - first < kRows ? in.count : first + kRows;
      for (int64_t at = 0; at < in.n; at += kColumns) {
        const int64_t n = in.n - at < kColumns ? in.n - at : kColumns;
        auto* a = static_cast<int64_t*>(acc) + at;
        for (int64_t j = 0; j < n; ++j) counts[j] = 0;
        for (int64_t r = first; r < end; ++r) {
          const U* x = row(r) + at;
          for (int64_t j = 0; j < n; ++j)
            counts[j] = static_cast<U>(counts[j] + (is(x[j]) ? 1 : 0));
        }
        for (int64_t j = 0; j < n; ++j) a[j] += static_cast<int64_t>(counts[j]);
      }
    }
  } else {
    auto* a = static_cast<uint8_t*>(acc);
    for (int64_t r = 0; r < in.count; ++r) {
      const U* x = row(r);
#pragma GCC ivdep
      for (int64_t j = 0; j < in.n; ++j) {
        auto found = static_cast<uint8_t>(is(x[j]) ? 1 : 0);
        a[j] = kind == Truth::kAny ? a[j] | found : a[j] & found;
      }
    }
  }
}

// The accumulators: int64 for counts, bytes for all and any.
template <Truth kind>
struct Kept {
  using Lane = std::conditional_t<kind == Truth::kCount, int64_t, uint8_t>;
  static constexpr Lane kIdentity = kind == Truth::kAll ? 1 : 0;
  static Lane join(Lane a, Lane b) {
    return kind == Truth::kAny   ? static_cast<Lane>(a | b)
           : kind == Truth::kAll ? static_cast<Lane>(a & b)
                                 : static_cast<Lane>(a + b);
  }
};
template <Truth kind, class... T>
constexpr ReduceTable truth_table(const char* name, Types<T...>) {
  ReduceTable table{};
  table.name = name;
  using Op = Kept<kind>;
  using Lane = typename Op::Lane;
  table.loops[slot_of<bool>()] = {sizeof(Lane),
                                  &init_lanes<Op>,
                                  &along_truth<bool, kind>,
                                  &across_truth<bool, kind>,
                                  &merge_lanes<Op>,
                                  &finish_same<Lane, Lane>,
                                  nullptr,
                                  kind == Truth::kCount ? kLong : kByte,
                                  static_cast<int8_t>(kind == Truth::kAny   ? 1
                                                      : kind == Truth::kAll ? 0
                                                                            : -1)};
  ((table.sources[slot_of<T>()] = {kBool, &along_truth<T, kind>, &across_truth<T, kind>}), ...);
  // Types of the same width share loops, because only whether an element is zero matters.
  table.sources[loop_index(kByte)] = table.sources[loop_index(kChar)] = {
      kBool, &along_truth<bool, kind>, &across_truth<bool, kind>};
  table.sources[loop_index(kUInt16)] = table.sources[loop_index(kShort)];
  table.sources[loop_index(kUInt32)] = table.sources[loop_index(kInt)];
  table.sources[loop_index(kUInt64)] = table.sources[loop_index(kLong)];
  table.sources[loop_index(kBFloat16)] = table.sources[loop_index(kHalf)];
  return table;
}
using TruthTypes = Types<int16_t, int32_t, int64_t, Half, float, double>;
LAMELLA_REGISTER_REDUCE(all, truth_table<Truth::kAll>("all", TruthTypes()));
LAMELLA_REGISTER_REDUCE(any, truth_table<Truth::kAny>("any", TruthTypes()));
LAMELLA_REGISTER_REDUCE(count, truth_table<Truth::kCount>("count", TruthTypes()));

}  // namespace
}  // namespace CPU_CAPABILITY
}  // namespace lamella::native
