// The loops of reductions.
#include <cmath>
#include <limits>

#include "lamella/core/visit_dtype.h"
#include "lamella/kernels/cpu/reduce.h"
#include "lamella/kernels/cpu/simd/vec.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {
namespace {

// Lanes that a run is folded into side by side, before they are folded into one.
constexpr int64_t kLanes = 128;

// Op has: In, Acc, Out; init(), lift(In, params), join(Acc, Acc), finish(Acc, params).
template <class Op>
void init(void* acc, int64_t n) {
  auto* a = static_cast<typename Op::Acc*>(acc);
  for (int64_t j = 0; j < n; ++j) a[j] = Op::init();
}
template <class Op>
void rows(void* acc, const void* data, int64_t n, const void* params) {
  auto* a = static_cast<typename Op::Acc*>(acc);
  auto* x = static_cast<const Stored<typename Op::In>*>(data);
  const Op op(params);
#pragma GCC ivdep
  for (int64_t j = 0; j < n; ++j) a[j] = Op::join(a[j], op.lift(x[j]));
}
template <class Op>
void merge(void* acc, const void* other, int64_t n) {
  auto* a = static_cast<typename Op::Acc*>(acc);
  auto* b = static_cast<const typename Op::Acc*>(other);
#pragma GCC ivdep
  for (int64_t j = 0; j < n; ++j) a[j] = Op::join(a[j], b[j]);
}
template <class Op>
void run(void* acc, const void* data, int64_t n, const void* params) {
  using Acc = typename Op::Acc;
  auto* x = static_cast<const Stored<typename Op::In>*>(data);
  Acc total = *static_cast<Acc*>(acc);
  if (n < 32) {
    const Op op(params);
    for (int64_t i = 0; i < n; ++i) total = Op::join(total, op.lift(x[i]));
  } else {
    alignas(64) Acc lanes[kLanes];
    int64_t used = n < kLanes ? 32 : kLanes;
    init<Op>(lanes, used);
    int64_t i = 0;
    for (; i + used <= n; i += used) rows<Op>(lanes, x + i, used, params);
    rows<Op>(lanes, x + i, n - i, params);
    for (int64_t w = used / 2; w > 0; w /= 2) merge<Op>(lanes, lanes + w, w);
    total = Op::join(total, lanes[0]);
  }
  *static_cast<Acc*>(acc) = total;
}
template <class Op>
void finish(const void* acc, void* out, int64_t n, const void* params) {
  auto* a = static_cast<const typename Op::Acc*>(acc);
  auto* to = static_cast<typename Op::Out*>(out);
  const Op op(params);
  for (int64_t j = 0; j < n; ++j) to[j] = op.finish(a[j]);
}
template <class Op>
constexpr ReduceLoops loops_of() {
  return {sizeof(typename Op::Acc),
          &init<Op>,
          &run<Op>,
          &rows<Op>,
          &merge<Op>,
          &finish<Op>,
          CppTypeToScalarType<typename Op::Out>::value};
}
template <template <class> class Op, class... T>
constexpr ReduceTable table_of(const char* name, Types<T...>) {
  ReduceTable table{};
  table.name = name;
  ((table.loops[loop_index(CppTypeToScalarType<T>::value)] = loops_of<Op<T>>()), ...);
  return table;
}

template <class T>
struct Same {
  using In = T;
  using Acc = T;
  using Out = T;
  explicit Same(const void*) {}
  T lift(T x) const { return x; }
  T finish(T a) const { return a; }
};
template <class T>
struct Sum : Same<T> {
  using Same<T>::Same;
  static T init() { return T(0); }
  static T join(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    } else {
      return a + b;
    }
  }
};
// The parameter is the number of elements.
template <class T>
struct Mean : Sum<T> {
  double count;
  explicit Mean(const void* p) : Sum<T>(p), count(p ? param<double>(p, 0) : 1) {}
  T finish(T a) const {
    if constexpr (is_complex_type_v<T>) {
      using R = typename T::value_type;
      return T(static_cast<R>(a.real() / count), static_cast<R>(a.imag() / count));
    } else {
      return static_cast<T>(a / static_cast<T>(count));
    }
  }
};
template <class T>
struct Prod : Same<T> {
  using Same<T>::Same;
  static T init() { return T(1); }
  static T join(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    } else {
      return a * b;
    }
  }
};
template <class T>
constexpr T lowest() {
  if constexpr (std::is_floating_point_v<T>) {
    return -std::numeric_limits<T>::infinity();
  } else {
    return std::numeric_limits<T>::lowest();
  }
}
template <class T>
constexpr T highest() {
  if constexpr (std::is_floating_point_v<T>) {
    return std::numeric_limits<T>::infinity();
  } else {
    return std::numeric_limits<T>::max();
  }
}
template <class T>
struct Max : Same<T> {
  using Same<T>::Same;
  static T init() { return lowest<T>(); }
  static T join(T a, T b) { return (a > b || a != a) ? a : b; }
};
template <class T>
struct Min : Same<T> {
  using Same<T>::Same;
  static T init() { return highest<T>(); }
  static T join(T a, T b) { return (a < b || a != a) ? a : b; }
};
template <class T>
struct All : Same<T> {
  using Same<T>::Same;
  static T init() { return true; }
  static T join(T a, T b) { return a & b; }
};
template <class T>
struct Any : Same<T> {
  using Same<T>::Same;
  static T init() { return false; }
  static T join(T a, T b) { return a | b; }
};
template <class T>
struct Count {
  using In = T;
  using Acc = int64_t;
  using Out = int64_t;
  explicit Count(const void*) {}
  static Acc init() { return 0; }
  Acc lift(T x) const { return x ? 1 : 0; }
  static Acc join(Acc a, Acc b) { return a + b; }
  Out finish(Acc a) const { return a; }
};

// Norms accumulate in double: squares of large float32 do not overflow.
template <class T>
struct NormBase {
  using In = T;
  using Acc = double;
  using Out = T;
  explicit NormBase(const void*) {}
  static double init() { return 0; }
  static double join(double a, double b) { return a + b; }
  T finish(double a) const { return static_cast<T>(a); }
  static double size(T x) { return x < 0 ? -static_cast<double>(x) : static_cast<double>(x); }
};
template <class T>
struct Norm0 : NormBase<T> {
  using NormBase<T>::NormBase;
  double lift(T x) const { return x == 0 ? 0.0 : 1.0; }
};
template <class T>
struct Norm1 : NormBase<T> {
  using NormBase<T>::NormBase;
  double lift(T x) const { return __builtin_fabs(static_cast<double>(x)); }
};
template <class T>
struct Norm2 : NormBase<T> {
  using NormBase<T>::NormBase;
  double lift(T x) const { return static_cast<double>(x) * static_cast<double>(x); }
  T finish(double a) const { return static_cast<T>(__builtin_sqrt(a)); }
};
template <class T>
struct NormMax : NormBase<T> {
  using NormBase<T>::NormBase;
  double lift(T x) const { return __builtin_fabs(static_cast<double>(x)); }
  static double join(double a, double b) { return (a > b || a != a) ? a : b; }
};
template <class T>
struct NormMin : NormBase<T> {
  using NormBase<T>::NormBase;
  static double init() { return std::numeric_limits<double>::infinity(); }
  double lift(T x) const { return __builtin_fabs(static_cast<double>(x)); }
  static double join(double a, double b) { return (a < b || a != a) ? a : b; }
};
template <class T>
struct NormGeneral : NormBase<T> {
  double order;
  explicit NormGeneral(const void* p) : NormBase<T>(p), order(p ? param<double>(p, 0) : 1) {}
  double lift(T x) const { return std::pow(std::fabs(static_cast<double>(x)), order); }
  T finish(double a) const { return static_cast<T>(std::pow(a, 1 / order)); }
};

// Mean and squared distance from it (T. Chan, G. Golub, R. LeVeque, Updating formulae and a
// pairwise algorithm for computing sample variances, 1979).
struct Moments {
  double count, mean, squares;
};
template <class T>
struct Var {
  using In = T;
  using Acc = Moments;
  using Out = T;
  double correction, root;
  explicit Var(const void* p)
      : correction(p ? param<double>(p, 0) : 0), root(p ? param<double>(p, 1) : 0) {}
  static Moments init() { return {0, 0, 0}; }
  Moments lift(T x) const { return {1, static_cast<double>(x), 0}; }
  static Moments join(const Moments& a, const Moments& b) {
    double count = a.count + b.count;
    if (count == 0) return a;
    double distance = b.mean - a.mean, part = b.count / count;
    return {count, a.mean + distance * part,
            a.squares + b.squares + distance * distance * a.count * part};
  }
  T finish(const Moments& a) const {
    double divisor = a.count - correction;
    double var = a.squares / (divisor > 0 ? divisor : 0);
    return static_cast<T>(root != 0 ? __builtin_sqrt(var) : var);
  }
};
// A run's moments by two passes over what the first-level cache holds.
template <class T>
void var_run(void* acc, const void* data, int64_t n, const void*) {
  auto* x = static_cast<const T*>(data);
  constexpr int64_t kStep = 2048, kWide = 32;
  auto& total = *static_cast<Moments*>(acc);
  for (int64_t i = 0; i < n; i += kStep) {
    int64_t m = n - i < kStep ? n - i : kStep;
    double lanes[kWide] = {};
    int64_t whole = m / kWide * kWide;
    for (int64_t k = 0; k < whole; k += kWide) {
      for (int64_t l = 0; l < kWide; ++l) lanes[l] += static_cast<double>(x[i + k + l]);
    }
    double sum = 0, squares = 0;
    for (double lane : lanes) sum += lane;
    for (int64_t k = whole; k < m; ++k) sum += static_cast<double>(x[i + k]);
    double mean = sum / static_cast<double>(m);
    for (double& lane : lanes) lane = 0;
    for (int64_t k = 0; k < whole; k += kWide) {
      for (int64_t l = 0; l < kWide; ++l) {
        double d = static_cast<double>(x[i + k + l]) - mean;
        lanes[l] += d * d;
      }
    }
    for (double lane : lanes) squares += lane;
    for (int64_t k = whole; k < m; ++k) {
      double d = static_cast<double>(x[i + k]) - mean;
      squares += d * d;
    }
    total = Var<T>::join(total, {static_cast<double>(m), mean, squares});
  }
}

using SumTypes = JoinTypes<Types<int64_t>, FloatComplexTypes>;
#define LAMELLA_REGISTER_REDUCE(name)                                                              \
  const RegisterCpuKernel name##_registered(named_stub<reduce_fn, #name>, LAMELLA_THIS_CAPABILITY, \
                                            &name##_reduce)
// norm_general takes the order as its parameter.
#define LAMELLA_REDUCE(name, Op, List)                                \
  const ReduceTable& name##_reduce() {                                \
    static constexpr ReduceTable table = table_of<Op>(#name, List()); \
    return table;                                                     \
  }                                                                   \
  LAMELLA_REGISTER_REDUCE(name);
LAMELLA_REDUCE(sum, Sum, SumTypes)
LAMELLA_REDUCE(mean, Mean, FloatComplexTypes)
LAMELLA_REDUCE(prod, Prod, SumTypes)
LAMELLA_REDUCE(max, Max, RealBoolTypes)
LAMELLA_REDUCE(min, Min, RealBoolTypes)
LAMELLA_REDUCE(all, All, BoolType)
LAMELLA_REDUCE(any, Any, BoolType)
LAMELLA_REDUCE(count, Count, BoolType)
LAMELLA_REDUCE(norm0, Norm0, FloatTypes)
LAMELLA_REDUCE(norm1, Norm1, FloatTypes)
LAMELLA_REDUCE(norm2, Norm2, FloatTypes)
LAMELLA_REDUCE(norm_max, NormMax, FloatTypes)
LAMELLA_REDUCE(norm_min, NormMin, FloatTypes)
LAMELLA_REDUCE(norm_general, NormGeneral, FloatTypes)
constexpr ReduceTable make_var() {
  ReduceTable table = table_of<Var>("var", FloatTypes());
  table.loops[loop_index(kFloat)].run = &var_run<float>;
  table.loops[loop_index(kDouble)].run = &var_run<double>;
  return table;
}
const ReduceTable& var_reduce() {
  static constexpr ReduceTable table = make_var();
  return table;
}
LAMELLA_REGISTER_REDUCE(var);

// ---- Places of extremes ----

template <class Op, class T>
void arg_line(const void* data, int64_t n, int64_t base, void* best, int64_t* index) {
  auto* x = static_cast<const Stored<T>*>(data);
  T have = *static_cast<T*>(best);
  if (*index >= 0 && have != have) return;
  T found = Op::init();
  run<Op>(&found, x, n, nullptr);
  bool better = *index < 0 || found != found || (found != have && Op::join(have, found) == found);
  if (!better) return;
  int64_t i = 0;
  if (found != found) {
    while (x[i] == x[i]) ++i;
  } else {
    while (x[i] != found) ++i;
  }
  *static_cast<T*>(best) = found;
  *index = base + i;
}
template <class Op, class T>
void arg_rows(const void* data, int64_t n, int64_t row, void* best, int64_t* index) {
  auto* x = static_cast<const Stored<T>*>(data);
  auto* have = static_cast<T*>(best);
  if (row == 0) {
    for (int64_t j = 0; j < n; ++j) {
      have[j] = x[j];
      index[j] = 0;
    }
    return;
  }
  for (int64_t j = 0; j < n; ++j) {
    bool nan_before = have[j] != have[j];
    bool better = static_cast<int>(!nan_before) &
                  ((x[j] != x[j]) | ((Op::join(have[j], x[j]) == x[j]) & (x[j] != have[j])));
    have[j] = better ? x[j] : have[j];
    index[j] = better ? row : index[j];
  }
}
template <template <class> class Op, class... T>
constexpr ArgTable arg_table(const char* name, Types<T...>) {
  ArgTable table{};
  table.name = name;
  ((table.loops[loop_index(CppTypeToScalarType<T>::value)] = {&arg_line<Op<T>, T>,
                                                              &arg_rows<Op<T>, T>}),
   ...);
  return table;
}
const ArgTable& argmax_loops() {
  static constexpr ArgTable table = arg_table<Max>("argmax", RealBoolTypes());
  return table;
}
const ArgTable& argmin_loops() {
  static constexpr ArgTable table = arg_table<Min>("argmin", RealBoolTypes());
  return table;
}
const RegisterCpuKernel argmax_registered(named_stub<arg_fn, "max">, LAMELLA_THIS_CAPABILITY,
                                          &argmax_loops);
const RegisterCpuKernel argmin_registered(named_stub<arg_fn, "min">, LAMELLA_THIS_CAPABILITY,
                                          &argmin_loops);

}  // namespace
}  // namespace CPU_CAPABILITY

}  // namespace lamella::native
