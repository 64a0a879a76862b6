// Transforms of Winograd's convolution, float32, one set for each CPU capability.
//
// Note [Winograd]
//   A tile of 2x2 results of a 3x3 kernel reads 4x4 elements. Elements and weights are transformed
//   so that a tile needs sixteen multiplications instead of thirty-six (Winograd's minimal
//   filtering, F(2x2, 3x3), in the form of Lavin and Gray, 2015), and a convolution is sixteen
//   matrix products of [tiles][channels] with [channels][channels]. A result depends only on the
//   elements that its kernel reads. Infinite elements give NaN instead of infinite results, which
//   the transform of the results reports.
#pragma once
#include <cstdint>

#include "lamella/kernels/dispatch_stub.h"

namespace lamella::native {

constexpr int64_t kWinogradPoints = 16;  // numbers of a transformed tile

// Planes whose channels are innermost and contiguous; tiles of 2x2 results are numbered from left
// to right, downwards, by samples. Strides are in elements.
struct WinogradPlanes {
  const float* from;
  float* to;
  const float* bias;  // one number for each channel of `to`, or null
  int64_t from_channels, from_height, from_width, from_sample, from_row, from_column;
  int64_t to_channels, to_height, to_width, to_sample, to_row, to_column;
  int64_t above, left;   // padding before the first row and column
  int64_t down, across;  // tiles of a sample
};
// Strides of a kernel's weights in elements: by input channel, output channel, row and column.
struct WinogradWeights {
  const float* weights;
  int64_t from_channels, to_channels, from, to, row, column;
};

struct WinogradKernels {
  // Writes values[point][tile][channel] for tiles [first, first + count).
  void (*elements)(const WinogradPlanes& planes, int64_t first, int64_t count, float* values);
  // Writes values[point][from][to] for input channels [begin, end), in rows `values_row` apart.
  void (*weights)(const WinogradWeights& weights, int64_t begin, int64_t end, float* values,
                  int64_t values_row);
  // Writes the results of tiles [first, first + count) from values[point][tile][channel]. Returns
  // whether all of them are finite.
  bool (*results)(const WinogradPlanes& planes, int64_t first, int64_t count, const float* values);
};
LAMELLA_KERNEL(const WinogradKernels* (*)(), winograd_kernels_on);

}  // namespace lamella::native
