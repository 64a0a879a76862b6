// What the ways to compute a convolution share, and the way of few channels: Note [Padded planes].
#pragma once
#include "lamella/kernels/cpu/convolution.h"
#include "lamella/kernels/parallel.h"

namespace lamella::native {

// Three spatial dimensions, whatever there are.
struct Volume {
  int64_t in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];
  int64_t inputs, outputs, taps;  // products of in, out, kernel

  explicit Volume(const Convolution& c) {
    int lead = 3 - c.ndim;
    for (int d = 0; d < 3; ++d) {
      bool given = d >= lead;
      in[d] = given ? c.in[d - lead] : 1;
      out[d] = given ? c.out[d - lead] : 1;
      kernel[d] = given ? c.kernel[d - lead] : 1;
      stride[d] = given ? c.stride[d - lead] : 1;
      padding[d] = given ? c.padding[d - lead] : 0;
      dilation[d] = given ? c.dilation[d - lead] : 1;
    }
    inputs = in[0] * in[1] * in[2];
    outputs = out[0] * out[1] * out[2];
    taps = kernel[0] * kernel[1] * kernel[2];
  }
  bool is_pointwise() const {
    for (int d = 0; d < 3; ++d) {
      if (kernel[d] != 1 || stride[d] != 1 || padding[d] != 0) return false;
    }
    return true;
  }
};

// Multiplications that a share of a gradient of weights has at least, and how many shares there are
// at most: Note [Shares of a convolution].
constexpr double kLeastSum = 1 << 24;
constexpr int64_t kMostSums = 8;

// weight[0..elements) = the sum of what f(i, to) writes there for `count` shares.
template <class F>
void sum_of_shares(int64_t count, float* weight, int64_t elements, F&& f) {
  if (count == 1) return f(0, weight);
  Tensor kept = new_tensor({count, elements}, kFloat, kCPU);
  float* sums = kept.mutable_data_ptr<float>();
  parallel_for(0, count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) f(i, sums + i * elements);
  });
  parallel_for(0, elements, kGrainSize, [&](int64_t begin, int64_t end) {
    for (int64_t w = begin; w < end; ++w) {
      float sum = sums[w];
      for (int64_t i = 1; i < count; ++i) sum += sums[i * elements + w];
      weight[w] = sum;
    }
  });
}

// As the functions of convolution.h, where groups have few input channels (for the gradient of the
// weights: one) and float32 elements; false where another way serves better.
bool planes_forward(const Convolution& c, const Tensor& src, const Tensor& weight,
                    const Tensor& bias, const Tensor& dst);
bool planes_backward_data(const Convolution& c, const Tensor& dst, const Tensor& weight,
                          const Tensor& src);
bool planes_backward_weight(const Convolution& c, const Tensor& src, const Tensor& dst,
                            const Tensor& weight);

// The convolution or gradient of what it reads by Winograd's products; false, with dst as it may
// be, where another way serves better or results are not finite. `storage` as of
// library_convolution().
bool winograd_convolution(const lamella_convolution& problem, Storage* storage);

}  // namespace lamella::native
