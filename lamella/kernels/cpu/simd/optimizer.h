// Steps of optimizers over contiguous memory, one set for each CPU capability.
#pragma once
#include "lamella/core/scalar_type.h"
#include "lamella/kernels/dispatch_stub.h"

namespace lamella::native {

// p -= lr * d, where d comes from the gradient g:
//   g = +-g / grad_scale + weight_decay * p
//   buffer = first ? g : momentum * buffer + (1 - dampening) * g
//   d = nesterov ? g + momentum * buffer : buffer; without momentum d = g
// With a grad_scale other than 1 the scaled gradient is stored.
struct SgdStep {
  double lr, weight_decay, momentum, dampening, grad_scale;
  bool nesterov, maximize, first;
};
using sgd_fn = void (*)(ScalarType dtype, const SgdStep& s, void* p, void* g, void* buffer,
                        int64_t begin, int64_t end);
LAMELLA_KERNEL(sgd_fn, sgd_on);

// Kingma and Ba, Adam, 2015; with `decoupled` Loshchilov and Hutter, Decoupled Weight Decay
// Regularization, 2019. largest is null unless AMSGrad is asked for.
struct AdamStep {
  double lr, beta1, beta2, weight_decay, eps, grad_scale;
  double correction1, correction2;  // 1 - beta^step
  bool maximize, decoupled;
};
using adam_fn = void (*)(ScalarType dtype, const AdamStep& s, void* p, void* g, void* average,
                         void* square, void* largest, int64_t begin, int64_t end);
LAMELLA_KERNEL(adam_fn, adam_on);

}  // namespace lamella::native
