// Loops over contiguous memory, compiled once per CPU capability: simple ones that the compiler
// vectorises, and ones over explicit vectors.
#pragma once
#include <cstring>
#include <type_traits>

#include "lamella/core/visit_dtype.h"
#include "lamella/kernels/cpu/loops.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "lamella/kernels/cpu/simd/small_loops.h"
#include "lamella/kernels/cpu/simd/vector_size.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {

// ---- Loops that the compiler vectorises ----

// The output is one of the inputs or overlaps none of them; the driver ensures that.
template <class Op, class T, int N>
void plain_loop(char* const* data, int64_t n, const void* params) {
  const Op op(params);
  if constexpr (N == 1) {
    using Out = typename StoredAs<T, decltype(op(T()))>::type;
    auto* out = reinterpret_cast<Out*>(data[0]);
    auto* a = reinterpret_cast<const Stored<T>*>(data[1]);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<Out>(op(a[i]));
  } else if constexpr (N == 2) {
    using Out = typename StoredAs<T, decltype(op(T(), T()))>::type;
    auto* out = reinterpret_cast<Out*>(data[0]);
    auto* a = reinterpret_cast<const Stored<T>*>(data[1]);
    auto* b = reinterpret_cast<const Stored<T>*>(data[2]);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<Out>(op(a[i], b[i]));
  } else {
    auto* out = reinterpret_cast<T*>(data[0]);
    auto* a = reinterpret_cast<const Stored<T>*>(data[1]);
    auto* b = reinterpret_cast<const Stored<T>*>(data[2]);
    auto* c = reinterpret_cast<const Stored<T>*>(data[3]);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(op(a[i], b[i], c[i]));
  }
}

// The same for two operands, one of which is a number.
template <class Op, class T>
void number_loop(char* const* data, int64_t n, const void* params, int number) {
  const Op op(params);
  using Out = typename StoredAs<T, decltype(op(T(), T()))>::type;
  auto* out = reinterpret_cast<Out*>(data[0]);
  auto* a = reinterpret_cast<const T*>(data[3 - number]);
  const T x = *reinterpret_cast<const T*>(data[number]);
  if (number == 1) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<Out>(op(x, a[i]));
  } else {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<Out>(op(a[i], x));
  }
}

template <template <class> class Op, int N, class T>
constexpr LoopOut plain_out() {
  if constexpr (N == 1) {
    return StoredAs<T, decltype(std::declval<const Op<T>&>()(T()))>::kind;
  } else if constexpr (N == 2) {
    return StoredAs<T, decltype(std::declval<const Op<T>&>()(T(), T()))>::kind;
  } else {
    return LoopOut::kSame;
  }
}

template <template <class> class Op, int N, class... T>
constexpr LoopTable plain_table(const char* name, int params, Types<T...>,
                                const LoopFn* others = nullptr) {
  LoopTable table{};
  table.name = name;
  table.inputs = N;
  table.params = static_cast<uint8_t>(params);
  table.others = others;
  auto add = [&]<class U>(std::type_identity<U>) {
    constexpr int at = loop_index(CppTypeToScalarType<U>::value);
    table.loops[at] = &plain_loop<Op<U>, U, N>;
    if constexpr (std::is_same_v<U, float>) {
      table.small[0] = small_loop_for<Op<U>, N, Half>();
      table.small[1] = small_loop_for<Op<U>, N, BFloat16>();
    }
    if constexpr (std::is_floating_point_v<U> && N == 2) {
      table.number[sizeof(U) / 8] = &number_loop<Op<U>, U>;
    }
    // In a table of bool and other types, the other types determine the type of results.
    if (!std::is_same_v<U, bool> || sizeof...(T) == 1) table.out = plain_out<Op, N, U>();
  };
  (add(std::type_identity<T>()), ...);
  return table;
}

// ---- Loops over vectors ----

// The compiler's own vectors, as wide as the capability's registers: the same source serves SSE2,
// AVX2, AVX-512 and NEON. A comparison gives a vector of integers, all bits set where it holds.
typedef float VecF __attribute__((vector_size(kVecBytes)));
typedef double VecD __attribute__((vector_size(kVecBytes)));
typedef int32_t VecI __attribute__((vector_size(kVecBytes)));
typedef int64_t VecL __attribute__((vector_size(kVecBytes)));

// Memory: unaligned, and free to alias anything.
template <class T>
struct VecOf;
template <>
struct VecOf<float> {
  using type = VecF;
  typedef VecF memory __attribute__((aligned(4), may_alias));
};
template <>
struct VecOf<double> {
  using type = VecD;
  typedef VecD memory __attribute__((aligned(8), may_alias));
};
template <class T>
using Vec = typename VecOf<T>::type;
template <class T>
inline Vec<T> v_load(const T* p) {
  return *reinterpret_cast<const typename VecOf<T>::memory*>(p);
}
template <class T>
inline void v_store(T* p, Vec<T> v) {
  *reinterpret_cast<typename VecOf<T>::memory*>(p) = v;
}
template <class T>
inline Vec<T> v_set(T x) {
  return Vec<T>{} + x;
}

template <class Op, class T, int N>
void vector_loop(char* const* data, int64_t n, const void* params) {
  constexpr int64_t kWidth = sizeof(Vec<T>) / sizeof(T);
  const Op op(params);
  auto* out = reinterpret_cast<T*>(data[0]);
  auto* a = reinterpret_cast<const T*>(data[1]);
  auto* b = reinterpret_cast<const T*>(data[N]);
  auto apply = [&](const T* x, const T* y) {
    if constexpr (N == 1) {
      return op(v_load<T>(x));
    } else {
      return op(v_load<T>(x), v_load<T>(y));
    }
  };
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) v_store<T>(out + i, apply(a + i, b + i));
  if (i < n) {
    T x[kWidth] = {}, y[kWidth] = {};
    size_t bytes = static_cast<size_t>(n - i) * sizeof(T);
    std::memcpy(x, a + i, bytes);
    if constexpr (N == 2) std::memcpy(y, b + i, bytes);
    T r[kWidth];
    v_store<T>(r, apply(x, y));
    std::memcpy(out + i, r, bytes);
  }
}

// A table whose loops call Op<T> on vectors of type Vec<T>.
template <template <class> class Op, int N>
constexpr LoopTable vector_table(const char* name, int params, const LoopFn* others = nullptr) {
  LoopTable table{};
  table.name = name;
  table.inputs = N;
  table.params = static_cast<uint8_t>(params);
  table.others = others;
  table.loops[loop_index(kFloat)] = &vector_loop<Op<float>, float, N>;
  table.loops[loop_index(kDouble)] = &vector_loop<Op<double>, double, N>;
  return table;
}

}  // namespace CPU_CAPABILITY
}  // namespace lamella::native

// Defines an operator without parameters by an expression of a (and b).
#define LAMELLA_OP1(Name, expression)                 \
  template <class T>                                  \
  struct Name {                                       \
    explicit Name(const void*) {}                     \
    auto operator()(T a) const { return expression; } \
  };
#define LAMELLA_OP2(Name, expression)                      \
  template <class T>                                       \
  struct Name {                                            \
    explicit Name(const void*) {}                          \
    auto operator()(T a, T b) const { return expression; } \
  };

// Registers a table as pointwise_loop<"op"> for this capability. For use in namespace
// lamella::native.
#define LAMELLA_POINTWISE(op, ...)                                    \
  namespace {                                                         \
  constexpr LoopTable op##_table = __VA_ARGS__;                       \
  void op##_kernel(TensorIteratorBase& iter, const Scalar* scalars) { \
    run_pointwise(iter, op##_table, scalars);                         \
  }                                                                   \
  }                                                                   \
  LAMELLA_REGISTER_POINTWISE(op, &op##_kernel)
// Registers the loop `op` of the operator `name`: an expression of vectors a (and b) of T.
#define LAMELLA_VECTOR_LOOP(op, name, count, parameters, others, ...) \
  namespace {                                                         \
  template <class T>                                                  \
  struct op##_function {                                              \
    explicit op##_function(const void*) {}                            \
    Vec<T> operator() parameters const { return __VA_ARGS__; }        \
  };                                                                  \
  }                                                                   \
  LAMELLA_POINTWISE(op, vector_table<op##_function, count>(name, 0, others))
#define LAMELLA_VEC1(op, name, ...) \
  LAMELLA_VECTOR_LOOP(op, name, 1, (Vec<T> a), nullptr, __VA_ARGS__)
#define LAMELLA_VEC2(op, name, ...) \
  LAMELLA_VECTOR_LOOP(op, name, 2, (Vec<T> a, Vec<T> b), nullptr, __VA_ARGS__)
// The same for operators with loops for other types in complex_loops.cpp or plain_loops.cpp.
#define LAMELLA_MATH1(op, ...) \
  LAMELLA_OTHER_LOOPS(op);     \
  LAMELLA_VECTOR_LOOP(op, #op, 1, (Vec<T> a), op##_others, __VA_ARGS__)
#define LAMELLA_MATH2(op, name, ...) \
  LAMELLA_OTHER_LOOPS(op);           \
  LAMELLA_VECTOR_LOOP(op, name, 2, (Vec<T> a, Vec<T> b), op##_others, __VA_ARGS__)
#define LAMELLA_PLAIN1(op, Op, List) LAMELLA_POINTWISE(op, plain_table<Op, 1>(#op, 0, List()))
#define LAMELLA_PLAIN2(op, Op, List) LAMELLA_POINTWISE(op, plain_table<Op, 2>(#op, 0, List()))
