// Conversions of element types: convert, bitcast-convert, reduce-precision and stochastic-convert.
//
// Note [Conversion by value]
//   Floats are converted to integers by rounding towards 0 and saturating; NaN becomes 0. Integers
//   are truncated to narrower integers. Numbers become PRED by comparison with 0. Complex numbers
//   become real by dropping the imaginary part. F64 is converted to F16 and BF16 through F32, as in
//   XLA.
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "lamella/graph/evaluate/numbers.h"
#include "lamella/graph/evaluate/rules.h"

namespace lamella::hlo {
namespace {

// The smallest and largest values of an integer type of any width.
template <class Number>
struct Range {
  static constexpr bool is_signed = std::is_signed_v<typename Number::Work>;
  static int64_t lowest() { return is_signed ? -static_cast<int64_t>(highest()) - 1 : 0; }
  static uint64_t highest() {
    constexpr int bits = element_bits(Number::type) - (is_signed ? 1 : 0);
    return bits == 0 ? 0 : ~uint64_t{0} >> ((64 - bits) % 64);
  }
};

template <class Number>
typename Number::Work saturated(double value) {
  using Work = typename Number::Work;
  if (std::isnan(value)) return 0;
  // The first number that is too large, 2^bits or 2^(bits - 1), is exact in double.
  double beyond = std::ldexp(1.0, element_bits(Number::type) - (Range<Number>::is_signed ? 1 : 0));
  if (value >= beyond) return static_cast<Work>(Range<Number>::highest());
  if (value <= static_cast<double>(Range<Number>::lowest())) {
    return static_cast<Work>(Range<Number>::lowest());
  }
  return static_cast<Work>(value);
}

// Converts a wide number of any kind to Number and stores it.
template <class Number, class From>
void store_converted(void* to, int64_t n, From value) {
  using Work = typename Number::Work;
  if constexpr (is_complex_type_v<From>) {
    if constexpr (is_complex_type_v<Work>) {
      Number::store(to, n,
                    Work(static_cast<typename Work::value_type>(value.real()),
                         static_cast<typename Work::value_type>(value.imag())));
    } else {
      store_converted<Number, double>(to, n, value.real());
    }
  } else if constexpr (is_complex_type_v<Work>) {
    Number::store(to, n, Work(static_cast<typename Work::value_type>(value)));
  } else if constexpr (std::is_same_v<Work, bool>) {
    Number::store(to, n, value != 0);
  } else if constexpr (std::is_integral_v<Work> && std::is_floating_point_v<From>) {
    Number::store(to, n, saturated<Number>(value));
  } else if constexpr (std::is_floating_point_v<Work>) {
    if (is_small_float(Number::type)) {
      static_cast<uint8_t*>(to)[n] = encode_small_float(Number::type, static_cast<double>(value));
    } else {
      Number::store(to, n, static_cast<Work>(value));
    }
  } else {
    Number::store(to, n, static_cast<Work>(value));
  }
}

template <class W>
using Loader = W (*)(const void*, int64_t);

template <class W>
void convert_elements(Loader<W> load, const void* from, ElementType type, void* to, int64_t count) {
  visit_numbers(type, [&]<class Number>() {
    each_element(count, [&](int64_t n) { store_converted<Number>(to, n, load(from, n)); });
  });
}
complex<double> load_c64(const void* data, int64_t n) {
  return complex<double>(static_cast<const complex<float>*>(data)[n]);
}
complex<double> load_c128(const void* data, int64_t n) {
  return static_cast<const complex<double>*>(data)[n];
}

}  // namespace

Value evaluate_convert(Step& step) {
  Value& operand = step.operands[0];
  ElementType from = operand.shape().element_type(), to = step.shape().element_type();
  if (from == to) return Value::reshaped(std::move(operand), step.instruction.shape);
  Value result = step.result();
  int64_t count = operand.shape().elements();
  if (is_complex(from)) {
    convert_elements(from == ElementType::C64 ? load_c64 : load_c128, operand.data(), to,
                     result.data(), count);
    return result;
  }
  visit_numbers(from, [&]<class Number>() {
    if constexpr (!is_complex_type_v<typename Number::Work>) {
      convert_elements<Wide<Number>>(load_wide<Number>, operand.data(), to, result.data(), count);
    }
  });
  return result;
}

namespace {

// Reads the bits of the elements of an array.
class Bits {
 public:
  Bits(const void* data, ElementType type)
      : data_(static_cast<const uint8_t*>(data)), type_(type) {}
  // The bits of an element of at most 64 bits.
  uint64_t at(int64_t n) const {
    uint64_t word = 0;
    auto bytes = static_cast<size_t>(element_bytes(type_));
    std::memcpy(&word, data_ + static_cast<size_t>(n) * bytes, bytes);
    return word;
  }

 private:
  const uint8_t* data_;
  ElementType type_;
};
// Stores the low bits of `word` as an element; signed types below a byte are sign-extended.
void store_part(ElementType type, void* to, int64_t n, uint64_t word) {
  int bits = element_bits(type);
  if (bits < 8) {
    int drop = 8 - bits;
    auto up = static_cast<uint8_t>(word << drop);
    bool is_signed = element_kind(type) == ElementKind::Signed;
    static_cast<uint8_t*>(to)[n] = is_signed ? static_cast<uint8_t>(static_cast<int8_t>(up) >> drop)
                                             : static_cast<uint8_t>(up >> drop);
    return;
  }
  auto bytes = static_cast<size_t>(element_bytes(type));
  std::memcpy(static_cast<uint8_t*>(to) + static_cast<size_t>(n) * bytes, &word, bytes);
}

}  // namespace

Value evaluate_bitcast_convert(Step& step) {
  Value& operand = step.operands[0];
  ElementType from = operand.shape().element_type(), to = step.shape().element_type();
  int from_bits = element_bits(from), to_bits = element_bits(to);
  Value result = step.result();
  if (from_bits >= 8 && to_bits >= 8) {
    if (result.bytes() != 0) std::memcpy(result.data(), operand.data(), result.bytes());
    return result;
  }
  Bits bits(operand.data(), from);
  if (from_bits >= to_bits) {
    int parts = from_bits / to_bits;
    uint64_t mask = (uint64_t{1} << to_bits) - 1;
    int64_t count = operand.shape().elements();
    int words = (from_bits + 63) / 64;  // 2 for C128
    each_element(count, [&](int64_t n) {
      for (int p = 0; p < parts; ++p) {
        uint64_t word;
        if (words == 1) {
          word = bits.at(n);
        } else {
          word = static_cast<const uint64_t*>(operand.data())[2 * n + p * to_bits / 64];
        }
        store_part(to, result.data(), n * parts + p, word >> (p * to_bits % 64) & mask);
      }
    });
    return result;
  }
  int parts = to_bits / from_bits;
  uint64_t mask = (uint64_t{1} << from_bits) - 1;
  int64_t count = step.shape().elements();
  if (result.bytes() != 0) std::memset(result.data(), 0, result.bytes());
  auto* bytes = static_cast<uint8_t*>(result.data());
  each_element(count, [&](int64_t n) {
    if (to_bits < 8) {
      uint64_t word = 0;
      for (int p = 0; p < parts; ++p) word |= (bits.at(n * parts + p) & mask) << (p * from_bits);
      store_part(to, result.data(), n, word);
      return;
    }
    for (int p = 0; p < parts; ++p) {
      int bit = p * from_bits;
      bytes[n * to_bits / 8 + bit / 8] |=
          static_cast<uint8_t>((bits.at(n * parts + p) & mask) << (bit % 8));
    }
  });
  return result;
}

namespace {

// The layout of a float type's bits.
struct Format {
  int exponent_bits;
  int mantissa_bits;
};
Format format_of(const Instruction& i, ElementType type) {
  const ElementRow& row = element_row(type);
  if (row.kind != ElementKind::Float || row.specials != SpecialCodes::Ieee) {
    fail(i, "expected a type with infinities, got ", row.name);
  }
  return {row.bits - 1 - row.mantissa_bits, row.mantissa_bits};
}
// Rounds the mantissa to nearest, ties to even. Numbers beyond the smaller exponent range become
// infinity, and numbers below its normal range become 0.
uint64_t reduced(uint64_t word, const Format& format, int64_t exponent_bits,
                 int64_t mantissa_bits) {
  uint64_t sign_bit = uint64_t{1} << (format.exponent_bits + format.mantissa_bits);
  uint64_t exponent_mask = ((uint64_t{1} << format.exponent_bits) - 1) << format.mantissa_bits;
  uint64_t sign = word & sign_bit, x = word & (sign_bit - 1);
  if (x > exponent_mask) return word;  // NaN
  if (mantissa_bits < format.mantissa_bits) {
    int64_t drop = format.mantissa_bits - mantissa_bits;
    uint64_t odd = x >> drop & 1;
    x += (uint64_t{1} << (drop - 1)) - 1 + odd;
    x &= ~uint64_t{0} << drop;
  }
  if (exponent_bits < format.exponent_bits) {
    uint64_t bias = (uint64_t{1} << (format.exponent_bits - 1)) - 1;
    uint64_t small_bias = (uint64_t{1} << (exponent_bits - 1)) - 1;
    uint64_t exponent = x >> format.mantissa_bits;
    if (exponent > bias + small_bias) x = exponent_mask;
    if (exponent <= bias - small_bias) x = 0;
  }
  return sign | x;
}
}  // namespace

Value evaluate_reduce_precision(Step& step) {
  const Instruction& i = step.instruction;
  const Value& operand = step.operands[0];
  ElementType type = operand.shape().element_type();
  Format format = format_of(i, type);
  int64_t exponent_bits = i.integer(AttributeKey::ExponentBits);
  int64_t mantissa_bits = i.integer(AttributeKey::MantissaBits);
  LAMELLA_HLO_REQUIRE(exponent_bits >= 1 && mantissa_bits >= 0, i,
                      "expected exponent_bits of 1 or more and mantissa_bits of 0 or more, got ",
                      exponent_bits, " and ", mantissa_bits);
  Value result = step.result();
  Bits bits(operand.data(), type);
  int64_t count = operand.shape().elements();
  each_element(count, [&](int64_t n) {
    store_part(type, result.data(), n, reduced(bits.at(n), format, exponent_bits, mantissa_bits));
  });
  return result;
}

namespace {

// Decides stochastic rounding: true, for rounding away from 0, if the random word, as a fraction of
// 2^bits, is below `rest`, the fraction of the distance to the next number.
bool goes_up(double rest, uint64_t random, int bits) {
  return random < static_cast<uint64_t>(std::ldexp(rest, bits));
}
template <class Number>
typename Number::Work stochastic_integer(double x, uint64_t random, int bits) {
  using Work = typename Number::Work;
  if (std::isnan(x) || std::isinf(x)) return saturated<Number>(x);
  double whole = std::trunc(x);
  double rest = std::fabs(x - whole);
  if (goes_up(rest, random, bits)) whole += std::copysign(1.0, x);
  return static_cast<Work>(saturated<Number>(whole));
}
}  // namespace

Value evaluate_stochastic_convert(Step& step) {
  const Instruction& i = step.instruction;
  const Value &operand = step.operands[0], &random = step.operands[1];
  ElementType from = operand.shape().element_type(), to = step.shape().element_type();
  int bits = element_bits(random.shape().element_type());
  LAMELLA_HLO_REQUIRE(is_floating(from), i,
                      "expected operand 0 to hold floating-point numbers, got ",
                      operand.shape().to_string(false));
  LAMELLA_HLO_REQUIRE(element_kind(random.shape().element_type()) == ElementKind::Unsigned &&
                          bits == element_bits(from) &&
                          random.shape().same_dimensions(operand.shape()),
                      i, "expected operand 1 to hold unsigned integers of ", element_bits(from),
                      " bits for the elements of ", operand.shape().to_string(false), ", got ",
                      random.shape().to_string(false));
  LAMELLA_HLO_REQUIRE(is_integral(to), i, "expected an integer type, got ", element_name(to));
  Value result = step.result();
  Bits words(random.data(), random.shape().element_type());
  int64_t count = operand.shape().elements();
  visit_floats(from, [&]<class From>() {
    Loader<double> load = load_wide<From>;
    visit_integers(to, [&]<class Number>() {
      each_element(count, [&](int64_t n) {
        Number::store(result.data(), n,
                      stochastic_integer<Number>(load(operand.data(), n), words.at(n), bits));
      });
    });
  });
  return result;
}

}  // namespace lamella::hlo
