// Convolutions whose groups have few input channels, by padded planes.
#include <algorithm>
#include <optional>

#include "lamella/kernels/cpu/convolution_parts.h"
#include "lamella/kernels/cpu/simd/depthwise.h"

namespace lamella::native {

namespace {
constexpr int64_t kMaxPlaneInputs = 4;

// The problem for the kernels of simd/depthwise.h, or nothing where the library is faster: with
// many input channels, or where padding or strides make the buffer large.
std::optional<Depthwise> depthwise(const Convolution& c, int64_t most_inputs, const Tensor& src,
                                   const Tensor& weight, const Tensor& bias, const Tensor& dst) {
  Volume v(c);
  int64_t inputs = c.in_channels / c.groups;
  double padded = 1;
  for (int d = 0; d < 3; ++d) padded *= static_cast<double>(v.in[d] + 2 * v.padding[d]);
  bool is_small = padded <= 2 * static_cast<double>(v.inputs) + (1 << 16) && padded < 1e8;
  if (c.dtype != kFloat || c.channels_last || !convolution_by_library(c) || inputs > most_inputs ||
      !is_small || v.stride[2] > 5 || v.taps > (inputs == 1 ? 128 : 32) || src.numel() == 0 ||
      dst.numel() == 0) {
    return std::nullopt;
  }
  Depthwise p{c.batch,
              c.groups,
              inputs,
              c.out_channels / c.groups,
              {},
              {},
              {},
              {},
              {},
              {},
              src.mutable_data_ptr<float>(),
              weight.mutable_data_ptr<float>(),
              bias.defined() ? bias.const_data_ptr<float>() : nullptr,
              dst.mutable_data_ptr<float>()};
  std::copy(v.in, v.in + 3, p.in);
  std::copy(v.out, v.out + 3, p.out);
  std::copy(v.kernel, v.kernel + 3, p.kernel);
  std::copy(v.stride, v.stride + 3, p.stride);
  std::copy(v.padding, v.padding + 3, p.padding);
  std::copy(v.dilation, v.dilation + 3, p.dilation);
  return p;
}
// The multiplications of one group of one sample.
int64_t work_of(const Depthwise& p) {
  return p.multiplier * p.inputs * p.out[0] * p.out[1] * p.out[2] * p.kernel[0] * p.kernel[1] *
         p.kernel[2];
}
void run_forward(const Depthwise& p) {
  parallel_for(0, p.batch * p.groups, (1 << 18) / (work_of(p) + 1) + 1,
               [&](int64_t begin, int64_t end) { depthwise_forward_on(kCPU, p, begin, end); });
}
}  // namespace

bool planes_forward(const Convolution& c, const Tensor& src, const Tensor& weight,
                    const Tensor& bias, const Tensor& dst) {
  auto p = depthwise(c, kMaxPlaneInputs, src, weight, bias, dst);
  if (p) run_forward(*p);
  return p.has_value();
}

// With stride 1, the gradient is a convolution of dst with the reversed kernel, whose groups have
// as many inputs as they had outputs. Returns false if the kernel does not support it.
bool planes_backward_data(const Convolution& c, const Tensor& dst, const Tensor& weight,
                          const Tensor& src) {
  Convolution back = c;
  back.in_channels = c.out_channels;
  back.out_channels = c.in_channels;
  for (int d = 0; d < c.ndim; ++d) {
    back.in[d] = c.out[d];
    back.out[d] = c.in[d];
    back.padding[d] = c.dilation[d] * (c.kernel[d] - 1) - c.padding[d];
    if (c.stride[d] != 1 || back.padding[d] < 0) return false;
  }
  int64_t inputs = c.in_channels / c.groups, outputs = c.out_channels / c.groups;
  if (inputs > kMaxPlaneInputs) return false;
  auto problem = depthwise(back, outputs, dst, weight, Tensor(), src);
  if (!problem) return false;
  int64_t taps = weight.numel() / (c.out_channels * inputs);
  Tensor reversed = new_tensor(weight.sizes(), kFloat, kCPU);
  const float* from = problem->weights;
  float* to = problem->weights = reversed.mutable_data_ptr<float>();
  for (int64_t group = 0; group < c.groups; ++group, from += inputs * outputs * taps) {
    for (int64_t i = 0; i < inputs; ++i) {
      for (int64_t o = 0; o < outputs; ++o, to += taps) {
        const float* kernel = from + (o * inputs + i) * taps;
        std::reverse_copy(kernel, kernel + taps, to);
      }
    }
  }
  run_forward(*problem);
  return true;
}

// With few groups, each share of the batch computes a partial sum.
bool planes_backward_weight(const Convolution& c, const Tensor& src, const Tensor& dst,
                            const Tensor& weight) {
  auto problem = depthwise(c, 1, src, weight, Tensor(), dst);
  if (!problem) return false;
  const Depthwise& p = *problem;
  constexpr int64_t kManyGroups = 16;
  auto most = static_cast<int64_t>(static_cast<double>(work_of(p)) *
                                   static_cast<double>(p.batch * p.groups) / kLeastSum) +
              1;
  int64_t wanted = p.groups >= kManyGroups ? 1 : std::min({kMaxSums, most, p.batch});
  int64_t each = (p.batch + wanted - 1) / wanted, count = (p.batch + each - 1) / each;
  auto* sum = weight.mutable_data_ptr<float>();
  sum_of_shares(count, sum, weight.numel(), [&](int64_t i, float* to) {
    Depthwise share = p;
    share.batch = std::min(each, p.batch - i * each);
    share.src += i * each * p.groups * p.inputs * p.in[0] * p.in[1] * p.in[2];
    share.dst += i * each * p.groups * p.multiplier * p.out[0] * p.out[1] * p.out[2];
    share.weights = to;
    parallel_for(0, p.groups, (1 << 18) / (work_of(p) + 1) + 1, [&](int64_t begin, int64_t end) {
      depthwise_backward_weights_on(kCPU, share, begin, end);
    });
  });
  return true;
}

}  // namespace lamella::native
