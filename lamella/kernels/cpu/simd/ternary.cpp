// Operators of three tensors: where, clamp, lerp, addcmul, addcdiv.
#include "lamella/kernels/cpu/loops.h"
#include "lamella/kernels/cpu/simd/vec.h"
#include "lamella/kernels/cpu/wide_types.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {
namespace {

// A selection only copies bits, so there is one loop for each element size.
template <class T>
void where_loop(char* const* data, int64_t n, const void*) {
  auto* out = reinterpret_cast<T*>(data[0]);
  auto* condition = reinterpret_cast<const uint8_t*>(data[1]);
  auto* a = reinterpret_cast<const T*>(data[2]);
  auto* b = reinterpret_cast<const T*>(data[3]);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    T x = a[i], y = b[i];
    out[i] = condition[i] != 0 ? x : y;
  }
}
constexpr LoopTable make_where() {
  LoopTable table{};
  table.name = "where";
  table.inputs = 3;
  table.first_is_bool = true;
  for (int i = 0; i < kLoopTypes; ++i) {
    switch (element_size(kLoopOrder[i])) {
      case 1:
        table.loops[i] = &where_loop<uint8_t>;
        break;
      case 2:
        table.loops[i] = &where_loop<uint16_t>;
        break;
      case 4:
        table.loops[i] = &where_loop<uint32_t>;
        break;
      case 8:
        table.loops[i] = &where_loop<uint64_t>;
        break;
      default:
        table.loops[i] = &where_loop<complex<double>>;
        break;
    }
  }
  return table;
}

// NaN if any operand is NaN; the upper bound takes precedence over the lower.
template <class T>
struct Clamp {
  explicit Clamp(const void*) {}
  T operator()(T a, T least, T most) const {
    // Two separate selections, which the compiler vectorises.
    T low = a < least ? least : a;
    low = v_is_nan(least) ? least : low;
    low = v_is_nan(a) ? a : low;
    T result = low > most ? most : low;
    result = v_is_nan(most) ? most : result;
    return v_is_nan(low) ? low : result;
  }
};
// Exact at both ends: from whichever is nearer.
template <class T>
inline T mix(T a, T b, T w) {
  if constexpr (is_complex_type_v<T>) {
    return norm(w) < 0.25f ? a + w * (b - a) : b - (b - a) * (T(1) - w);
  } else {
    T size = w < 0 ? -w : w;
    return size < T(0.5) ? a + w * (b - a) : b - (b - a) * (T(1) - w);
  }
}
template <class T>
struct Lerp {
  explicit Lerp(const void*) {}
  T operator()(T a, T b, T w) const { return mix(a, b, w); }
};
template <class T>
struct LerpScalar {
  T weight;
  explicit LerpScalar(const void* p) : weight(param<T>(p, 0)) {}
  T operator()(T a, T b) const { return mix(a, b, weight); }
};
template <class T>
struct AddCMul {
  T value;
  explicit AddCMul(const void* p) : value(param<T>(p, 0)) {}
  T operator()(T a, T b, T c) const {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(value) *
                                                           static_cast<uint64_t>(b) *
                                                           static_cast<uint64_t>(c));
    } else {
      return a + value * b * c;
    }
  }
};
template <class T>
struct AddCDiv {
  T value;
  explicit AddCDiv(const void* p) : value(param<T>(p, 0)) {}
  T operator()(T a, T b, T c) const { return a + value * b / c; }
};

}  // namespace

template <>
inline constexpr bool kResultIsExact<Clamp<float>> = true;
}  // namespace CPU_CAPABILITY

LAMELLA_POINTWISE(where, make_where());
LAMELLA_POINTWISE(clamp, plain_table<Clamp, 3>("clamp", 0, WideRealTypes()));
LAMELLA_POINTWISE(lerp, plain_table<Lerp, 3>("lerp", 0, FloatComplexTypes()));
LAMELLA_POINTWISE(lerp_scalar, plain_table<LerpScalar, 2>("lerp", 1, FloatComplexTypes()));
LAMELLA_POINTWISE(addcmul, plain_table<AddCMul, 3>("addcmul", 1, WideNumberTypes()));
LAMELLA_POINTWISE(addcdiv, plain_table<AddCDiv, 3>("addcdiv", 1, FloatComplexTypes()));

}  // namespace lamella::native
