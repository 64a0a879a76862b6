// Inverse trigonometric and inverse hyperbolic functions, and angles of complex numbers.
#include "lamella/kernels/cpu/simd/inverse_trigonometric.h"
#include "lamella/kernels/cpu/simd/vec_math.h"

namespace lamella::native {
LAMELLA_MATH1(asin, v_asin(a));
LAMELLA_MATH1(acos, v_acos(a));
LAMELLA_MATH1(atan, v_atan(a));
LAMELLA_MATH1(asinh, v_asinh(a));
LAMELLA_MATH1(acosh, v_acosh(a));
LAMELLA_MATH1(atanh, v_atanh(a));
LAMELLA_VEC2(atan2, "atan2", v_atan2(a, b));

inline namespace CPU_CAPABILITY {
namespace {

template <class T>
struct Angle {
  explicit Angle(const void*) {}
  T operator()(T a) const { return v_is_nan(a) ? a : a < 0 ? T(3.14159265358979323846) : T(0); }
};
// Splits complex numbers into their parts block by block.
template <class R>
void angle_loop(char* const* data, int64_t n, const void* params) {
  constexpr int64_t kBlock = 512;
  constexpr int kType = loop_index(CppTypeToScalarType<R>::value);
  R real[kBlock], imag[kBlock];
  auto* z = reinterpret_cast<const R*>(data[1]);
  for (int64_t at = 0; at < n; at += kBlock, z += 2 * kBlock) {
    const int64_t count = kBlock < n - at ? kBlock : n - at;
    for (int64_t i = 0; i < count; ++i) real[i] = z[2 * i], imag[i] = z[2 * i + 1];
    char* const parts[] = {data[0] + at * static_cast<int64_t>(sizeof(R)),
                           reinterpret_cast<char*>(imag), reinterpret_cast<char*>(real)};
    atan2_table.loops[kType](parts, count, params);
  }
}
constexpr LoopTable angle_loops() {
  LoopTable table = plain_table<Angle, 1>("angle", 0, FloatTypes());
  table.loops[loop_index(kComplexFloat)] = &angle_loop<float>;
  table.loops[loop_index(kComplexDouble)] = &angle_loop<double>;
  table.out = LoopOut::kReal;
  return table;
}

}  // namespace
}  // namespace CPU_CAPABILITY
LAMELLA_POINTWISE(angle, angle_loops());

}  // namespace lamella::native
