// Special functions over blocks of numbers, compiled for each CPU capability.
#pragma once
#include <cstdint>

namespace lamella::special {

enum class Function : uint8_t { kJ0, kJ1, kY0, kY1, kK0, kK1, kScaledK0, kScaledK1, kCount };
// Orthogonal polynomials, each by its recurrence.
enum class Family : uint8_t {
  kChebyshevT,
  kChebyshevU,
  kChebyshevV,
  kChebyshevW,
  kHermite,
  kHermiteE,
  kLaguerre,
  kLegendre,
  kCount
};

// The functions of one capability.
struct Blocks {
  void (*function[static_cast<int>(Function::kCount)])(const double* from, double* to,
                                                       int64_t count);
  // These compute the polynomial of one degree, which is at least 0, for all elements.
  void (*polynomial[static_cast<int>(Family::kCount)])(const double* from, int64_t degree,
                                                       double* to, int64_t count);
  // Mantissas and exponents as std::frexp() gives them.
  void (*split_floats)(const float* from, float* mantissa, int32_t* exponent, int64_t count);
  void (*split_doubles)(const double* from, double* mantissa, int32_t* exponent, int64_t count);
};
const Blocks& blocks();

}  // namespace lamella::special
