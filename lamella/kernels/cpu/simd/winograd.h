// Transforms of Winograd's convolution, float32, one set for each CPU capability.
//
// Note [Winograd]
//   Two by two neighbouring results of a kernel of three by three read four by four elements. Both
//   are brought into a form in which the kernel is sixteen products of numbers instead of
//   thirty-six (Winograd's minimal filtering, F(2x2, 3x3), in the form of Lavin and Gray, 2015), so
//   that a convolution is sixteen matrix products: tiles by channels with channels by channels. A
//   result depends on the elements that its own kernel reads alone, as in a sum. Infinite elements
//   give NaN in place of infinite results, which the transform of the results reports.
#pragma once
#include <cstdint>

#include "lamella/kernels/dispatch_stub.h"

namespace lamella::native {

constexpr int64_t kWinogradPoints = 16;  // of a tile in the other form

// Samples of rows of pixels of channels, which lie side by side; tiles of two by two results from
// left to right, downwards, by samples. Strides in elements.
struct WinogradPlanes {
  const float* from;
  float* to;
  const float* bias;  // one number for each channel of `to`, or null
  int64_t from_channels, from_height, from_width, from_sample, from_row, from_column;
  int64_t to_channels, to_height, to_width, to_sample, to_row, to_column;
  int64_t above, left;   // what lies outside before the first row and column
  int64_t down, across;  // tiles of a sample
};
// Strides of a kernel's weights in elements, by channel that is read, channel that is made, row and
// column.
struct WinogradWeights {
  const float* weights;
  int64_t from_channels, to_channels, from, to, row, column;
};

struct WinogradKernels {
  // values[point][tile][channel] of tiles [first, first + count).
  void (*elements)(const WinogradPlanes& planes, int64_t first, int64_t count, float* values);
  // values[point][from][to] for channels [begin, end) of the former, `values_row` elements apart.
  void (*weights)(const WinogradWeights& weights, int64_t begin, int64_t end, float* values,
                  int64_t values_row);
  // The results of tiles [first, first + count) from values[point][tile][channel]; whether all of
  // them are finite.
  bool (*results)(const WinogradPlanes& planes, int64_t first, int64_t count, const float* values);
};
LAMELLA_DECLARE_DISPATCH(const WinogradKernels* (*)(), winograd_kernels_stub);

}  // namespace lamella::native
