// Creation of plans. See Note [Fourier transforms].
#include "lamella/kernels/families/fft/plan.h"

#include <cmath>
#include <numbers>

#include "lamella/kernels/families/fft/lines.h"

namespace lamella::fft {
namespace {

// exp(-2 pi i k / n) for 0 <= k < n, from an angle of at most an eighth of a turn.
void root_of_unity(int64_t k, int64_t n, long double* re, long double* im) {
  const int64_t eighths = 8 * k / n;  // of a turn
  // The angle from the nearest multiple of a quarter.
  const int64_t quarter = (eighths + 1) / 2;
  const long double angle = 2 * std::numbers::pi_v<long double> *
                            static_cast<long double>(4 * k - quarter * n) /
                            (4 * static_cast<long double>(n));
  const long double c = std::cos(angle), s = std::sin(angle);
  switch (quarter % 4) {
    case 0:
      *re = c, *im = -s;
      return;
    case 1:
      *re = -s, *im = -c;
      return;
    case 2:
      *re = -c, *im = s;
      return;
    default:
      *re = s, *im = c;
  }
}

std::vector<int64_t> factors_of(int64_t n) {
  std::vector<int64_t> result;
  int twos = 0;
  for (; n % 2 == 0; n /= 2) ++twos;
  if (twos % 3 == 1) {
    if (twos == 1) {
      result.push_back(2);
      twos = 0;
    } else {
      result.assign(2, 4);
      twos -= 4;
    }
  } else if (twos % 3 == 2) {
    result.push_back(4);
    twos -= 2;
  }
  for (; twos > 0; twos -= 3) result.push_back(8);
  for (int64_t p = 3; n > 1; p += 2) {
    for (; n % p == 0; n /= p) result.push_back(p);
    if (p * p > n && n > 1) {
      result.push_back(n);
      break;
    }
  }
  return result;
}

}  // namespace

bool has_small_factors(int64_t n) {
  for (int64_t p = 2; p <= kLargestPrime; ++p) {
    while (n % p == 0) n /= p;
  }
  return n == 1;
}

template <class T>
Roots<T>::Roots(int64_t n) : n_(n), block_(1) {
  while (block_ * block_ < n) block_ *= 2;
  for (int64_t k = 0; k < block_; ++k) {
    Wide w;
    root_of_unity(k % n, n, &w.re, &w.im);
    fine_.push_back(w);
  }
  for (int64_t k = 0; k < n; k += block_) {
    Wide w;
    root_of_unity(k, n, &w.re, &w.im);
    coarse_.push_back(w);
  }
}

template <class T>
typename Roots<T>::Root Roots<T>::operator()(int64_t k) const {
  k %= n_;
  const Wide &a = coarse_[static_cast<size_t>(k / block_)],
             &b = fine_[static_cast<size_t>(k % block_)];
  return {static_cast<T>(a.re * b.re - a.im * b.im), static_cast<T>(a.re * b.im + a.im * b.re)};
}

template <class T>
Plan<T>::Plan(int64_t length) : n(length) {
  int64_t left = n;
  for (int64_t radix : factors_of(n)) {
    Pass<T> pass;
    pass.radix = radix;
    pass.groups = left / radix;
    const Roots<T> roots(left);
    for (int64_t p = 0; p < pass.groups; ++p) {
      for (int64_t k = 1; k < radix; ++k) {
        const auto w = roots(p * k);
        pass.twiddles.insert(pass.twiddles.end(), {w.re, w.im});
      }
    }
    if (radix > 5 && radix != 8) {
      const Roots<T> own(radix);
      for (int64_t k = 0; k < radix; ++k) {
        pass.roots.insert(pass.roots.end(), {own(k).re, own(k).im});
      }
    }
    left = pass.groups;
    passes.push_back(std::move(pass));
  }
}

template <class T>
LinePlan<T>::LinePlan(int64_t length, int64_t wide) : n(length) {
  if (!has_small_factors(n)) {
    // The smallest number of points with a simple transform.
    int64_t most = 2 * n - 1, best = 0;
    for (int64_t odd : {1, 3, 5, 9, 15}) {
      int64_t size = odd;
      while (size < most || size % (wide * wide) != 0) size *= 2;
      if (best == 0 || size < best) best = size;
    }
    padded = std::make_unique<LinePlan<T>>(best, wide);
    // exp(-pi i j^2 / n): j^2 modulo 2 n grows by odd numbers.
    const Roots<T> roots(2 * n);
    std::vector<T> circular(static_cast<size_t>(2 * best), T(0));
    int64_t square = 0;
    for (int64_t j = 0; j < n; ++j) {
      const auto w = roots(square);
      chirp.insert(chirp.end(), {w.re, w.im});
      for (int64_t at : {j, (best - j) % best}) {
        circular[static_cast<size_t>(2 * at)] = w.re;
        circular[static_cast<size_t>(2 * at + 1)] = -w.im;
      }
      square = (square + 2 * j + 1) % (2 * n);
    }
    kernel.resize(circular.size());
    std::vector<T> scratch(static_cast<size_t>(padded->scratch()) + 16);
    complex_line(*padded, circular.data(), kernel.data(), scratch.data(), true, 1 / T(best));
    return;
  }
  for (int64_t l : {wide, int64_t{4}}) {
    if (lanes == 1 && n % l == 0 && n / l >= l) lanes = l;
  }
  const int64_t rows = n / lanes;
  columns = std::make_unique<Plan<T>>(rows);
  if (lanes == 1) return;
  const Roots<T> roots(n);
  twiddles.resize(static_cast<size_t>(2 * n));
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t lane = 0; lane < lanes; ++lane) {
      const auto w = roots(row * lane);
      twiddles[static_cast<size_t>(2 * row * lanes + lane)] = w.re;
      twiddles[static_cast<size_t>((2 * row + 1) * lanes + lane)] = w.im;
    }
  }
}

template <class T>
int64_t LinePlan<T>::scratch() const {
  return padded != nullptr ? padded->scratch() + 2 * padded->n : 4 * n + 32;
}

template class Roots<float>;
template class Roots<double>;
template struct Plan<float>;
template struct Plan<double>;
template struct LinePlan<float>;
template struct LinePlan<double>;

}  // namespace lamella::fft
