// Sums, means and products.
#include "lamella/kernels/cpu/simd/reduce_fold.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {
namespace {

// NaN counts as 0.
template <class L>
struct NanSum : Sum<L> {
  template <class X>
  static X lift(X x) {
    return x == x ? x : X{};
  }
};
template <class L>
struct Prod : Sum<L> {
  static constexpr L kIdentity = 1;
  template <class X>
  static X join(X a, X b) {
    return a * b;
  }
};

// A mean's parameter is the number of elements.
template <class T>
void finish_mean(const void* acc, void* out, int64_t n, const void* params) {
  auto* a = static_cast<const T*>(acc);
  auto* to = static_cast<T*>(out);
  auto count = param<double>(params, 0);
  for (int64_t j = 0; j < n; ++j) {
    if constexpr (is_complex_type_v<T>) {
      using R = typename T::value_type;
      to[j] = T(static_cast<R>(a[j].real() / count), static_cast<R>(a[j].imag() / count));
    } else {
      to[j] = a[j] / static_cast<T>(count);
    }
  }
}

// Small integers are added in 32 bits, which suffice for the elements of one step.
template <class In>
void along_narrow(void* acc, const ReduceInput& in) {
  auto* a = static_cast<uint64_t*>(acc);
  each_line<In>(in, [&](int64_t j, const In* x) {
    a[j] += static_cast<uint64_t>(static_cast<int64_t>(fold<Sum<int32_t>>(x, in.n)));
  });
}

// ---- Complex numbers ----

// Sums of complex numbers are sums of twice as many real numbers, with real and imaginary parts in
// separate lanes.
template <class R>
void along_complex_sum(void* acc, const ReduceInput& in) {
  using Op = Sum<R>;
  auto* a = static_cast<R*>(acc);
  each_line<R>(in, [&](int64_t j, const R* x) {
    R pair[2] = {0, 0};
    int64_t n = 2 * in.n;
    if (n >= Granule<R>::kLanes) {
      Granule<R> lanes = fold_lanes<Op>(x, n);
      R all[Granule<R>::kLanes];
      std::memcpy(all, &lanes, sizeof(all));
      for (int w = Granule<R>::kLanes / 2; w > 1; w /= 2) {
        for (int i = 0; i < w; ++i) all[i] += all[i + w];
      }
      pair[0] = all[0];
      pair[1] = all[1];
    } else {
      for (int64_t i = 0; i < n; ++i) pair[i % 2] += x[i];
    }
    a[2 * j] += pair[0];
    a[2 * j + 1] += pair[1];
  });
}
template <class R>
void across_complex_sum(void* acc, const ReduceInput& in) {
  ReduceInput real = in;
  real.n *= 2;
  across_lanes<Sum<R>, R>(acc, real);
}
template <class C>
void along_complex_prod(void* acc, const ReduceInput& in) {
  auto* a = static_cast<C*>(acc);
  each_line<C>(in, [&](int64_t j, const C* x) {
    C total[4] = {C(1), C(1), C(1), C(1)};
    for (int64_t i = 0; i < in.n; ++i) total[i % 4] = total[i % 4] * x[i];
    a[j] = a[j] * ((total[0] * total[2]) * (total[1] * total[3]));
  });
}
template <class C>
void across_complex_prod(void* acc, const ReduceInput& in) {
  auto* a = static_cast<C*>(acc);
  for (int64_t r = 0; r < in.count; ++r) {
    auto* x = reinterpret_cast<const C*>(static_cast<const char*>(in.data) + r * in.stride);
#pragma GCC ivdep
    for (int64_t j = 0; j < in.n; ++j) a[j] = a[j] * x[j];
  }
}
// Identity and join of complex accumulators.
template <class C, bool kProduct>
struct ComplexOp {
  using Lane = C;
  static constexpr C kIdentity = C(kProduct ? 1 : 0);
  static C join(const C& a, const C& b) {
    if constexpr (kProduct) {
      return a * b;
    } else {
      return a + b;
    }
  }
};
template <class C, bool kProduct>
constexpr ReduceLoops complex_loops() {
  using Op = ComplexOp<C, kProduct>;
  using R = typename C::value_type;
  return {sizeof(C),
          &init_lanes<Op>,
          kProduct ? &along_complex_prod<C> : &along_complex_sum<R>,
          kProduct ? &across_complex_prod<C> : &across_complex_sum<R>,
          &merge_lanes<Op>,
          &finish_same<C, C>,
          nullptr,
          CppTypeToScalarType<C>::value};
}

// ---- Tables ----

template <template <class> class Op>
constexpr ReduceTable float_table(const char* name) {
  ReduceTable table{};
  table.name = name;
  table.loops[slot_of<float>()] = lane_loops<Op<float>, float>();
  table.loops[slot_of<double>()] = lane_loops<Op<double>, double>();
  table.sources[slot_of<BFloat16>()] = {kFloat, &along_lanes<Op<float>, BFloat16>,
                                        &across_lanes<Op<float>, BFloat16>};
  if constexpr (kReadsHalf) {
    table.sources[slot_of<Half>()] = {kFloat, &along_lanes<Op<float>, Half>,
                                      &across_lanes<Op<float>, Half>};
  }
  return table;
}
template <class... In>
constexpr void add_integer_sources(ReduceTable& table, Types<In...>) {
  ((table.sources[slot_of<In>()] = {kLong, &along_narrow<Stored<In>>,
                                    &across_lanes<Sum<uint64_t>, Stored<In>>}),
   ...);
}
constexpr ReduceTable sum_table() {
  ReduceTable table = float_table<Sum>("sum");
  table.loops[slot_of<int64_t>()] = lane_loops<Sum<uint64_t>, int64_t>();
  table.loops[slot_of<complex<float>>()] = complex_loops<complex<float>, false>();
  table.loops[slot_of<complex<double>>()] = complex_loops<complex<double>, false>();
  add_integer_sources(table, Types<bool, uint8_t, int8_t, int16_t>());
  table.sources[slot_of<int32_t>()] = {kLong, &along_lanes<Sum<uint64_t>, int32_t>,
                                       &across_lanes<Sum<uint64_t>, int32_t>};
  return table;
}
constexpr ReduceTable mean_table() {
  ReduceTable table = sum_table();
  table.name = "mean";
  table.loops[slot_of<int64_t>()] = {};
  table.loops[slot_of<float>()].finish = &finish_mean<float>;
  table.loops[slot_of<double>()].finish = &finish_mean<double>;
  table.loops[slot_of<complex<float>>()].finish = &finish_mean<complex<float>>;
  table.loops[slot_of<complex<double>>()].finish = &finish_mean<complex<double>>;
  return table;
}
constexpr ReduceTable prod_table() {
  ReduceTable table = float_table<Prod>("prod");
  table.loops[slot_of<int64_t>()] = lane_loops<Prod<uint64_t>, int64_t>();
  table.loops[slot_of<complex<float>>()] = complex_loops<complex<float>, true>();
  table.loops[slot_of<complex<double>>()] = complex_loops<complex<double>, true>();
  return table;
}
LAMELLA_REGISTER_REDUCE(sum, sum_table());
LAMELLA_REGISTER_REDUCE(nansum, float_table<NanSum>("nansum"));
LAMELLA_REGISTER_REDUCE(mean, mean_table());
LAMELLA_REGISTER_REDUCE(prod, prod_table());

}  // namespace
}  // namespace CPU_CAPABILITY
}  // namespace lamella::native
