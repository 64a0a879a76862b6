// Outputs that each read a few elements of the input, at places that are found for each dimension
// apart: padding by reflection or replication, nearest and linear interpolation.
#pragma once
#include <functional>
#include <vector>

#include "lamella/kernels/cpu/simd/resample.h"
#include "lamella/kernels/native.h"

namespace lamella::native {

// A ResampleTable and its memory; `second` may be empty.
struct ResampleAxis {
  int64_t in = 1, out = 1;
  // Lays the tables below, of `out` entries. They are as long as the output, so this is done once
  // there is memory for that.
  std::function<void(ResampleAxis&)> lay = [](ResampleAxis& axis) { axis.first = {0}; };
  std::vector<int64_t> first, second;
  std::vector<double> share;

  ResampleTable table() const {
    return {in, out, first.data(), second.empty() ? nullptr : second.data(), share.data()};
  }
};

// Over the last dimensions of a tensor; what has fewer than 3 is filled up in front.
struct Resample {
  ResampleAxis axes[3];
  Dims shape;          // of the output
  size_t leading;      // dimensions before those that are resampled
  bool mixes = false;  // whether the axes have `second`
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
