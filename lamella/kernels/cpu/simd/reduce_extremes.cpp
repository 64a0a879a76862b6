// Largest and smallest elements, and their indices.
#include "lamella/kernels/cpu/simd/reduce_fold.h"
#include "lamella/kernels/cpu/wide_types.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {
namespace {

// Records whether pairs of vectors contained NaN.
template <class L>
struct SeenNan {
  using V = typename Granule<L>::V;
#if defined(CPU_CAPABILITY_AVX512)
  __mmask16 seen = 0;
  void see(V a, V b) {
    if constexpr (sizeof(L) == 4) {
      seen = _kor_mask16(seen, _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q));
    } else {
      seen = _kor_mask16(seen, _mm512_cmp_pd_mask(a, b, _CMP_UNORD_Q));
    }
  }
  bool any() const { return seen != 0; }
#else
  using Bits = typename Granule<L>::Bits;
  Bits seen = Bits{};
  void see(V a, V b) { seen |= (Bits)(a != a) | (Bits)(b != b); }
  bool any() const {
    BitsOf<L> all = 0;
    for (int i = 0; i < Granule<L>::kPartLanes; ++i) all |= seen[i];
    return all != 0;
  }
#endif
};

// The extreme of n elements, or NaN if an element is NaN.
template <class L, bool kLargest, class In>
inline L extreme_of(const In* x, int64_t n) {
  using Op = Ordered<L, kLargest>;
  constexpr int64_t kLanes = Granule<L>::kLanes;
  if constexpr (!std::is_floating_point_v<L>) {
    return fold<Op>(x, n);
  } else {
    if (n < kLanes) return fold<Extreme<L, kLargest>>(x, n);
    Granule<L> best[4];
    for (auto& g : best) g = fill<L>(Op::kIdentity);
    SeenNan<L> nan;
    auto pair = [&](int k, const Granule<L>& a, const Granule<L>& b) {
      best[k] = join<Op>(best[k], a);
      best[k + 1] = join<Op>(best[k + 1], b);
      for (int i = 0; i < Granule<L>::kParts; ++i) nan.see(a.part[i], b.part[i]);
    };
    int64_t i = 0;
    for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
      pair(0, load<L>(x + i), load<L>(x + i + kLanes));
      pair(2, load<L>(x + i + 2 * kLanes), load<L>(x + i + 3 * kLanes));
    }
    // The last granule may fold elements a second time, which does not change the extreme.
    const Granule<L> last = load<L>(x + n - kLanes);
    for (; i + kLanes <= n; i += kLanes) pair(0, load<L>(x + i), last);
    pair(0, last, last);
    if (nan.any()) return std::numeric_limits<L>::quiet_NaN();
    return join_lanes<Op>(join<Op>(join<Op>(best[0], best[2]), join<Op>(best[1], best[3])));
  }
}
template <class L, bool kLargest, class In>
void along_extreme(void* acc, const ReduceInput& in) {
  auto* a = static_cast<L*>(acc);
  each_line<In>(in, [&](int64_t j, const In* x) {
    a[j] = Extreme<L, kLargest>::join(a[j], extreme_of<L, kLargest>(x, in.n));
  });
}

template <class L, bool kLargest>
constexpr ReduceLoops extreme_loops() {
  using Op = Extreme<L, kLargest>;
  ReduceLoops loops = lane_loops<Op, L>();
  loops.along = &along_extreme<L, kLargest, L>;
  return loops;
}
template <bool kLargest, class... T>
constexpr ReduceTable extreme_table(const char* name, Types<T...>) {
  ReduceTable table{};
  table.name = name;
  ((table.loops[slot_of<T>()] = extreme_loops<T, kLargest>()), ...);
  using Op = Extreme<float, kLargest>;
  table.sources[slot_of<bool>()] = {kByte, &along_extreme<uint8_t, kLargest, StoredBool>,
                                    &across_lanes<Extreme<uint8_t, kLargest>, StoredBool>};
  table.sources[slot_of<BFloat16>()] = {kFloat, &along_extreme<float, kLargest, BFloat16>,
                                        &across_lanes<Op, BFloat16>};
  if constexpr (kReadsHalf) {
    table.sources[slot_of<Half>()] = {kFloat, &along_extreme<float, kLargest, Half>,
                                      &across_lanes<Op, Half>};
  }
  return table;
}
LAMELLA_REGISTER_REDUCE(max, extreme_table<true>("max", WideRealTypes()));
LAMELLA_REGISTER_REDUCE(min, extreme_table<false>("min", WideRealTypes()));

// ---- Smallest and largest together ----

// A block's accumulators: the smallest elements of all, then the largest. What is folded in one
// step is in the first-level cache when it is read for the second time.
template <class L>
void init_both(void* acc, int64_t n) {
  init_lanes<Extreme<L, false>>(acc, n);
  init_lanes<Extreme<L, true>>(static_cast<L*>(acc) + n, n);
}
template <class L, class In>
void along_both(void* acc, const ReduceInput& in) {
  along_extreme<L, false, In>(acc, in);
  along_extreme<L, true, In>(static_cast<L*>(acc) + in.count, in);
}
template <class L, class In>
void across_both(void* acc, const ReduceInput& in) {
  across_lanes<Extreme<L, false>, In>(acc, in);
  across_lanes<Extreme<L, true>, In>(static_cast<L*>(acc) + in.n, in);
}
template <class L>
void merge_both(void* acc, const void* other, int64_t n) {
  merge_lanes<Extreme<L, false>>(acc, other, n);
  merge_lanes<Extreme<L, true>>(static_cast<L*>(acc) + n, static_cast<const L*>(other) + n, n);
}
template <class L>
void finish_largest(const void* acc, void* values, int64_t n) {
  std::memcpy(values, static_cast<const L*>(acc) + n, static_cast<size_t>(n) * sizeof(L));
}
template <class... T>
constexpr ReduceTable both_table(Types<T...>) {
  ReduceTable table{};
  table.name = "aminmax";
  ((table.loops[slot_of<T>()] = {2 * sizeof(T), &init_both<T>, &along_both<T, T>,
                                 &across_both<T, T>, &merge_both<T>, &finish_same<T, T>,
                                 &finish_largest<T>, CppTypeToScalarType<T>::value}),
   ...);
  table.sources[slot_of<bool>()] = {kByte, &along_both<uint8_t, StoredBool>,
                                    &across_both<uint8_t, StoredBool>};
  table.sources[slot_of<BFloat16>()] = {kFloat, &along_both<float, BFloat16>,
                                        &across_both<float, BFloat16>};
  if constexpr (kReadsHalf) {
    table.sources[slot_of<Half>()] = {kFloat, &along_both<float, Half>, &across_both<float, Half>};
  }
  return table;
}
LAMELLA_REGISTER_REDUCE(aminmax, both_table(WideRealTypes()));

// ---- Indices ----

// A block's accumulators: the indices of all outputs, -1 before the first element, then the
// elements there. The first of equal elements is taken, and NaN counts as the extreme.
template <class T>
struct Places {
  int64_t* index;
  T* best;
  Places(void* acc, int64_t n)
      : index(static_cast<int64_t*>(acc)), best(reinterpret_cast<T*>(index + n)) {}
};
// True if x, which comes later, replaces `best`.
template <class T, bool kLargest>
inline bool takes_over(T x, T best) {
  if constexpr (std::is_floating_point_v<T>) {
    bool beyond = kLargest ? x > best : x < best;
    return (beyond | (x != x)) & (best == best);
  } else {
    return kLargest ? x > best : x < best;
  }
}
template <class T>
void init_places(void* acc, int64_t n) {
  Places<T> a(acc, n);
  for (int64_t j = 0; j < n; ++j) {
    a.index[j] = -1;
    a.best[j] = T(0);
  }
}
template <class T, bool kLargest>
void merge_places(void* acc, const void* other, int64_t n) {
  Places<T> a(acc, n), b(const_cast<void*>(other), n);
  for (int64_t j = 0; j < n; ++j) {
    if (b.index[j] < 0) continue;
    if (a.index[j] >= 0) {
      // Accumulators of a cascade are not merged in the order of their elements.
      bool equal = a.best[j] == b.best[j] || (a.best[j] != a.best[j] && b.best[j] != b.best[j]);
      bool better = equal ? b.index[j] < a.index[j] : takes_over<T, kLargest>(b.best[j], a.best[j]);
      if (!better) continue;
    }
    a.index[j] = b.index[j];
    a.best[j] = b.best[j];
  }
}
// The index of the first element equal to `found`, which must occur; for NaN, of the first NaN.
template <class T, class In>
inline int64_t place_of(const In* x, int64_t n, T found) {
  int64_t i = 0;
  auto is = [&](const In& y) {
    T value = read_one<T>(y);
    return value == found || (found != found && value != value);
  };
  auto skip = [&]<int64_t kStep>(std::integral_constant<int64_t, kStep>) {
    for (; i + kStep <= n; i += kStep) {
      int any = 0;
      for (int64_t k = 0; k < kStep; ++k) any |= static_cast<int>(read_one<T>(x[i + k]) == found);
      if (any != 0) break;
    }
  };
  if (found == found) {
    skip(std::integral_constant<int64_t, 64>());
    skip(std::integral_constant<int64_t, 16>());
  }
  while (!is(x[i])) ++i;
  return i;
}
template <class T, bool kLargest, class In>
void along_places(void* acc, const ReduceInput& in) {
  Places<T> a(acc, in.count);
  each_line<In>(in, [&](int64_t j, const In* x) {
    T best = a.best[j];
    bool first = a.index[j] < 0;
    if (!first && best != best) return;
    T found = extreme_of<T, kLargest>(x, in.n);
    if (!first && !takes_over<T, kLargest>(found, best)) return;
    a.best[j] = found;
    a.index[j] = in.position + place_of<T>(x, in.n, found);
  });
}
template <class T, bool kLargest, class In>
void across_places(void* acc, const ReduceInput& in) {
  Places<T> a(acc, in.n);
  auto row = [&](int64_t r) {
    return reinterpret_cast<const In*>(static_cast<const char*>(in.data) + r * in.stride);
  };
  int64_t first = 0;
  if (a.index[0] < 0) {
    for (int64_t j = 0; j < in.n; ++j) {
      a.best[j] = read_one<T>(row(0)[j]);
      a.index[j] = in.position;
    }
    first = 1;
  }
  // Row numbers have the width of elements, which suffices because a step has few rows.
  using G = Granule<T>;
  using Bits = typename G::Bits;
  using U = BitsOf<T>;
  constexpr U kNone = static_cast<U>(~U(0));
  int64_t j = 0;
  for (; j + G::kLanes <= in.n; j += G::kLanes) {
    G best = load<T>(a.best + j);
    Bits taken[G::kParts];
    for (Bits& part : taken) part = Bits{} + kNone;
    for (int64_t r = first; r < in.count; ++r) {
      G x = load<T>(row(r) + j);
      for (int i = 0; i < G::kParts; ++i) {
        auto &have = best.part[i], &value = x.part[i];
        Bits better;
        if constexpr (std::is_floating_point_v<T>) {
          better = kLargest ? (Bits)(have == have) & ~(Bits)(value <= have)
                            : (Bits)(have == have) & ~(Bits)(value >= have);
        } else {
          better = kLargest ? (Bits)(value > have) : (Bits)(value < have);
        }
        have = (typename G::V)(((Bits)value & better) | ((Bits)have & ~better));
        taken[i] = ((Bits{} + static_cast<U>(r)) & better) | (taken[i] & ~better);
      }
    }
    std::memcpy(a.best + j, &best, sizeof(best));
    U rows[G::kLanes];
    std::memcpy(rows, taken, sizeof(rows));
    for (int64_t k = 0; k < G::kLanes; ++k) {
      if (rows[k] != kNone) a.index[j + k] = in.position + static_cast<int64_t>(rows[k]);
    }
  }
  for (int64_t r = first; r < in.count; ++r) {
    for (int64_t k = j; k < in.n; ++k) {
      T value = read_one<T>(row(r)[k]);
      if (!takes_over<T, kLargest>(value, a.best[k])) continue;
      a.best[k] = value;
      a.index[k] = in.position + r;
    }
  }
}
template <class T>
void finish_places(const void* acc, void* out, int64_t n, const void*) {
  std::memcpy(out, acc, static_cast<size_t>(n) * sizeof(int64_t));
}
template <class T>
void finish_best(const void* acc, void* values, int64_t n) {
  std::memcpy(values, Places<T>(const_cast<void*>(acc), n).best,
              static_cast<size_t>(n) * sizeof(T));
}
template <class T, bool kLargest>
constexpr ReduceLoops place_loops() {
  return {sizeof(int64_t) + sizeof(T),
          &init_places<T>,
          &along_places<T, kLargest, T>,
          &across_places<T, kLargest, T>,
          &merge_places<T, kLargest>,
          &finish_places<T>,
          &finish_best<T>,
          kLong};
}
template <bool kLargest, class... T>
constexpr ReduceTable place_table(const char* name, Types<T...>) {
  ReduceTable table{};
  table.name = name;
  ((table.loops[slot_of<T>()] = place_loops<T, kLargest>()), ...);
  table.sources[slot_of<bool>()] = {kByte, &along_places<uint8_t, kLargest, StoredBool>,
                                    &across_places<uint8_t, kLargest, StoredBool>};
  table.sources[slot_of<BFloat16>()] = {kFloat, &along_places<float, kLargest, BFloat16>,
                                        &across_places<float, kLargest, BFloat16>};
  if constexpr (kReadsHalf) {
    table.sources[slot_of<Half>()] = {kFloat, &along_places<float, kLargest, Half>,
                                      &across_places<float, kLargest, Half>};
  }
  return table;
}
LAMELLA_REGISTER_REDUCE(argmax, place_table<true>("argmax", WideRealTypes()));
LAMELLA_REGISTER_REDUCE(argmin, place_table<false>("argmin", WideRealTypes()));

}  // namespace
}  // namespace CPU_CAPABILITY
}  // namespace lamella::native
