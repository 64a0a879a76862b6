// Powers, remainders and nextafter.
#include "lamella/kernels/cpu/simd/special.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {
namespace {

LAMELLA_VEC2(Pow, v_pow(a, b))
LAMELLA_VEC2(Hypot, v_hypot(a, b))
LAMELLA_VEC2(Fmod, v_fmod(a, b))
LAMELLA_VEC2(Remainder, v_remainder(a, b))
LAMELLA_VEC2(FloorDivide, v_floor_divide(a, b))
LAMELLA_VEC2(FloorQuotient, v_floor_quotient(a, b))
// Parameter: 1 for neighbours among float16, 2 among bfloat16.
template <class T>
struct NextAfter {
  int dropped;  // mantissa bits that the loop's type has and the small type lacks
  T spacing;    // of the small type's least numbers, which are those within `end`
  T end;
  explicit NextAfter(const void* p) {
    int small = static_cast<int>(param<T>(p, 0));
    dropped = small == 1 ? 13 : small == 2 ? 16 : 0;
    spacing = small == 1 ? T(0x1p-24) : T(0);
    end = small == 1 ? T(0x1p-14) : T(-1);
  }
  Vec<T> operator()(Vec<T> a, Vec<T> b) const {
    // The numbers next to infinity are those next to 2^16, which follows the largest float16.
    if (spacing > 0) a = v_abs(a) == kInf<T> && a != b ? v_copysign(Vec<T>{} + T(65536), a) : a;
    return v_nextafter(a, b, dropped, spacing, end);
  }
};

}  // namespace
}  // namespace CPU_CAPABILITY

LAMELLA_OTHER_LOOPS(pow);
LAMELLA_POINTWISE(pow, vector_table<Pow, 2>("pow", 0, pow_others));
LAMELLA_OTHER_LOOPS(fmod);
LAMELLA_POINTWISE(fmod, vector_table<Fmod, 2>("fmod", 0, fmod_others));
LAMELLA_OTHER_LOOPS(remainder);
LAMELLA_POINTWISE(remainder, vector_table<Remainder, 2>("remainder", 0, remainder_others));
LAMELLA_OTHER_LOOPS(div_floor);
LAMELLA_POINTWISE(div_floor, vector_table<FloorDivide, 2>("div", 0, div_floor_others));
LAMELLA_POINTWISE(floordiv, vector_table<FloorQuotient, 2>("floordiv", 0, div_floor_others));
LAMELLA_POINTWISE(hypot, vector_table<Hypot, 2>("hypot", 0));
LAMELLA_POINTWISE(nextafter, vector_table<NextAfter, 2>("nextafter", 1));

}  // namespace lamella::native
