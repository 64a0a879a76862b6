// Powers, remainders and nextafter.
#include "lamella/kernels/cpu/simd/special.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {
namespace {

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

LAMELLA_MATH2(pow, "pow", v_pow(a, b));
LAMELLA_MATH2(fmod, "fmod", v_fmod(a, b));
LAMELLA_MATH2(remainder, "remainder", v_remainder(a, b));
LAMELLA_MATH2(div_floor, "div", v_floor_divide(a, b));
LAMELLA_VECTOR_LOOP(floordiv, "floordiv", 2, (Vec<T> a, Vec<T> b), div_floor_others,
                    v_floor_quotient(a, b));
LAMELLA_VEC2(hypot, "hypot", v_hypot(a, b));
LAMELLA_POINTWISE(nextafter, vector_table<NextAfter, 2>("nextafter", 1));

}  // namespace lamella::native
