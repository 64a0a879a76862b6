// Which convolutions the library of convolutions computes, and as what.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// What lamella_convolution (lamella/kernels/blas/blas.h) is told of a convolution.
struct ConvolutionProblem {
  enum Kind : uint8_t { Forward, BackwardData, BackwardWeights };
  struct Spatial {
    int64_t in, out, kernel, stride, padding, padding_end, dilation;
  };
  // An operand, or the result as number 2, and which of its dimensions are those that
  // lamella_convolution has strides of, in its order.
  struct Role {
    size_t array;
    std::vector<int64_t> dimensions;
  };
  Kind kind;
  int64_t batch, groups, in_channels, out_channels;
  std::vector<Spatial> spatial;
  Role src, weights, dst;
};
// Nothing of other instructions, of convolutions that are not F32, and where padding is negative or
// wider than the kernel. A convolution over an input with holes, by a kernel that is turned around,
// is the gradient of another one's input; one whose kernel is larger than its result is the
// gradient of another one's weights.
std::optional<ConvolutionProblem> convolution_problem(const Instruction& i);

}  // namespace lamella::hlo
