// The error function, the normal distribution, their inverses, and gelu.
#include "lamella/kernels/cpu/simd/error_function.h"
#include "lamella/kernels/cpu/simd/vec_math.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {
namespace {

LAMELLA_VEC1(Erf, v_erf(a))
LAMELLA_VEC1(Erfc, v_erfc(a))
LAMELLA_VEC1(Erfcx, v_erfcx(a))
LAMELLA_VEC1(LogNdtr, v_log_ndtr(a))
LAMELLA_VEC1(Ndtri, v_ndtri(a))
LAMELLA_VEC1(Erfinv, v_erfinv(a))
LAMELLA_VEC1(Gelu, v_gelu(a))

template <class Small>
void gelu_small(char* const* data, int64_t n, const void*, int) {
  auto apply = [](VecF x) {
    return std::is_same_v<Small, BFloat16> ? v_gelu_bfloat16(x) : v_gelu_half(x);
  };
  constexpr int64_t kWidth = kSmallWidth;
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) {
    SmallVec<Small>::store(data[0] + i * 2, apply(SmallVec<Small>::load(data[1] + i * 2)));
  }
  if (i < n) {
    auto left = static_cast<size_t>(n - i) * 2;
    char rest[kWidth * 2] = {};
    std::memcpy(rest, data[1] + i * 2, left);
    SmallVec<Small>::store(rest, apply(SmallVec<Small>::load(rest)));
    std::memcpy(data[0] + i * 2, rest, left);
  }
}
constexpr LoopTable gelu_with_small() {
  LoopTable table = vector_table<Gelu, 1>("gelu", 0);
  if constexpr (SmallVec<Half>::kIsFast) table.small[0] = &gelu_small<Half>;
  if constexpr (SmallVec<BFloat16>::kIsFast) table.small[1] = &gelu_small<BFloat16>;
  return table;
}

}  // namespace
}  // namespace CPU_CAPABILITY

LAMELLA_POINTWISE(erf, vector_table<Erf, 1>("erf", 0));
LAMELLA_POINTWISE(erfc, vector_table<Erfc, 1>("erfc", 0));
LAMELLA_POINTWISE(erfcx, vector_table<Erfcx, 1>("special_erfcx", 0));
LAMELLA_POINTWISE(log_ndtr, vector_table<LogNdtr, 1>("special_log_ndtr", 0));
LAMELLA_POINTWISE(ndtri, vector_table<Ndtri, 1>("special_ndtri", 0));
LAMELLA_POINTWISE(erfinv, vector_table<Erfinv, 1>("erfinv", 0));
LAMELLA_POINTWISE(gelu, gelu_with_small());

}  // namespace lamella::native
