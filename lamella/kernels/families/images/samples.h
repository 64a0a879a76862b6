// Samples of images at the points of a grid, compiled for each capability of the processor.
#pragma once
#include <cstdint>

namespace lamella::images {

enum Mode : uint8_t { kBilinear = 0, kNearest = 1, kBicubic = 2 };
enum Padding : uint8_t { kZeros = 0, kBorder = 1, kReflection = 2 };

// The points that are sampled of one image; its planes have less than 2^31 pixels.
template <class T>
struct Samples {
  const T* image;  // [channels, size[0], size[1]]
  const T* grid;   // [points, 2], the coordinate of the last dimension first
  T* out;          // [channels, points]
  int64_t channels, size[2], points;
  Mode mode;
  Padding padding;
  bool align_corners;
};

}  // namespace lamella::images
