// Splits numbers into mantissas of [1/2, 1) and exponents by their bits.
#include <bit>

#include "lamella/kernels/families/special/over_blocks.h"

namespace lamella::special {
inline namespace CPU_CAPABILITY {
namespace {

// T has the bits U. For zeros, infinities and NaN the mantissa is the number, and the exponent 0.
template <class T, class U>
void split(const T* from, T* mantissa, int32_t* exponent, int64_t count) {
  constexpr int kBits = sizeof(T) == 4 ? 23 : 52;
  constexpr U kExponents = (U{1} << (8 * sizeof(U) - 1 - kBits)) - 1, kHalf = kExponents / 2 - 1;
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) {
    const T scaled = from[i] * T(U{1} << kBits);
    const U given = std::bit_cast<U>(from[i]), own = given >> kBits & kExponents;
    const U bits = own == 0 ? std::bit_cast<U>(scaled) : given;
    const bool stays = (own == kExponents) | (static_cast<U>(given << 1) == 0);
    const U half = (bits & ~(kExponents << kBits)) | kHalf << kBits;
    mantissa[i] = std::bit_cast<T>(stays ? bits : half);
    const U bias = own == 0 ? kHalf + kBits : kHalf;
    exponent[i] = static_cast<int32_t>(stays ? U{0} : (bits >> kBits & kExponents) - bias);
  }
}

}  // namespace

void set_splits(Blocks* blocks) {
  blocks->split_floats = &split<float, uint32_t>;
  blocks->split_doubles = &split<double, uint64_t>;
}

}  // namespace CPU_CAPABILITY
}  // namespace lamella::special
