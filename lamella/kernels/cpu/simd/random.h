// Conversion of random words to distributions, in vectors.
#pragma once
#include <cstdint>

#include "lamella/kernels/dispatch_stub.h"

namespace lamella::native {

struct RandomLoops {
  // n numbers in [low, low + span), made of 24 bits of one word or 53 bits of two. Numbers that
  // round to `end` become `low`.
  void (*uniform_float)(const uint32_t* words, float* to, int64_t n, float low, float span,
                        float end);
  void (*uniform_double)(const uint32_t* words, double* to, int64_t n, double low, double span,
                         double end);
  // Whether the uniform double of two words is below bound / 2^53.
  void (*below)(const uint32_t* words, bool* to, int64_t n, uint64_t bound);
  // low + word % range, 0 < range < 2^28.
  void (*remainders)(const uint32_t* words, int64_t* to, int64_t n, int64_t low, uint32_t range);
  // Blocks of sixteen uniform numbers become normal ones, in place.
  void (*normal_blocks)(float* data, int64_t blocks, float mean, float std);
  // -log(1 - x) / rate for x in [0, 1), in place.
  void (*exponential)(double* data, int64_t n, double rate);
};
using random_loops_fn = const RandomLoops& (*)();
LAMELLA_KERNEL(random_loops_fn, random_loops_on);

}  // namespace lamella::native
