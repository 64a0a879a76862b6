// Steps of optimizers over contiguous memory.
#include "lamella/kernels/cpu/simd/optimizer.h"

#include <cmath>

#include "lamella/core/visit_dtype.h"
#include "lamella/kernels/cpu/simd/vec.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {
namespace {

// The gradient with its scale and sign applied; the scaled gradient is stored if `scaled`.
template <class T, class C>
inline C taken(T* g, int64_t i, C scale, C sign, bool scaled) {
  C value = static_cast<C>(g[i]);
  if (scaled) {
    value /= scale;
    g[i] = static_cast<T>(value);
  }
  return sign * value;
}

template <class T, bool kMomentum, bool kScaled>
void sgd_loop(const SgdStep& s, T* p, T* g, T* buffer, int64_t begin, int64_t end) {
  using C = compute_type<T>;
  const C lr = static_cast<C>(s.lr), decay = static_cast<C>(s.weight_decay),
          momentum = static_cast<C>(s.momentum),
          fresh = static_cast<C>(s.first ? 1 : 1 - s.dampening), kept = s.first ? C(0) : momentum,
          scale = static_cast<C>(s.grad_scale), sign = s.maximize ? C(-1) : C(1);
  const C of_gradient = s.nesterov ? C(1) : C(0), of_buffer = s.nesterov ? momentum : C(1);
  const bool first = s.first;
#pragma GCC ivdep
  for (int64_t i = begin; i < end; ++i) {
    C at = static_cast<C>(p[i]);
    C d = taken<T, C>(g, i, scale, sign, kScaled) + decay * at;
    if constexpr (kMomentum) {
      C next = first ? d : kept * static_cast<C>(buffer[i]) + fresh * d;
      buffer[i] = static_cast<T>(next);
      d = of_gradient * d + of_buffer * next;
    }
    p[i] = static_cast<T>(at - lr * d);
  }
}

template <class T, bool kLargest, bool kScaled>
void adam_loop(const AdamStep& s, T* p, T* g, T* average, T* square, T* largest, int64_t begin,
               int64_t end) {
  using C = compute_type<T>;
  const C scale = static_cast<C>(s.grad_scale), sign = s.maximize ? C(-1) : C(1);
  const C added = s.decoupled ? C(0) : static_cast<C>(s.weight_decay);
  const C shrunk = s.decoupled ? static_cast<C>(1 - s.lr * s.weight_decay) : C(1);
  const C beta2 = static_cast<C>(s.beta2), rest1 = static_cast<C>(1 - s.beta1),
          rest2 = static_cast<C>(1 - s.beta2), eps = static_cast<C>(s.eps);
  const C step = static_cast<C>(s.lr / s.correction1);
  const C root = static_cast<C>(std::sqrt(s.correction2));
#pragma GCC ivdep
  for (int64_t i = begin; i < end; ++i) {
    C at = static_cast<C>(p[i]) * shrunk;
    C d = taken<T, C>(g, i, scale, sign, kScaled) + added * at;
    C mean = static_cast<C>(average[i]);
    mean += rest1 * (d - mean);
    C second = beta2 * static_cast<C>(square[i]) + rest2 * d * d;
    average[i] = static_cast<T>(mean);
    square[i] = static_cast<T>(second);
    if constexpr (kLargest) {
      C most = static_cast<C>(largest[i]);
      second = second > most ? second : most;
      largest[i] = static_cast<T>(second);
    }
    p[i] = static_cast<T>(at - step * mean / (std::sqrt(second) / root + eps));
  }
}

template <class F>
void with_flag(bool flag, F&& f) {
  if (flag) {
    f(std::true_type());
  } else {
    f(std::false_type());
  }
}

void sgd_kernel(ScalarType dtype, const SgdStep& s, void* p, void* g, void* buffer, int64_t begin,
                int64_t end) {
  visit_floating(dtype, "_fused_sgd_", [&](auto tag) {
    using T = type_of<decltype(tag)>;
    with_flag(buffer != nullptr, [&](auto momentum) {
      with_flag(s.grad_scale != 1, [&](auto scaled) {
        sgd_loop<T, momentum.value, scaled.value>(s, static_cast<T*>(p), static_cast<T*>(g),
                                                  static_cast<T*>(buffer), begin, end);
      });
    });
  });
}
void adam_kernel(ScalarType dtype, const AdamStep& s, void* p, void* g, void* average, void* square,
                 void* largest, int64_t begin, int64_t end) {
  visit_floating(dtype, "_fused_adam_", [&](auto tag) {
    using T = type_of<decltype(tag)>;
    with_flag(largest != nullptr, [&](auto with_largest) {
      with_flag(s.grad_scale != 1, [&](auto scaled) {
        adam_loop<T, with_largest.value, scaled.value>(
            s, static_cast<T*>(p), static_cast<T*>(g), static_cast<T*>(average),
            static_cast<T*>(square), static_cast<T*>(largest), begin, end);
      });
    });
  });
}

}  // namespace
}  // namespace CPU_CAPABILITY

LAMELLA_REGISTER_KERNEL(sgd_on, &sgd_kernel);
LAMELLA_REGISTER_KERNEL(adam_on, &adam_kernel);

}  // namespace lamella::native
