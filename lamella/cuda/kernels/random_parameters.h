// What the host passes to kernels of random numbers: Note [Streams of numbers on a device] in
// random.h.
#pragma once
#include "lamella/cuda/kernels/pointwise_parameters.h"

namespace lamella::cuda {

enum Distribution : int32_t {
  kUniform,      // in [a, b)
  kNormal,       // mean a, deviation b
  kExponential,  // rate a
  kBernoulli,    // chance a
  kCauchy,       // median a, scale b
  kLogNormal,    // exp of kNormal
  kGeometric,    // chance a
  kIntegers      // base + word % range; every word if the range is 0
};
// Of every launch that draws.
struct Drawing {
  uint64_t out;  // dense
  uint64_t numel;
  uint64_t seed, offset;
  uint64_t state;  // of a captured launch: where its replay finds the seed and the first offset
  Kind kind;       // of `out`
};
struct RandomParameters : Drawing {
  Distribution what;
  double a, b;
  uint64_t range;
  int64_t base;
  uint64_t chances;  // of kBernoulli for each element, if not 0, in the kernel's type
};
struct DropoutParameters : Drawing {
  uint64_t in, mask;
  int32_t neighbours;  // elements of a thread that lie side by side: 1, 2 or 4
  double kept;         // the chance to stay
};

}  // namespace lamella::cuda
