// Pooling over windows of up to 3 dimensions: code that the operators share.
//
// Note [Windows of a pooling]
//   A window is a box, so it is given by one range in each dimension. The ranges of all output
//   positions are stored in a table per dimension; fixed and adaptive windows differ only in these
//   tables. They are as long as the output, so they are filled only after the output is allocated.
#pragma once
#include <functional>
#include <vector>

#include "lamella/kernels/cpu/simd/pooling.h"
#include "lamella/kernels/native.h"

namespace lamella::native {

// Tensors are [planes][in0][in1][in2][lanes]: Note [Rows of a pooling]. If there are fewer
// dimensions, the first ones have size 1.
struct Pooling {
  int64_t planes = 1, lanes = 1;
  int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1};
  // The ranges of one dimension.
  std::function<void(std::vector<PoolRange>&)> layer[3];
  std::vector<PoolRange> ranges[3];
  std::function<std::vector<PoolSegment>()> segments;  // of dimension 2, of fixed windows
  Dims shape;                                          // of the output
  int64_t divisor = 0;  // if not 0, averages divide by it instead of the ranges' counts
  // The layout of the results, and the layout in which the loops work.
  MemoryFormat format = MemoryFormat::Contiguous, inner = MemoryFormat::Contiguous;

  int64_t inputs() const { return in[0] * in[1] * in[2]; }
  int64_t outputs() const { return out[0] * out[1] * out[2]; }
  void lay();
};

struct PoolWindow {
  IntArrayRef kernel, stride, padding, dilation;
  bool ceil_mode = false;
  bool count_padding = true;
};
// Throws where the window does not fit.
Pooling fixed_pooling(const char* op, const Tensor& input, int spatial, const PoolWindow& window);
Pooling adaptive_pooling(const char* op, const Tensor& input, int spatial, IntArrayRef output_size);

// The places are undefined if the maxima alone are asked for, which there are loops for where
// has_max_values.
std::tuple<Tensor, Tensor> max_pooling(const char* op, Pooling p, const Tensor& input,
                                       bool values_alone = false);
bool has_max_values(const Pooling& p, const Tensor& input);
Tensor max_pooling_backward(const char* op, Pooling p, const Tensor& grad, const Tensor& input,
                            const Tensor& indices);
Tensor average_pooling(const char* op, Pooling p, const Tensor& input);
Tensor average_pooling_backward(const char* op, Pooling p, const Tensor& grad, const Tensor& input);

}  // namespace lamella::native
