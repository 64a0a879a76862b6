// ConvolutionProblem: the convolutions that the convolution library computes, in its terms.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// The arguments of lamella_convolution (lamella/kernels/blas/blas.h).
struct ConvolutionProblem {
  enum Kind : uint8_t { Forward, BackwardData, BackwardWeights };
  struct Spatial {
    int64_t in, out, kernel, stride, padding, padding_end, dilation;
  };
  // An operand, or the result as number 2, and its dimensions in the order in which
  // lamella_convolution takes their strides.
  struct Role {
    size_t array;
    std::vector<int64_t> dimensions;
  };
  Kind kind;
  int64_t batch, groups, in_channels, out_channels;
  std::vector<Spatial> spatial;
  Role src, weights, dst;
};
// nullopt for other instructions, for convolutions that are not F32, and for padding that is
// negative or wider than the kernel. A convolution of a dilated input by a reversed kernel is the
// gradient of another convolution's input; one whose kernel is larger than its result is the
// gradient of another one's weights.
std::optional<ConvolutionProblem> convolution_problem(const Instruction& i);

}  // namespace lamella::hlo
