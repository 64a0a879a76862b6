// Matrix products: dtypes, strides and the choice of a kernel.
#include "lamella/kernels/cpu/gemm.h"

#include <cstring>

#include "lamella/core/visit_dtype.h"
#include "lamella/kernels/cpu/copy.h"
#include "lamella/kernels/cpu/simd/dot.h"
#include "lamella/kernels/device_math.h"
#include "lamella/kernels/parallel.h"
#include "lamella/kernels/selecting.h"

namespace lamella::native {

namespace {

// Complex products with at most this many multiplications do not pay for a call into the library.
constexpr int64_t kSmall = 16 * 16 * 16;

// A copy of the matrices with another dtype or other strides.
Tensor copied(const Gemm& p, const Matrices& x, int64_t rows, int64_t columns, ScalarType dtype) {
  Tensor t = new_tensor({p.batch, rows, columns}, dtype, kCPU);
  const int64_t sizes[3] = {p.batch, rows, columns};
  const int64_t from[3] = {x.batch, x.row, x.column};
  copy_strided(sizes, 3, {t.data_ptr(), t.strides().data(), dtype},
               {const_cast<void*>(x.data), from, p.dtype});
  return t;
}
// Elements of c or d; `to` has the problem's dtype.
void copy_to(const Gemm& p, const Matrices& to, const Matrices& from, ScalarType from_dtype) {
  const int64_t sizes[3] = {p.batch, p.m, p.n};
  const int64_t to_strides[3] = {to.batch, to.row, to.column};
  const int64_t from_strides[3] = {from.batch, from.row, from.column};
  copy_strided(sizes, 3, {const_cast<void*>(to.data), to_strides, p.dtype},
               {const_cast<void*>(from.data), from_strides, from_dtype});
}
bool is_same(const Matrices& x, const Matrices& y) {
  return x.data == y.data && x.row == y.row && x.column == y.column && x.batch == y.batch;
}
// Copies d, if it is read, into c, so that the problem's d is c.
void put_into_c(Gemm& p) {
  if (p.d.data == nullptr) return;
  if (!is_same(p.d, p.c)) copy_to(p, p.c, p.d, p.dtype);
  p.d = p.c;
}

// ---- Complex numbers ----

template <class T>
void plain_complex(const Gemm& p) {
  T alpha = p.alpha.to<T>(), beta = p.beta.to<T>();
  bool reads = p.d.data != nullptr;
  for (int64_t batch = 0; batch < p.batch; ++batch) {
    auto* a = static_cast<const T*>(p.a.data) + batch * p.a.batch;
    auto* b = static_cast<const T*>(p.b.data) + batch * p.b.batch;
    auto* c = static_cast<T*>(const_cast<void*>(p.c.data)) + batch * p.c.batch;
    for (int64_t i = 0; i < p.m; ++i) {
      for (int64_t j = 0; j < p.n; ++j) {
        T sum = T(0);
        for (int64_t l = 0; l < p.k; ++l) {
          sum = sum + a[i * p.a.row + l * p.a.column] * b[l * p.b.row + j * p.b.column];
        }
        T& to = c[i * p.c.row + j * p.c.column];
        to = reads ? alpha * sum + beta * to : alpha * sum;
      }
    }
  }
}

void complex_gemm(const char* op, Gemm p) {
  put_into_c(p);
  if (p.m * p.n * p.k <= kSmall) {
    if (p.dtype == kComplexFloat) return plain_complex<complex<float>>(p);
    return plain_complex<complex<double>>(p);
  }
  if (p.d.data == nullptr) p.beta = 0;
  if (p.c.column == 1 || p.n == 1) return library_gemm(op, p);
  if (p.c.row == 1 || p.m == 1) return library_gemm(op, transposed(p));
  Tensor c = copied(p, p.c, p.m, p.n, p.dtype);
  Gemm q = p;
  q.c = Matrices::of(c);
  library_gemm(op, q);
  copy_to(p, p.c, q.c, p.dtype);
}

// ---- Real numbers ----

// The dtype of products and sums. Small types of floats are summed in 32 bits; integers wrap.
ScalarType sum_dtype(const char* op, ScalarType dtype) {
  switch (dtype) {
    case kHalf:
    case kBFloat16:
      return kFloat;
    case kComplexHalf:
      return kComplexFloat;
    case kByte:
    case kChar:
    case kShort:
      return kInt;
    case kFloat:
    case kDouble:
    case kComplexFloat:
    case kComplexDouble:
    case kInt:
    case kLong:
      return dtype;
    default:
      lamella::detail::throw_dtype(op, dtype);
  }
}

void widened_gemm(const char* op, const Gemm& p, ScalarType dtype) {
  Gemm q = p;
  q.dtype = dtype;
  bool reads = p.d.data != nullptr;
  Tensor a = copied(p, p.a, p.m, p.k, dtype), b = copied(p, p.b, p.k, p.n, dtype);
  Tensor c = reads ? copied(p, p.d, p.m, p.n, dtype) : new_tensor({p.batch, p.m, p.n}, dtype, kCPU);
  q.a = Matrices::of(a);
  q.b = Matrices::of(b);
  q.c = Matrices::of(c);
  q.d = {};
  if (!reads) q.beta = 0;
  if (is_integral(p.dtype, false)) {
    visit_numbers(p.dtype, op, [&](auto tag) {
      using T = type_of<decltype(tag)>;
      if constexpr (std::is_integral_v<T>) {
        q.alpha = static_cast<int64_t>(p.alpha.to<T>());
        if (reads) q.beta = static_cast<int64_t>(p.beta.to<T>());
      }
    });
  }
  gemm(op, q);
  copy_to(p, p.c, q.c, dtype);
}

// c *= beta
void scale(const Gemm& p) {
  auto run = [&]<class T>(T beta) {
    for (int64_t i = 0; i < p.batch * p.m; ++i) {
      auto* c = static_cast<T*>(const_cast<void*>(p.c.data));
      T* row = c + i / p.m * p.c.batch + i % p.m * p.c.row;
      for (int64_t j = 0; j < p.n; ++j) row[j * p.c.column] *= beta;
    }
  };
  switch (p.dtype) {
    case kFloat:
      return run(p.beta.to<float>());
    case kDouble:
      return run(p.beta.to<double>());
    case kInt:
      return run(static_cast<uint32_t>(p.beta.to<int32_t>()));
    default:
      return run(static_cast<uint64_t>(p.beta.to<int64_t>()));
  }
}

// Sums along k are faster than tiles for at most kMaxDotRows rows, or kMaxLongDotRows if k is at
// least kMinLong, because then packing b costs more than it saves.
constexpr int64_t kMaxDotRows = 4, kMaxLongDotRows = 11, kMinLong = 128;

// Solves a problem of few rows or few columns by sums along k, and returns whether it did. Copies
// the small operand if only its layout does not fit.
bool take_dots(const Gemm& p) {
  auto take = [](const Gemm& q, int64_t most_rows) {
    if (is_dots_gemm(q, most_rows)) {
      dots_gemm(q);
      return true;
    }
    Gemm dense = q;
    dense.a.column = 1;
    if (q.m * 4 > q.n || !is_dots_gemm(dense, most_rows)) return false;
    Tensor a = copied(q, q.a, q.m, q.k, q.dtype);
    dense.a = Matrices::of(a);
    dots_gemm(dense);
    return true;
  };
  return take(p, p.k >= kMinLong ? kMaxLongDotRows : kMaxDotRows) ||
         (p.n <= kMaxDotRows && take(transposed(p), kMaxDotRows));
}

// Up to this size, the matrices b of a batch are transposed together rather than one by one.
constexpr int64_t kShort = 16;

void real_gemm(Gemm p) {
  bool scales = p.d.data != nullptr && !p.beta.equal(1);
  if (!scales && take_dots(p)) return;
  bool by_columns = p.c.row == 1 || p.m == 1;
  if (by_columns && (p.n == 1 || p.c.column != 1)) p = transposed(p);
  Matrices outer = p.c;
  Tensor b, c;
  if (p.c.column != 1 && p.n != 1) {
    c = new_tensor({p.batch, p.m, p.n}, p.dtype, kCPU);
    p.c = Matrices::of(c);
  }
  if (scales || (p.d.column != 1 && p.n != 1)) put_into_c(p);
  if (scales) scale(p);
  bool is_short = p.batch > 1 && p.k <= kShort && p.n <= kShort;
  if (p.b.column != 1 && (p.b.row != 1 || is_short) && p.n != 1 && p.k != 1) {
    b = copied(p, p.b, p.k, p.n, p.dtype);
    p.b = Matrices::of(b);
  }
  tiled_gemm(p);
  if (c.defined()) copy_to(p, outer, p.c, p.dtype);
}

// ---- bfloat16, two at a time ----

// The operand padded with zeros to an even k. Rows are contiguous, or columns if `by_columns`.
Tensor padded(const Gemm& p, const Matrices& x, int64_t lines, bool by_columns) {
  int64_t even = p.k + p.k % 2;
  Tensor t = new_tensor({p.batch, lines, even}, kBFloat16, kCPU);
  if (even != p.k) std::memset(t.data_ptr(), 0, t.nbytes());
  const int64_t sizes[3] = {p.batch, lines, p.k};
  const int64_t from[3] = {x.batch, by_columns ? x.column : x.row, by_columns ? x.row : x.column};
  copy_strided(sizes, 3, {t.data_ptr(), t.strides().data(), kBFloat16},
               {const_cast<void*>(x.data), from, kBFloat16});
  return t;
}

void paired_gemm(const Gemm& p) {
  Gemm q = p;
  Tensor a, b;
  bool is_odd = p.k % 2 != 0;
  if (is_odd || (p.a.column != 1 && p.k != 1)) {
    a = padded(p, p.a, p.m, false);
    q.a = Matrices::of(a);
  }
  if (is_odd || (p.b.column != 1 && p.b.row != 1)) {
    b = padded(p, p.b, p.n, true);
    q.b = Matrices::of(b).transposed();
  }
  q.k += p.k % 2;
  bool reads = p.d.data != nullptr, is_wide = p.result == kFloat;
  Tensor c;
  if (!is_wide) {
    c = reads ? copied(p, p.d, p.m, p.n, kFloat) : new_tensor({p.batch, p.m, p.n}, kFloat, kCPU);
    q.c = Matrices::of(c);
    if (reads) q.d = q.c;
  }
  if (reads && !p.beta.equal(1)) {
    q.dtype = kFloat;
    scale(q);
    q.dtype = kBFloat16;
  }
  if (!take_dots(q)) tiled_gemm(q);
  if (!is_wide) copy_to(p, p.c, q.c, kFloat);
}

// c and d have another dtype than a and b, for which there are no kernels here.
void converted_gemm(const char* op, const Gemm& p) {
  Gemm q = p;
  q.dtype = p.result;
  q.result = ScalarType::Undefined;
  Tensor a = copied(p, p.a, p.m, p.k, q.dtype), b = copied(p, p.b, p.k, p.n, q.dtype);
  q.a = Matrices::of(a);
  q.b = Matrices::of(b);
  gemm(op, q);
}

}  // namespace

void gemm(const char* op, const Gemm& problem) {
  if (LAMELLA_UNLIKELY(!problem.device.is_cpu())) {
    const bool solved = device_math(op, problem.device).gemm(op, problem);
    return check_solved(solved, op, problem.device);
  }
  if (problem.batch == 0 || problem.m == 0 || problem.n == 0) return;
  const bool is_mixed = problem.result != ScalarType::Undefined;
  if (is_mixed && problem.dtype != kBFloat16) return byte_gemm(op, problem);
  Gemm p = problem;
  p.dtype = signed_type(p.dtype);  // wrapping sums of products have the same bits
  if (p.beta.equal(0)) {
    p.d = {};
  } else if (p.d.data == nullptr) {
    p.d = p.c;
  }
  ScalarType dtype = sum_dtype(op, p.dtype);
  if (p.dtype == kBFloat16 && has_gemm(kBFloat16)) return paired_gemm(p);
  if (is_mixed) return converted_gemm(op, p);
  if (dtype != p.dtype) return widened_gemm(op, p, dtype);
  if (is_complex(p.dtype)) return complex_gemm(op, p);
  real_gemm(p);
}

namespace {
// Small floating-point types are summed in float. Sums of integers wrap, so they are unsigned;
// products of 16-bit integers could overflow the int that they are promoted to.
template <class T>
struct SumType {
  using type = compute_type<T>;
};
template <class T>
  requires(std::is_integral_v<T> && !std::is_same_v<T, bool>)
struct SumType<T> {
  using type = std::conditional_t<sizeof(T) == 1, uint8_t,
                                  std::conditional_t<sizeof(T) <= 4, uint32_t, uint64_t>>;
};
template <class T>
using sum_type = typename SumType<T>::type;
}  // namespace

void dot_product(const char* op, const Tensor& a, const Tensor& b, bool conjugate, void* result) {
  int64_t n = a.numel();
  ScalarType dtype = signed_type(a.scalar_type());
  if (dtype == kComplexHalf) {
    complex<float> sum;
    dot_product(op, a.to(kComplexFloat), b.to(kComplexFloat), conjugate, &sum);
    *static_cast<complex<Half>*>(result) = static_cast<complex<Half>>(sum);
    return;
  }
  if (dtype == kFloat || dtype == kDouble || dtype == kInt || dtype == kLong) {
    Tensor x = a.contiguous(), y = b.contiguous();
    dot_on(kCPU, dtype, x.const_data_ptr(), y.const_data_ptr(), n, result);
    return;
  }
  int64_t a_step = a.strides()[0], b_step = b.strides()[0];
  visit_numbers(dtype, op, [&](auto tag) {
    using T = type_of<decltype(tag)>;
    using S = sum_type<T>;
    auto* x = static_cast<const T*>(a.const_data_ptr());
    auto* y = static_cast<const T*>(b.const_data_ptr());
    S sum = S(0);
    for (int64_t i = 0; i < n; ++i) {
      S left = static_cast<S>(x[i * a_step]);
      if constexpr (is_complex_type_v<S>) {
        if (conjugate) left = conj(left);
      }
      sum = sum + left * static_cast<S>(y[i * b_step]);
    }
    *static_cast<T*>(result) = static_cast<T>(sum);
  });
}

}  // namespace lamella::native
