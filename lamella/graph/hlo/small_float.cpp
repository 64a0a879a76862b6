// The tables of small floating-point formats.
#include "lamella/graph/hlo/small_float.h"

#include <algorithm>
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

// A format and the values of its codes.
struct FormatTable {
  Format format;
  float values[256];
  explicit FormatTable(const Format& f) : format(f) {
    for (uint32_t code = 0; code < 256; ++code) values[code] = decode(f, code);
  }
};
const FormatTable* table_of(ElementType type) {
  struct Tables {
    FormatTable e5m2{{5, 2, 15, Specials::Ieee}};
    FormatTable e4m3{{4, 3, 7, Specials::Ieee}};
    FormatTable e3m4{{3, 4, 3, Specials::Ieee}};
    FormatTable e4m3fn{{4, 3, 7, Specials::FiniteNan}};
    FormatTable e4m3b11{{4, 3, 11, Specials::Unsigned0}};
    FormatTable e5m2fnuz{{5, 2, 16, Specials::Unsigned0}};
    FormatTable e4m3fnuz{{4, 3, 8, Specials::Unsigned0}};
    FormatTable e2m1{{2, 1, 1, Specials::None}};
    FormatTable e8m0{{8, 0, 127, Specials::FiniteNan, false}};
  };
  static const Tables all;
  switch (type) {
    case ElementType::F8E5M2:
      return &all.e5m2;
    case ElementType::F8E4M3:
      return &all.e4m3;
    case ElementType::F8E3M4:
      return &all.e3m4;
    case ElementType::F8E4M3FN:
      return &all.e4m3fn;
    case ElementType::F8E4M3B11FNUZ:
      return &all.e4m3b11;
    case ElementType::F8E5M2FNUZ:
      return &all.e5m2fnuz;
    case ElementType::F8E4M3FNUZ:
      return &all.e4m3fnuz;
    case ElementType::F4E2M1FN:
      return &all.e2m1;
    case ElementType::F8E8M0FNU:
      return &all.e8m0;
    default:
      return nullptr;
  }
}

// The code up to `top` whose value is nearest to m. Ties go to the even mantissa, or to the greater
// value in formats without mantissa. Values ascend with their codes.
uint32_t nearest(const FormatTable& table, double m, uint32_t top) {
  const float* of = table.values;
  uint32_t above = static_cast<uint32_t>(std::lower_bound(of, of + top, m) - of);
  if (above == 0 || of[above] <= m) return above;
  double down = m - of[above - 1], up = of[above] - m;
  if (down == up) return table.format.mantissa_bits > 0 && (above & 1) != 0 ? above - 1 : above;
  return down < up ? above - 1 : above;
}

uint8_t encode(const FormatTable& table, double value) {
  const Format& f = table.format;
  uint32_t magnitude_bits = static_cast<uint32_t>(f.exponent_bits + f.mantissa_bits);
  uint32_t last = (1u << magnitude_bits) - 1;
  uint32_t sign = f.is_signed && std::signbit(value) ? 1u << magnitude_bits : 0;
  uint32_t top = last;      // the largest finite code
  uint32_t nan = top;       // the code of NaN, with its sign
  uint32_t overflow = top;  // the code for values beyond the largest
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
      nan = 1u << magnitude_bits;  // -0, as ml_dtypes has it
      overflow = top | sign;
      break;
  }
  if (std::isnan(value) || (!f.is_signed && value <= 0)) return static_cast<uint8_t>(nan);
  double m = std::fabs(value);
  double most = table.values[top];
  double half_step = f.is_signed ? (most - table.values[top - 1]) / 2 : most / 2;
  // A tie between the largest value and its absent successor overflows if the successor is even.
  if (m > most + half_step || (m == most + half_step && (top & 1) != 0)) {
    return static_cast<uint8_t>(overflow);
  }
  uint32_t code = nearest(table, m, top);
  if (code == 0 && f.specials == Specials::Unsigned0) sign = 0;
  return static_cast<uint8_t>(code | sign);
}

}  // namespace

bool is_small_float(ElementType type) { return table_of(type) != nullptr; }
float decode_small_float(ElementType type, uint8_t code) { return table_of(type)->values[code]; }
uint8_t encode_small_float(ElementType type, double value) {
  return encode(*table_of(type), value);
}

}  // namespace lamella::hlo
