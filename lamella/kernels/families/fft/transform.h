// Fourier transforms of arrays along one dimension.
#pragma once
#include <cstdint>

namespace lamella::fft {

// Dense row-major arrays of `outer` x n x `inner` numbers. Results are multiplied by `scale`.
struct Shape {
  int64_t outer, n, inner;
};

// Complex numbers as pairs; `out` may be `in`.
template <class T>
void complex_transform(const Shape& shape, const T* in, T* out, bool forward, double scale);
// n real numbers to n / 2 + 1 complex ones, and the reverse; inner is 1.
template <class T>
void real_transform(const Shape& shape, const T* in, T* out, bool forward, double scale);
template <class T>
void transform_to_real(const Shape& shape, const T* in, T* out, bool forward, double scale);

}  // namespace lamella::fft
