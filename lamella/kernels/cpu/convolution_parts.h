// Helpers that the convolution algorithms share, and the functions that convolution.cpp tries
// first: for few channels (Note [Padded planes]) and Winograd's.
#pragma once
#include "lamella/kernels/cpu/convolution.h"
#include "lamella/kernels/parallel.h"

namespace lamella::native {

// The sizes of a convolution, extended to three spatial dimensions.
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

// The columns of one sample's channels, Note [Convolutions as matrix products]: a row for each
// channel and element of the kernel, with the input that each output position multiplies by it, or
// zero in the padding. from_columns() sums the columns at the positions that they were gathered
// from. Both write all of their result; dtypes of visit_numbers().
void to_columns(const char* op, ScalarType dtype, const Volume& v, const void* src, void* columns,
                int64_t channels);
void from_columns(const char* op, ScalarType dtype, const Volume& v, const void* columns, void* src,
                  int64_t channels);

// The least multiplications in a share of a weight gradient, and the greatest number of shares:
// Note [Shares of a convolution].
constexpr double kLeastSum = 1 << 24;
constexpr int64_t kMaxSums = 8;

// weight[0..elements) = the sum over `count` shares of the values that f(i, to) writes.
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

// Like the functions of convolution.h, for float32 and groups of few input channels (one for the
// gradient of the weights). They return false where another algorithm is faster.
bool planes_forward(const Convolution& c, const Tensor& src, const Tensor& weight,
                    const Tensor& bias, const Tensor& dst);
bool planes_backward_data(const Convolution& c, const Tensor& dst, const Tensor& weight,
                          const Tensor& src);
bool planes_backward_weight(const Convolution& c, const Tensor& src, const Tensor& dst,
                            const Tensor& weight);

// Computes the convolution or the gradient of its input by Winograd's algorithm. Returns false,
// with dst undefined, where another algorithm is faster or results are not finite. `storage` as in
// library_convolution().
bool winograd_convolution(const lamella_convolution& problem, Storage* storage);

}  // namespace lamella::native
