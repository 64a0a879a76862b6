// Operators whose outputs each read a few input elements, at positions that are computed separately
// for each dimension: padding by reflection or replication, nearest and linear interpolation.
#pragma once
#include <functional>
#include <vector>

#include "lamella/kernels/cpu/simd/resample.h"
#include "lamella/kernels/native.h"

namespace lamella::native {

// A ResampleTable and its memory; `second` may be empty.
struct ResampleAxis {
  int64_t in = 1, out = 1;
  // Fills the tables below with `out` entries. They are as long as the output, so this is called
  // only after the output is allocated.
  std::function<void(ResampleAxis&)> lay = [](ResampleAxis& axis) { axis.first = {0}; };
  std::vector<int64_t> first, second;
  std::vector<double> share;

  ResampleTable table() const {
    return {in, out, first.data(), second.empty() ? nullptr : second.data(), share.data()};
  }
};

// A resampling of the last dimensions of a tensor; if there are fewer than 3, the first have size
// 1.
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
// The gradient of the input, of shape `sizes`.
Tensor resample_backward(const char* op, Resample r, const Tensor& grad, IntArrayRef sizes);

}  // namespace lamella::native
