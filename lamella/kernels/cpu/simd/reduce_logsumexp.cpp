// Logarithms of sums of exponentials.
#include <cmath>

#include "lamella/kernels/cpu/simd/softmax_lines.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {
namespace {

// A block's accumulators: the largest elements, then the sums of exponentials of the differences
// from the largest one. An infinite largest element is not subtracted, because inf - inf is NaN.
template <class C>
struct ExpSums {
  C *most, *sum;
  ExpSums(void* acc, int64_t n) : most(static_cast<C*>(acc)), sum(most + n) {}
};
template <class C>
inline C taken_out(C most) {
  return std::isinf(most) ? C(0) : most;
}
template <class C>
inline Granule<C> taken_out(Granule<C> most) {
  constexpr C kInfinity = std::numeric_limits<C>::infinity();
  for (auto& part : most.part) {
    const std::remove_reference_t<decltype(part)> nothing{};
    part = (part == kInfinity) | (part == -kInfinity) ? nothing : part;
  }
  return most;
}
template <class C>
void init(void* acc, int64_t n) {
  ExpSums<C> a(acc, n);
  for (int64_t j = 0; j < n; ++j) {
    a.most[j] = Ordered<C, true>::kIdentity;
    a.sum[j] = 0;
  }
}
template <class C>
inline void add(ExpSums<C>& a, int64_t j, C most, C sum) {
  C larger = Ordered<C, true>::join(a.most[j], most);
  auto scaled = [&](C s, C m) {
    return s == 0 || m == larger ? s : s * std::exp(taken_out(m) - taken_out(larger));
  };
  a.sum[j] = scaled(a.sum[j], a.most[j]) + scaled(sum, most);
  a.most[j] = larger;
}
template <class C>
void merge(void* acc, const void* other, int64_t n) {
  ExpSums<C> a(acc, n), b(const_cast<void*>(other), n);
  for (int64_t j = 0; j < n; ++j) add<C>(a, j, b.most[j], b.sum[j]);
}
template <class C>
void along(void* acc, const ReduceInput& in) {
  ExpSums<C> a(acc, in.count);
  each_line<C>(in, [&](int64_t j, const C* x) {
    C most = fold<Ordered<C, true>>(x, in.n);
    add<C>(a, j, most, exp_line<C, false>(x, nullptr, taken_out(most), in.n));
  });
}
template <class C>
void across(void* acc, const ReduceInput& in) {
  ExpSums<C> a(acc, in.n);
  each_granule<C>(in.n, [&](int64_t j, auto now) {
    auto row = [&](int64_t r) {
      auto* x = reinterpret_cast<const C*>(static_cast<const char*>(in.data) + r * in.stride);
      return load_some<C>(x + j, now, C(0));
    };
    Granule<C> before = load_some<C>(a.most + j, now, C(0)), most = before;
    for (int64_t r = 0; r < in.count; ++r) most = join<Ordered<C, true>>(most, row(r));
    Granule<C> shift = taken_out<C>(most);
    // An empty sum stays 0.
    for (int i = 0; i < Granule<C>::kParts; ++i) {
      auto finite = before.part[i] - before.part[i] == 0;
      before.part[i] = finite ? before.part[i] : shift.part[i];
    }
    Granule<C> scale = exp_of<C>(minus<C>(before, shift));
    Granule<C> sum = load_some<C>(a.sum + j, now, C(0));
    for (int i = 0; i < Granule<C>::kParts; ++i) sum.part[i] *= scale.part[i];
    for (int64_t r = 0; r < in.count; ++r) {
      sum = join<Sum<C>>(sum, exp_of<C>(minus<C>(row(r), shift)));
    }
    store_some<C>(a.most + j, most, now);
    store_some<C>(a.sum + j, sum, now);
  });
}
template <class C>
void finish(const void* acc, void* out, int64_t n, const void*) {
  ExpSums<C> a(const_cast<void*>(acc), n);
  auto* to = static_cast<C*>(out);
  for (int64_t j = 0; j < n; ++j) to[j] = taken_out(a.most[j]) + std::log(a.sum[j]);
}
template <class C>
constexpr ReduceLoops loops_of() {
  return {2 * sizeof(C), &init<C>,   &along<C>, &across<C>,
          &merge<C>,     &finish<C>, nullptr,   CppTypeToScalarType<C>::value};
}
constexpr ReduceTable make_logsumexp() {
  ReduceTable table{};
  table.name = "logsumexp";
  table.loops[slot_of<float>()] = loops_of<float>();
  table.loops[slot_of<double>()] = loops_of<double>();
  return table;
}
LAMELLA_REGISTER_REDUCE(logsumexp, make_logsumexp());

}  // namespace
}  // namespace CPU_CAPABILITY
}  // namespace lamella::native
