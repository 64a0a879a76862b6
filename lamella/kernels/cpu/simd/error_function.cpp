// The error function, the normal distribution, their inverses, and gelu.
#include "lamella/kernels/cpu/simd/error_function.h"
#include "lamella/kernels/cpu/simd/vec_math.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {
namespace {

template <class T>
struct Gelu {
  explicit Gelu(const void*) {}
  Vec<T> operator()(Vec<T> a) const { return v_gelu(a); }
};
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

template <class T>
struct ErfinvArgument {
  explicit ErfinvArgument(const void*) {}
  Vec<T> operator()(Vec<T> a) const { return v_erfinv_argument(a); }
};
template <class T>
struct ErfinvAt {
  explicit ErfinvAt(const void*) {}
  Vec<T> operator()(Vec<T> a, Vec<T> w) const { return v_erfinv_at(a, w); }
};
// Both halves of the function wait for their own results, so each has a loop, in which the
// processor computes several vectors at a time.
template <class T>
void erfinv_loop(char* const* data, int64_t n, const void*) {
  constexpr int64_t kBlock = 512;
  T w[kBlock];
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t count = n - i < kBlock ? n - i : kBlock;
    char* out = data[0] + i * static_cast<int64_t>(sizeof(T));
    char* x = data[1] + i * static_cast<int64_t>(sizeof(T));
    char* const argument[] = {reinterpret_cast<char*>(w), x};
    vector_loop<ErfinvArgument<T>, T, 1>(argument, count, nullptr);
    char* const at[] = {out, x, reinterpret_cast<char*>(w)};
    vector_loop<ErfinvAt<T>, T, 2>(at, count, nullptr);
  }
}
constexpr LoopTable erfinv_in_halves() {
  LoopTable table{};
  table.name = "erfinv";
  table.inputs = 1;
  table.loops[loop_index(kFloat)] = &erfinv_loop<float>;
  table.loops[loop_index(kDouble)] = &erfinv_loop<double>;
  return table;
}

}  // namespace
}  // namespace CPU_CAPABILITY

LAMELLA_VEC1(erf, "erf", v_erf(a));
LAMELLA_VEC1(erfc, "erfc", v_erfc(a));
LAMELLA_VEC1(erfcx, "special_erfcx", v_erfcx(a));
LAMELLA_VEC1(log_ndtr, "special_log_ndtr", v_log_ndtr(a));
LAMELLA_VEC1(ndtri, "special_ndtri", v_ndtri(a));
LAMELLA_POINTWISE(erfinv, erfinv_in_halves());
LAMELLA_POINTWISE(gelu, gelu_with_small());

}  // namespace lamella::native
