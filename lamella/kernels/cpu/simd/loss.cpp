// Losses of single elements, and their derivatives.
#include "lamella/kernels/cpu/simd/loss.h"

#include <limits>
#include <type_traits>

#include "lamella/core/visit_dtype.h"
#include "lamella/kernels/cpu/simd/logarithm.h"
#include "lamella/kernels/cpu/simd/vec_math.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {
namespace {

template <class T>
struct Square {
  explicit Square(double) {}
  T value(T x, T t) const { return (x - t) * (x - t); }
  T slope(T x, T t) const { return 2 * (x - t); }
};
template <class T>
struct SmoothL1 {
  T beta, half, inverse;
  explicit SmoothL1(double b)
      : beta(static_cast<T>(b)),
        half(static_cast<T>(b / 2)),
        inverse(b > 0 ? static_cast<T>(1 / b) : T(0)) {}
  T value(T x, T t) const {
    T d = x - t, a = d < 0 ? -d : d;
    return a < beta ? d * d * inverse / 2 : a - half;
  }
  T slope(T x, T t) const {
    T d = x - t, sign = d > 0 ? T(1) : d < 0 ? T(-1) : T(0);
    return (d < 0 ? -d : d) < beta ? d * inverse : sign;
  }
};
template <class T>
struct Huber {
  T delta;
  explicit Huber(double b) : delta(static_cast<T>(b)) {}
  T value(T x, T t) const {
    T d = x - t, a = d < 0 ? -d : d;
    return a < delta ? d * d / 2 : delta * (a - delta / 2);
  }
  T slope(T x, T t) const {
    T d = x - t;
    return d < -delta ? -delta : d > delta ? delta : d;
  }
};
// Losses that call elementary functions are computed with vectors.
template <class T>
struct SoftMargin {
  explicit SoftMargin(double) {}
  template <class V>
  V value(V x, V t) const {
    return v_log1p(v_exp(-x * t));
  }
  template <class V>
  V slope(V x, V t) const {
    V z = v_exp(-x * t);
    return -t * (z > std::numeric_limits<T>::max() ? V{} + 1 : z / (1 + z));
  }
};
template <class T>
struct Entropy {
  explicit Entropy(double) {}
  template <class V>
  static V bounded(V log) {
    return log < T(-100) ? V{} - 100 : log;
  }
  template <class V>
  V value(V x, V t) const {
    return (t - 1) * bounded(v_log1p(-x)) - t * bounded(v_log(x));
  }
  T slope(T x, T t) const {
    T spread = (1 - x) * x;
    return (x - t) / (spread > T(1e-12) ? spread : T(1e-12));
  }
};

// to[i] = f(x[i], t[i]); if `needs`, f is called with vectors.
template <bool needs, class T, class F>
inline void each(const T* x, const T* t, T* to, int64_t n, F f) {
  int64_t i = 0;
  if constexpr (needs) {
    constexpr int64_t kWidth = sizeof(Vec<T>) / sizeof(T);
    for (; i + kWidth <= n; i += kWidth) v_store<T>(to + i, f(v_load<T>(x + i), v_load<T>(t + i)));
    if (i == n) return;
    T a[kWidth] = {}, b[kWidth] = {}, r[kWidth];
    auto bytes = static_cast<size_t>(n - i) * sizeof(T);
    std::memcpy(a, x + i, bytes);
    std::memcpy(b, t + i, bytes);
    v_store<T>(r, f(v_load<T>(a), v_load<T>(b)));
    std::memcpy(to + i, r, bytes);
  } else {
#pragma GCC ivdep
    for (; i < n; ++i) to[i] = f(x[i], t[i]);
  }
}
// True if the loss (kValueNeeds) or its derivative calls elementary functions.
template <template <class> class Op, class T>
constexpr bool kValueNeeds =
    std::is_same_v<Op<T>, SoftMargin<T>> || std::is_same_v<Op<T>, Entropy<T>>;
template <template <class> class Op, class T>
constexpr bool kSlopeNeeds = std::is_same_v<Op<T>, SoftMargin<T>>;

template <template <class> class Op, class T>
double values(const T* x, const T* t, T* out, int64_t n, double beta) {
  const Op<T> op(beta);
  constexpr bool needs = kValueNeeds<Op, T>;
  auto value = [&](auto a, auto b) { return op.value(a, b); };
  if (out != nullptr) {
    each<needs>(x, t, out, n, value);
    return 0;
  }
  // Short runs are summed in the element type, their sums in double.
  constexpr int64_t kLanes = 32, kRun = 1024;
  double sum = 0;
  alignas(64) T run[needs ? kRun : 1];
  for (int64_t at = 0; at < n; at += kRun) {
    int64_t end = at + kRun < n ? at + kRun : n, i = at;
    if constexpr (needs) each<needs>(x + at, t + at, run, end - at, value);
    auto loss = [&](int64_t k) {
      if constexpr (needs) {
        return run[k - at];
      } else {
        return op.value(x[k], t[k]);
      }
    };
    T lanes[kLanes] = {};
    for (; i + kLanes <= end; i += kLanes) {
      for (int64_t j = 0; j < kLanes; ++j) lanes[j] += loss(i + j);
    }
    for (T lane : lanes) sum += static_cast<double>(lane);
    for (; i < end; ++i) sum += static_cast<double>(loss(i));
  }
  return sum;
}

template <template <class> class Op, class T>
void slopes(const LossBackward& p, int64_t begin, int64_t end) {
  const Op<T> op(p.beta);
  auto* x = static_cast<const T*>(p.x);
  auto* t = static_cast<const T*>(p.t);
  auto* grad = static_cast<const T*>(p.grad);
  auto* out = static_cast<T*>(p.out);
  T factor = static_cast<T>(p.scale);
  if (p.one_grad) factor *= *grad;
  each<kSlopeNeeds<Op, T>>(x + begin, t + begin, out + begin, end - begin,
                           [&](auto a, auto b) { return factor * op.slope(a, b); });
  if (p.one_grad) return;
#pragma GCC ivdep
  for (int64_t i = begin; i < end; ++i) out[i] *= grad[i];
}

template <class F>
auto with_loss(Loss loss, ScalarType dtype, F&& f) {
  auto with_type = [&](auto tag) {
    using T = type_of<decltype(tag)>;
    switch (loss) {
      case Loss::kSquare:
        return f.template operator()<Square, T>();
      case Loss::kSmoothL1:
        return f.template operator()<SmoothL1, T>();
      case Loss::kHuber:
        return f.template operator()<Huber, T>();
      case Loss::kSoftMargin:
        return f.template operator()<SoftMargin, T>();
      default:
        return f.template operator()<Entropy, T>();
    }
  };
  return dtype == kDouble ? with_type(TypeTag<double>()) : with_type(TypeTag<float>());
}

double loss_kernel(Loss loss, ScalarType dtype, const void* x, const void* t, void* out, int64_t n,
                   double beta) {
  return with_loss(loss, dtype, [&]<template <class> class Op, class T>() {
    return values<Op, T>(static_cast<const T*>(x), static_cast<const T*>(t), static_cast<T*>(out),
                         n, beta);
  });
}
void loss_backward_kernel(const LossBackward& p, int64_t begin, int64_t end) {
  with_loss(p.loss, p.dtype,
            [&]<template <class> class Op, class T>() { slopes<Op, T>(p, begin, end); });
}

}  // namespace
}  // namespace CPU_CAPABILITY

LAMELLA_REGISTER_KERNEL(loss_on, &loss_kernel);
LAMELLA_REGISTER_KERNEL(loss_backward_on, &loss_backward_kernel);

}  // namespace lamella::native
