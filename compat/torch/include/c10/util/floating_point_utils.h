// c10::detail::fp32_to_bits and its kin: floats by their bits, and as float16.
#pragma once
#include <c10/lamella_names.h>

#include <bit>
#include <cstdint>

#include "lamella/core/half.h"

namespace c10::detail {
inline uint32_t fp32_to_bits(float value) { return std::bit_cast<uint32_t>(value); }
inline float fp32_from_bits(uint32_t bits) { return std::bit_cast<float>(bits); }
inline uint16_t fp16_ieee_from_fp32_value(float value) {
  return std::bit_cast<uint16_t>(c10::Half(value));
}
inline float fp16_ieee_to_fp32_value(uint16_t bits) { return std::bit_cast<c10::Half>(bits); }
}  // namespace c10::detail
