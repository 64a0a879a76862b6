// The codecs of small floating-point formats: those of lamella/core/half.h, and F8E8M0FNU's.
#include "lamella/graph/hlo/small_float.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace lamella::hlo {
namespace {

struct Codec {
  float (*decode)(uint32_t code) = nullptr;
  uint8_t (*encode)(double value) = nullptr;
};

float decode_power(uint32_t code) {
  return code == 0xff ? std::numeric_limits<float>::quiet_NaN()
                      : std::ldexp(1.0f, static_cast<int>(code) - 127);
}
uint8_t encode_power(double value) {
  if (!(value > 0) || value > 0x1.8p127) return 0xff;
  int exponent;
  double fraction = std::frexp(value, &exponent);  // from 1/2 to 1
  if (fraction >= 0.75) ++exponent;
  return static_cast<uint8_t>(std::clamp(exponent - 1 + 127, 0, 0xfe));
}

template <int Bits, int Mantissa, int Bias, SpecialCodes Specials>
constexpr Codec codec_of() {
  if constexpr (Bits == 0 || Bits > 8 || Bias == 0) {  // not a small float
    return {};
  } else if constexpr (Specials == SpecialCodes::Powers) {
    return {decode_power, encode_power};
  } else {
    using Format =
        lamella::detail::FloatFormat<uint8_t, Bits - 1 - Mantissa, Mantissa,
                                     static_cast<lamella::detail::FloatSpecials>(Specials), Bias>;
    return {Format::decode, Format::template encode<double>};
  }
}
constexpr auto kCodecs = [] {
  std::array<Codec, ElementTable::kCount> codecs{};
#define LAMELLA_HLO_ELEMENT(name, text, number, bits, kind, scalar, mantissa, bias, specials) \
  codecs[number] = codec_of<bits, mantissa, bias, SpecialCodes::specials>();
#include "lamella/graph/hlo/element_type.def"
  return codecs;
}();

}  // namespace

float decode_small_float(ElementType type, uint8_t code) {
  return kCodecs[static_cast<size_t>(type)].decode(code);
}
uint8_t encode_small_float(ElementType type, double value) {
  return kCodecs[static_cast<size_t>(type)].encode(value);
}

}  // namespace lamella::hlo
