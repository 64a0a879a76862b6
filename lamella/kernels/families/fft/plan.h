// Plans of transforms: the factors of a length and the roots of unity.
//
// Note [Fourier transforms]
//   A length is decomposed into factors of 8, 4, 2, 3, 5 and small primes; each is one pass over
//   the data, which leaves it in order (Stockham's algorithm; C. Van Loan, Computational Frameworks
//   for the Fast Fourier Transform, 1992). A pass works on vectors, each lane of which is a
//   separate transform. If lines are interleaved, or many and short, each lane is a line.
//   Otherwise one line of n = m L points is a matrix of m rows and L lanes: its columns are
//   transformed and multiplied by roots of unity; then its rows, L at a time, are transposed in
//   registers and transformed across them (Cooley and Tukey, 1965). So loads and stores are whole
//   vectors. A length with a large prime factor becomes a convolution with a chirp (Bluestein,
//   1970). Real lines of even length are complex lines of half the length. Inverse transforms are
//   forward ones with real and imaginary parts swapped.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

namespace lamella::fft {

// The largest prime factor of lengths that need no convolution.
inline constexpr int64_t kLargestPrime = 31;

// exp(-2 pi i k / n), accurate to T's precision.
template <class T>
class Roots {
 public:
  explicit Roots(int64_t n);
  struct Root {
    T re, im;
  };
  Root operator()(int64_t k) const;

 private:
  struct Wide {
    long double re, im;
  };
  int64_t n_, block_;
  std::vector<Wide> fine_, coarse_;  // factors of a root: for k % block_ and for k / block_
};

template <class T>
struct Pass {
  int64_t radix;
  int64_t groups;           // the product of the factors of later passes
  std::vector<T> twiddles;  // groups x (radix - 1) pairs
  std::vector<T> roots;     // of the radix, if it has no special code
};

// The passes of a transform of n points, which is done for each lane.
template <class T>
struct Plan {
  explicit Plan(int64_t length);
  int64_t n;
  std::vector<Pass<T>> passes;
};

// The plan of a transform of one line of complex numbers.
template <class T>
struct LinePlan {
  // `wide`: lanes of the widest vectors, 4 or 8.
  LinePlan(int64_t length, int64_t wide);
  int64_t n;
  int64_t lanes = 1;
  std::unique_ptr<Plan<T>> columns;  // of n / lanes points
  std::vector<T> twiddles;           // for each row its lanes' real parts, then imaginary ones
  // These replace the above for a transform by a convolution, which has padded->n points.
  std::unique_ptr<LinePlan<T>> padded;
  std::vector<T> chirp, kernel;  // n and padded->n pairs
  int64_t scratch() const;       // in numbers of T
};

// True if no prime factor is larger than kLargestPrime.
bool has_small_factors(int64_t n);

}  // namespace lamella::fft
