// Transforms of lines in memory; compiled for each CPU capability.
#pragma once
#include <cstdint>

#include "lamella/kernels/families/fft/plan.h"

namespace lamella::fft {

// Complex numbers are pairs, real parts first. For complex lines, `out` may be `in`.

// Transforms one line of complex numbers; `scratch` holds plan.scratch() numbers.
template <class T>
void complex_line(const LinePlan<T>& plan, const T* in, T* out, T* scratch, bool forward, T scale);

// The data of a transform: lines of n points. The points of a line are `inner` apart, and lines lie
// in groups of `inner` neighbours: line l begins at (l / inner) * n * inner + l % inner.
template <class T>
struct Lines {
  const T* in;
  T* out;
  int64_t n, inner;
  bool forward;
  T scale;
};

// The functions of one capability.
template <class T>
struct Functions {
  int64_t wide;  // lanes
  void (*complex_line)(const LinePlan<T>& plan, const T* in, T* out, T* scratch, bool forward,
                       T scale);
  // Transforms lines [begin, end) of contiguous points.
  void (*complex_lines)(const LinePlan<T>& plan, const Lines<T>& lines, int64_t begin, int64_t end);
  // Transforms groups [begin, end) of `wide` lines; the last of each group of neighbours may have
  // fewer. If inner is 1, these are consecutive lines of contiguous points.
  void (*complex_columns)(const Plan<T>& plan, const Lines<T>& lines, int64_t count, int64_t begin,
                          int64_t end);
  // Transforms real lines of n points to complex lines of n / 2 + 1 points, and the reverse. `plan`
  // is for n / 2 points if n is even, else for n. If n is even, `roots` has the first n / 4 + 1
  // n-th roots of unity.
  void (*real_lines)(const LinePlan<T>& plan, const T* roots, const Lines<T>& lines, int64_t begin,
                     int64_t end);
  void (*lines_to_real)(const LinePlan<T>& plan, const T* roots, const Lines<T>& lines,
                        int64_t begin, int64_t end);
};

template <class T>
const Functions<T>& functions();

}  // namespace lamella::fft
