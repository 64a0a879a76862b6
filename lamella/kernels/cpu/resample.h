// Outputs that each read a few elements of the input, at places that are found for each dimension
// apart: padding by reflection or replication, nearest and linear interpolation.
#pragma once
#include <functional>
#include <vector>

#include "lamella/kernels/native.h"

namespace lamella::native {

// What output position o of one dimension reads: element first[o], or a mixture with second[o] of
// which `share` [0, 1] is the second's part. Without `second` only the first.
struct ResampleAxis {
  int64_t in = 1, out = 1;
  // Lays the tables below, of `out` entries. They are as long as the output, so this is done once
  // there is memory for that.
  std::function<void(ResampleAxis&)> lay = [](ResampleAxis& axis) { axis.first = {0}; };
  std::vector<int64_t> first, second;
  std::vector<double> share;
};

// Over the last dimensions of a tensor; what has fewer than 3 is filled up in front.
struct Resample {
  ResampleAxis axes[3];
  Dims shape;  // of the output
  int64_t planes;

  int64_t inputs() const { return axes[0].in * axes[1].in * axes[2].in; }
  int64_t outputs() const { return axes[0].out * axes[1].out * axes[2].out; }
  void lay() {
    for (ResampleAxis& axis : axes) axis.lay(axis);
  }
};

Tensor resample(const char* op, Resample r, const Tensor& input);
// What reaches the input, of shape `sizes`.
Tensor resample_backward(const char* op, Resample r, const Tensor& grad, IntArrayRef sizes);

}  // namespace lamella::native
