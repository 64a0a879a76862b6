// The parameters of the kernels of optimizer.h, for the host.
#pragma once
#include <cstdint>

namespace lamella::cuda {

inline constexpr int kSteppedTensors = 40;  // of a launch
// The tensors of one parameter, dense and in one order. 0: there is none.
struct Stepped {
  int64_t end;                            // of its elements among those of the launch
  uint64_t p, g, first, second, largest;  // SGD's buffer is `first`
  uint64_t count;                         // of steps, a float on the device
  double steps;                           // the same on the host, if `count` is 0
};
struct OptimizerParameters {
  int32_t tensors;
  int32_t maximize, decoupled, nesterov, is_first;
  double lr, beta1, beta2, weight_decay, eps, momentum, dampening;
  uint64_t rate;                   // a double on the device; 0: there is none
  uint64_t grad_scale, found_inf;  // floats on the device; 0: there is none
  Stepped of[kSteppedTensors];
};

}  // namespace lamella::cuda
