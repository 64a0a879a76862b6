// Kernels of losses of single elements and of classes, and of their gradients. What they compute is
// said in lamella/kernels/device_lines.h.
#pragma once
#include <cmath>

#include "lamella/cuda/kernels/team.h"

namespace lamella::cuda {

// As native::Loss.
enum LossOf : int32_t { kSquare, kSmoothL1, kHuber, kSoftMargin, kEntropy };

struct LossParameters {
  int64_t numel;
  uint64_t x, target, grad, out;  // grad[0] for all elements if `one`
  int32_t loss, one;
  double beta, scale;
};

struct ClassParameters {
  int64_t numel, classes, inner, ignored;  // `numel` targets
  uint64_t x, target, weight, grad, total, out;
  Kind kind;  // of x, weight, grad and total
  int32_t bytes_target, one;
};

#ifdef LAMELLA_KERNEL_BODIES

template <class T>
LAMELLA_DEVICE T loss_value(int32_t loss, T x, T t, T beta) {
  const T d = x - t, size = std::fabs(d);
  auto bounded = [](T log) { return log < T(-100) ? T(-100) : log; };
  switch (loss) {
    case kSquare:
      return d * d;
    case kSmoothL1:
      return size < beta ? T(0.5) * d * d / beta : size - T(0.5) * beta;
    case kHuber:
      return size <= beta ? T(0.5) * d * d : beta * (size - T(0.5) * beta);
    case kSoftMargin:
      return std::log1p(std::exp(-x * t));
    default:
      // NaN is let through.
      if (x < 0 || x > 1 || t < 0 || t > 1) trap();
      return (t - 1) * bounded(std::log1p(-x)) - t * bounded(std::log(x));
  }
}
template <class T>
LAMELLA_DEVICE T loss_slope(int32_t loss, T x, T t, T beta) {
  const T d = x - t, sign = d > 0 ? T(1) : d < 0 ? T(-1) : T(0);
  switch (loss) {
    case kSquare:
      return 2 * d;
    case kSmoothL1:
      return std::fabs(d) < beta ? d / beta : sign;
    case kHuber:
      return d <= -beta ? -beta : d >= beta ? beta : d;
    case kSoftMargin: {
      const T z = std::exp(-x * t);
      return -t * (z - z == 0 ? z / (1 + z) : T(1));
    }
    default: {
      const T spread = (1 - x) * x;
      return d / (spread > T(1e-12) ? spread : T(1e-12));
    }
  }
}
template <class T>
LAMELLA_DEVICE void loss_values(const LossParameters& p) {
  auto* x = device_pointer<const T>(p.x);
  auto* t = device_pointer<const T>(p.target);
  auto* out = device_pointer<T>(p.out);
  each_element(p.numel, [&](int64_t i) {
    out[i] = loss_value<T>(p.loss, x[i], t[i], static_cast<T>(p.beta));
  });
}
template <class T>
LAMELLA_DEVICE void loss_slopes(const LossParameters& p) {
  auto* x = device_pointer<const T>(p.x);
  auto* t = device_pointer<const T>(p.target);
  auto* grad = device_pointer<const T>(p.grad);
  auto* out = device_pointer<T>(p.out);
  each_element(p.numel, [&](int64_t i) {
    const T g = static_cast<T>(p.scale) * grad[p.one != 0 ? 0 : i];
    out[i] = g * loss_slope<T>(p.loss, x[i], t[i], static_cast<T>(p.beta));
  });
}

// ---- Classes ----

// The class of a target; -1: ignored.
LAMELLA_DEVICE int64_t class_of(const ClassParameters& p, int64_t i) {
  const int64_t target = p.bytes_target != 0 ? device_pointer<const uint8_t>(p.target)[i]
                                             : device_pointer<const int64_t>(p.target)[i];
  if (target == p.ignored) return -1;
  if (target < 0 || target >= p.classes) trap();
  return target;
}
LAMELLA_DEVICE int64_t place_of(const ClassParameters& p, int64_t i, int64_t target) {
  const int64_t sample = i / p.inner;
  return (sample * p.classes + target) * p.inner + (i - sample * p.inner);
}
template <class T>
LAMELLA_DEVICE void class_losses(const ClassParameters& p) {
  const Elements<T> x(p.x, p.kind), weight(p.weight, p.kind);
  auto* out = device_pointer<T>(p.out);
  each_element(p.numel, [&](int64_t i) {
    const int64_t target = class_of(p, i);
    const T by = target < 0 ? T(0) : p.weight != 0 ? weight[target] : T(1);
    out[i] = target < 0 ? T(0) : -by * x[place_of(p, i, target)];
    out[p.numel + i] = by;
  });
}
template <class T>
LAMELLA_DEVICE void class_slopes(const ClassParameters& p) {
  const Elements<T> grad(p.grad, p.kind), weight(p.weight, p.kind), total(p.total, p.kind),
      out(p.out, p.kind);
  each_element(p.numel, [&](int64_t i) {
    const int64_t target = class_of(p, i);
    if (target < 0) return;
    const T by = p.weight != 0 ? -weight[target] : T(-1);
    const T scale = p.total != 0 ? total[0] : T(1);
    out.set(place_of(p, i, target), by * grad[p.one != 0 ? 0 : i] / scale);
  });
}

#endif

#define LAMELLA_LOSS_KERNEL(f, name, Parameters, body)    \
  f(name##_f32, kElementThreads, Parameters, body<float>) \
      f(name##_f64, kElementThreads, Parameters, body<double>)
#define LAMELLA_LOSS_KERNELS(f)                                      \
  LAMELLA_LOSS_KERNEL(f, loss, LossParameters, loss_values)          \
  LAMELLA_LOSS_KERNEL(f, loss_backward, LossParameters, loss_slopes) \
  LAMELLA_LOSS_KERNEL(f, nll, ClassParameters, class_losses)         \
  LAMELLA_LOSS_KERNEL(f, nll_backward, ClassParameters, class_slopes)

}  // namespace lamella::cuda
