// The tables of small floating-point formats.
#include "lamella/graph/hlo/small_float.h"

#include <array>
#include <cmath>
#include <limits>

namespace lamella::hlo {
namespace {

enum class Specials : uint8_t {
  Ieee,       // all-ones exponent: infinity and NaN
  FiniteNan,  // the all-ones code is NaN
  Unsigned0,  // negative zero's code is NaN
  None,       // every code is a number
};
struct Format {
  int exponent_bits;
  int mantissa_bits;
  int bias;
  Specials specials;
  bool is_signed = true;
  int bits() const { return exponent_bits + mantissa_bits + (is_signed ? 1 : 0); }
};

const Format* format_of(ElementType type) {
  static constexpr Format e5m2{5, 2, 15, Specials::Ieee}, e4m3{4, 3, 7, Specials::Ieee},
      e3m4{3, 4, 3, Specials::Ieee}, e4m3fn{4, 3, 7, Specials::FiniteNan},
      e4m3b11{4, 3, 11, Specials::Unsigned0}, e5m2fnuz{5, 2, 16, Specials::Unsigned0},
      e4m3fnuz{4, 3, 8, Specials::Unsigned0}, e2m1{2, 1, 1, Specials::None},
      e8m0{8, 0, 127, Specials::FiniteNan, false};
  switch (type) {
    case ElementType::F8E5M2:
      return &e5m2;
    case ElementType::F8E4M3:
      return &e4m3;
    case ElementType::F8E3M4:
      return &e3m4;
    case ElementType::F8E4M3FN:
      return &e4m3fn;
    case ElementType::F8E4M3B11FNUZ:
      return &e4m3b11;
    case ElementType::F8E5M2FNUZ:
      return &e5m2fnuz;
    case ElementType::F8E4M3FNUZ:
      return &e4m3fnuz;
    case ElementType::F4E2M1FN:
      return &e2m1;
    case ElementType::F8E8M0FNU:
      return &e8m0;
    default:
      return nullptr;
  }
}

float decode(const Format& f, uint32_t code) {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  uint32_t magnitude_bits = static_cast<uint32_t>(f.exponent_bits + f.mantissa_bits);
  uint32_t magnitude = code & ((1u << magnitude_bits) - 1);
  bool negative = f.is_signed && (code >> magnitude_bits & 1) != 0;
  uint32_t exponent = magnitude >> f.mantissa_bits;
  uint32_t mantissa = magnitude & ((1u << f.mantissa_bits) - 1);
  uint32_t ones = (1u << f.exponent_bits) - 1;
  if (f.specials == Specials::Unsigned0 && negative && magnitude == 0) return nan;
  if (f.specials == Specials::Ieee && exponent == ones) {
    if (mantissa != 0) return nan;
    return negative ? -std::numeric_limits<float>::infinity()
                    : std::numeric_limits<float>::infinity();
  }
  if (f.specials == Specials::FiniteNan && magnitude == (1u << magnitude_bits) - 1) return nan;
  double value;
  if (!f.is_signed) {
    value = std::ldexp(1.0, static_cast<int>(exponent) - f.bias);
  } else if (exponent == 0) {
    value = std::ldexp(static_cast<double>(mantissa), 1 - f.bias - f.mantissa_bits);
  } else {
    value = std::ldexp(static_cast<double>(mantissa + (1u << f.mantissa_bits)),
                       static_cast<int>(exponent) - f.bias - f.mantissa_bits);
  }
  return static_cast<float>(negative ? -value : value);
}

// The code up to `top` whose value is nearest to m, the even one of two.
uint32_t nearest(const Format& f, double m, uint32_t top) {
  uint32_t best = 0;
  for (uint32_t code = 1; code <= top; ++code) {
    double distance = std::fabs(decode(f, code) - m), so_far = std::fabs(decode(f, best) - m);
    if (distance < so_far || (distance == so_far && (code & 1) == 0)) best = code;
  }
  return best;
}

uint8_t encode(const Format& f, double value) {
  uint32_t magnitude_bits = static_cast<uint32_t>(f.exponent_bits + f.mantissa_bits);
  uint32_t last = (1u << magnitude_bits) - 1;
  uint32_t sign = f.is_signed && std::signbit(value) ? 1u << magnitude_bits : 0;
  uint32_t top = last;      // the largest finite code
  uint32_t nan = top;       // what stands for NaN, and its sign
  uint32_t overflow = top;  // what is beyond the largest
  switch (f.specials) {
    case Specials::Ieee:
      top = last - (1u << f.mantissa_bits);
      overflow = (top + 1) | sign;
      nan = (top + 1 + (1u << (f.mantissa_bits - 1))) | sign;
      break;
    case Specials::FiniteNan:
      top = last - 1;
      nan = overflow = last | sign;
      break;
    case Specials::Unsigned0:
      nan = overflow = 1u << magnitude_bits;
      break;
    case Specials::None:
      nan = 0;
      overflow = top | sign;
      break;
  }
  if (std::isnan(value) || (!f.is_signed && value < 0)) return static_cast<uint8_t>(nan);
  double m = std::fabs(value);
  double most = decode(f, top);
  double half_step = f.is_signed ? (most - decode(f, top - 1)) / 2 : most / 2;
  // A tie with the first number that there is not goes to it if its code were the even one.
  if (m > most + half_step || (m == most + half_step && (top & 1) != 0)) {
    return static_cast<uint8_t>(overflow);
  }
  uint32_t code = nearest(f, m, top);
  if (code == 0 && f.specials == Specials::Unsigned0) sign = 0;
  return static_cast<uint8_t>(code | sign);
}

}  // namespace

bool is_small_float(ElementType type) { return format_of(type) != nullptr; }
float decode_small_float(ElementType type, uint8_t code) { return decode(*format_of(type), code); }
uint8_t encode_small_float(ElementType type, double value) {
  return encode(*format_of(type), value);
}

}  // namespace lamella::hlo
