// Losses of single elements, float32 and float64, one set for each CPU capability.
#pragma once
#include "lamella/core/scalar_type.h"
#include "lamella/kernels/dispatch_stub.h"

namespace lamella::native {

enum class Loss : uint8_t {
  kSquare,      // (x - t)^2
  kSmoothL1,    // (x - t)^2 / (2 beta) up to beta, |x - t| - beta / 2 beyond
  kHuber,       // beta times kSmoothL1
  kSoftMargin,  // log(1 + exp(-t x))
  kEntropy,     // -t log x - (1 - t) log(1 - x), logarithms not below -100
};

// Stores the n losses in `out`, or returns their sum if `out` is null.
using loss_fn = double (*)(Loss loss, ScalarType dtype, const void* x, const void* t, void* out,
                           int64_t n, double beta);
LAMELLA_KERNEL(loss_fn, loss_on);

// out = scale * grad * d loss / d x. grad has n elements, or one if `one_grad`.
struct LossBackward {
  Loss loss;
  ScalarType dtype;
  bool one_grad;
  const void* x;
  const void* t;
  const void* grad;
  void* out;
  double beta, scale;
};
using loss_backward_fn = void (*)(const LossBackward& p, int64_t begin, int64_t end);
LAMELLA_KERNEL(loss_backward_fn, loss_backward_on);

}  // namespace lamella::native
