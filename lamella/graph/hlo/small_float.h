// Floating-point formats of 8 and 4 bits: those for which is_small_float() holds. Formats: OCP
// 8-bit Floating Point (E5M2, E4M3FN), IEEE-like E4M3 and E3M4, the FNUZ forms (one zero, NaN in
// its place, no infinity), OCP Microscaling (E8M0FNU: powers of two; E2M1FN: 4 bits, no infinity,
// no NaN).
#pragma once
#include <cstdint>

#include "lamella/graph/hlo/element_type.h"

namespace lamella::hlo {

// Exact.
float decode_small_float(ElementType type, uint8_t code);
// Rounds to nearest, with ties to the even code (F8E8M0FNU: to the greater). Overflow gives
// infinity, or NaN in formats without infinity, or the largest value in formats without both.
// F4E2M1FN has no NaN and encodes it as -0. F8E8M0FNU has no zero and no negative numbers and
// encodes them as NaN.
uint8_t encode_small_float(ElementType type, double value);

}  // namespace lamella::hlo
