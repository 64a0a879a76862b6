// Discrete Fourier transforms of any length, in double.
//
// Note [Transforms]
//   A length is split by its smallest prime factor (Cooley and Tukey, 1965). Short prime lengths
//   are summed by the definition; long ones become a circular convolution whose length is a power
//   of two (Bluestein, 1970). Roots of unity are computed from exact fractions of a turn.
#include <cmath>
#include <numbers>

#include "lamella/core/interrupt.h"
#include "lamella/graph/evaluate/contraction.h"
#include "lamella/graph/evaluate/elements.h"

namespace lamella::hlo {
namespace {

using Complex = complex<double>;
using Signal = std::vector<Complex>;

constexpr int64_t kLongestSum = 64;

Complex conjugate(Complex z) { return {z.real(), -z.imag()}; }
// exp(2 pi i * numerator / denominator).
Complex root_of_unity(int64_t numerator, int64_t denominator) {
  double angle = 2 * std::numbers::pi * static_cast<double>(numerator % denominator) /
                 static_cast<double>(denominator);
  return {std::cos(angle), std::sin(angle)};
}
int64_t smallest_factor(int64_t n) {
  for (int64_t p = 2; p * p <= n; ++p) {
    if (n % p == 0) return p;
  }
  return n;
}

// sum over j of signal[j] exp(sign * 2 pi i j k / n).
Signal transform(const Signal& signal, int sign);

Signal transform_by_definition(const Signal& signal, int sign) {
  auto n = static_cast<int64_t>(signal.size());
  Signal result(signal.size()), roots(signal.size());
  for (int64_t k = 0; k < n; ++k) roots[static_cast<size_t>(k)] = root_of_unity(sign * k, n);
  for (int64_t k = 0; k < n; ++k) {
    Complex sum;
    for (int64_t j = 0; j < n; ++j) {
      sum += signal[static_cast<size_t>(j)] * roots[static_cast<size_t>(j * k % n)];
    }
    result[static_cast<size_t>(k)] = sum;
    count_steps(8 * n);
  }
  return result;
}

Signal transform_long_prime(const Signal& signal, int sign) {
  auto n = static_cast<int64_t>(signal.size());
  size_t padded = 1;
  while (padded < 2 * signal.size() - 1) padded *= 2;
  // Because j k = (j^2 + k^2 - (k - j)^2) / 2, the transform is a convolution with a chirp.
  Signal chirp(signal.size()), left(padded), right(padded);
  for (int64_t j = 0; j < n; ++j) {
    auto at = static_cast<size_t>(j);
    chirp[at] = root_of_unity(sign * (j * j % (2 * n)), 2 * n);
    left[at] = signal[at] * chirp[at];
    right[at] = conjugate(chirp[at]);
    if (j > 0) right[padded - at] = right[at];
  }
  left = transform(left, -1);
  right = transform(right, -1);
  for (size_t k = 0; k < padded; ++k) left[k] = left[k] * right[k];
  left = transform(left, 1);
  Signal result(signal.size());
  for (size_t k = 0; k < result.size(); ++k) {
    result[k] = left[k] * chirp[k] * Complex(1.0 / static_cast<double>(padded));
  }
  return result;
}

Signal transform(const Signal& signal, int sign) {
  auto n = static_cast<int64_t>(signal.size());
  if (n <= 1) return signal;
  int64_t p = smallest_factor(n);
  if (p == n) {
    return n <= kLongestSum ? transform_by_definition(signal, sign)
                            : transform_long_prime(signal, sign);
  }
  int64_t m = n / p;
  std::vector<Signal> parts;
  for (int64_t r = 0; r < p; ++r) {
    Signal part(static_cast<size_t>(m));
    for (int64_t j = 0; j < m; ++j) {
      part[static_cast<size_t>(j)] = signal[static_cast<size_t>(j * p + r)];
    }
    parts.push_back(transform(part, sign));
  }
  Signal roots(signal.size());
  for (int64_t k = 0; k < n; ++k) roots[static_cast<size_t>(k)] = root_of_unity(sign * k, n);
  Signal result(signal.size());
  for (int64_t k = 0; k < n; ++k) {
    Complex sum;
    for (int64_t r = 0; r < p; ++r) {
      sum += parts[static_cast<size_t>(r)][static_cast<size_t>(k % m)] *
             roots[static_cast<size_t>(r * k % n)];
    }
    count_steps(p);
    result[static_cast<size_t>(k)] = sum;
  }
  return result;
}

// Transforms along one dimension of a row-major array.
void transform_along(Signal& all, std::span<const int64_t> sizes, size_t dimension, int sign) {
  std::vector<int64_t> strides = row_major_strides(sizes);
  std::vector<int64_t> rows(sizes.begin(), sizes.end());
  rows[dimension] = 1;
  Signal row(static_cast<size_t>(sizes[dimension]));
  for (Counter at(rows); at.valid(); at.next()) {
    int64_t start = place_of(at.index(), strides);
    for (size_t k = 0; k < row.size(); ++k) {
      row[k] = all[static_cast<size_t>(start + static_cast<int64_t>(k) * strides[dimension])];
    }
    Signal done = transform(row, sign);
    for (size_t k = 0; k < row.size(); ++k) {
      all[static_cast<size_t>(start + static_cast<int64_t>(k) * strides[dimension])] = done[k];
    }
  }
}

// Truncates the last dimension, or extends it with zeros, to the wanted size.
Signal with_last_dimension(const Signal& all, int64_t size, int64_t wanted) {
  int64_t rows = size == 0 ? 0 : static_cast<int64_t>(all.size()) / size;
  Signal result(static_cast<size_t>(rows * wanted));
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t k = 0; k < std::min(size, wanted); ++k) {
      result[static_cast<size_t>(r * wanted + k)] = all[static_cast<size_t>(r * size + k)];
    }
  }
  return result;
}

}  // namespace

Value evaluate_fft(Step& step) {
  const Instruction& i = step.instruction;
  std::string_view kind = i.text(AttributeKey::FftType);
  bool inverse = kind == "IFFT" || kind == "IRFFT";
  int sign = inverse ? 1 : -1;
  auto length = i.integers(AttributeKey::FftLength);
  const Shape& shape = step.operands[0].shape();
  Value result = step.result();
  if (result.shape().elements() == 0) return result;

  Signal all = widened<Complex>(step.operands[0]);
  std::vector<int64_t> sizes = copy_of(shape.dimensions());
  size_t last = sizes.size() - 1, first = sizes.size() - length.size();
  if (kind != "IRFFT") transform_along(all, sizes, last, sign);
  for (size_t d = first; d < last; ++d) transform_along(all, sizes, d, sign);
  int64_t size = sizes[last], wanted = step.shape().dimension(step.shape().rank() - 1);
  if (kind == "RFFT") all = with_last_dimension(all, size, wanted);
  if (kind == "IRFFT") {
    // The second half is the conjugate mirror image of the first, so elements that mirror
    // themselves are real.
    all = with_last_dimension(all, size, wanted);
    sizes[last] = wanted;
    for (size_t row = 0; row < all.size(); row += static_cast<size_t>(wanted)) {
      all[row].imag(0);
      if (wanted % 2 == 0) all[row + static_cast<size_t>(wanted / 2)].imag(0);
      for (int64_t k = wanted / 2 + 1; k < wanted; ++k) {
        all[row + static_cast<size_t>(k)] = conjugate(all[row + static_cast<size_t>(wanted - k)]);
      }
    }
    transform_along(all, sizes, last, sign);
  }
  if (inverse) {
    double count = 1;
    for (int64_t n : length) count *= static_cast<double>(n);
    for (Complex& z : all) z = {z.real() / count, z.imag() / count};
  }
  store_wide(all, result);
  return result;
}

}  // namespace lamella::hlo
