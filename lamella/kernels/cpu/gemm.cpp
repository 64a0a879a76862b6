// Matrix products.
#include "lamella/kernels/cpu/gemm.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "lamella/core/visit_dtype.h"
#include "lamella/kernels/cpu/blas_library.h"
#include "lamella/kernels/cpu/copy.h"
#include "lamella/kernels/cpu/simd/dot.h"
#include "lamella/kernels/parallel.h"

namespace lamella::native {

DEFINE_DISPATCH(dot_stub);

namespace {

// Multiplications up to which the call into the library costs more than it brings.
constexpr int64_t kSmall = 16 * 16 * 16;
// What one call into the library is given: at least so many multiplications where threads share a
// product (some 50 microseconds), and at most so many, so that interrupts are seen between calls.
constexpr int64_t kLeastShare = int64_t{1} << 21;
constexpr int64_t kMostShare = int64_t{1} << 32;

// Sums of small floating-point types are kept in float. Those of integers wrap, so they are kept
// without a sign; products of 16 bits would not fit the int that they are promoted to.
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
template <class T>
sum_type<T> factor_of(const Scalar& number) {
  if constexpr (std::is_integral_v<T>) return static_cast<sum_type<T>>(number.to<T>());
  return static_cast<sum_type<T>>(number.to<sum_type<T>>());
}

// Rows [begin, end) of one product, a tile of columns at a time in a buffer of sums.
template <class T>
void plain_rows(const Gemm& p, const T* a, const T* b, T* c, int64_t begin, int64_t end) {
  using S = sum_type<T>;
  constexpr int64_t kTile = 128;
  S alpha = factor_of<T>(p.alpha), beta = factor_of<T>(p.beta);
  bool scaled = !(alpha == S(1)), fresh = beta == S(0);
  S sums[kTile];
  for (int64_t j0 = 0; j0 < p.n; j0 += kTile) {
    int64_t width = p.n - j0 < kTile ? p.n - j0 : kTile;
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t j = 0; j < width; ++j) sums[j] = S(0);
      const T* a_row = a + i * p.a.row;
      for (int64_t l = 0; l < p.k; ++l) {
        S factor = static_cast<S>(a_row[l * p.a.column]);
        const T* b_row = b + l * p.b.row + j0 * p.b.column;
        if (p.b.column == 1) {
          for (int64_t j = 0; j < width; ++j) sums[j] = sums[j] + factor * static_cast<S>(b_row[j]);
        } else {
          for (int64_t j = 0; j < width; ++j) {
            sums[j] = sums[j] + factor * static_cast<S>(b_row[j * p.b.column]);
          }
        }
      }
      T* c_row = c + i * p.c.row + j0 * p.c.column;
      for (int64_t j = 0; j < width; ++j) {
        S value = scaled ? alpha * sums[j] : sums[j];
        T& to = c_row[j * p.c.column];
        to = static_cast<T>(fresh ? value : value + beta * static_cast<S>(to));
      }
    }
  }
}

void plain_gemm(const char* op, const Gemm& p) {
  visit_numbers(p.dtype, op, [&](auto tag) {
    using T = type_of<decltype(tag)>;
    int64_t work = p.n * (p.k + 1) + 1;
    parallel_for(0, p.batch * p.m, 16384 / work + 1, [&](int64_t begin, int64_t end) {
      while (begin < end) {
        int64_t i = begin / p.m, row = begin % p.m;
        int64_t last = row + (end - begin) < p.m ? row + (end - begin) : p.m;
        plain_rows<T>(p, static_cast<const T*>(p.a.data) + i * p.a.batch,
                      static_cast<const T*>(p.b.data) + i * p.b.batch,
                      static_cast<T*>(const_cast<void*>(p.c.data)) + i * p.c.batch, row, last);
        begin += last - row;
      }
    });
  });
}

// Small products of float32 and float64 with contiguous rows of b and c: sums stay in registers.
template <class T>
void tiny_gemm(const Gemm& p) {
  constexpr int64_t kWidth = 16 / sizeof(T);
  typedef T Lanes __attribute__((vector_size(16)));
  typedef Lanes Memory __attribute__((aligned(sizeof(T)), may_alias));
  const T alpha = p.alpha.to<T>(), beta = p.beta.to<T>();
  for (int64_t batch = 0; batch < p.batch; ++batch) {
    const T* a = static_cast<const T*>(p.a.data) + batch * p.a.batch;
    const T* b = static_cast<const T*>(p.b.data) + batch * p.b.batch;
    T* c = static_cast<T*>(const_cast<void*>(p.c.data)) + batch * p.c.batch;
    for (int64_t i = 0; i < p.m; ++i) {
      const T* a_row = a + i * p.a.row;
      T* c_row = c + i * p.c.row;
      int64_t j = 0;
      for (; j + kWidth <= p.n; j += kWidth) {
        Lanes sum = {};
        const T* b_at = b + j;
        const T* a_at = a_row;
        for (int64_t l = 0; l < p.k; ++l, b_at += p.b.row, a_at += p.a.column) {
          sum += *a_at * *reinterpret_cast<const Memory*>(b_at);
        }
        sum *= alpha;
        Memory* to = reinterpret_cast<Memory*>(c_row + j);
        *to = beta == 0 ? sum : sum + beta * *to;
      }
      for (; j < p.n; ++j) {
        T sum = 0;
        for (int64_t l = 0; l < p.k; ++l) sum += a_row[l * p.a.column] * b[l * p.b.row + j];
        sum *= alpha;
        c_row[j] = beta == 0 ? sum : sum + beta * c_row[j];
      }
    }
  }
}

bool is_row_major(const Matrices& x, int64_t rows, int64_t columns) {
  return (x.column == 1 || columns == 1) && (rows == 1 || x.row >= (columns > 1 ? columns : 1));
}
int64_t leading_dimension(int64_t stride, int64_t count, int64_t least) {
  // A stride that is never stepped along may be anything; the library wants a possible one.
  int64_t smallest = least > 1 ? least : 1;
  return count == 1 || stride < smallest ? smallest : stride;
}

// An operand in a form that the library takes, copied where it must be.
struct Operand {
  Matrices x;
  bool transposed = false;
  Tensor kept;

  Operand(const Matrices& given, ScalarType dtype, int64_t batch, int64_t rows, int64_t columns)
      : x(given) {
    if (is_row_major(x, rows, columns)) return;
    if (is_row_major(x.transposed(), columns, rows)) {
      transposed = true;
      return;
    }
    kept = new_tensor({batch, rows, columns}, dtype, kCPU);
    const int64_t sizes[3] = {batch, rows, columns};
    const int64_t from[3] = {x.batch, x.row, x.column};
    copy_strided(sizes, 3, {kept.data_ptr(), kept.strides().data(), dtype},
                 {const_cast<void*>(x.data), from, dtype});
    x = Matrices::of(kept);
  }
  int64_t ld(int64_t rows, int64_t columns) const {
    return transposed ? leading_dimension(x.column, columns, rows)
                      : leading_dimension(x.row, rows, columns);
  }
};

void set_complex(double (&to)[2], const Scalar& value) {
  auto z = value.toComplexDouble();
  to[0] = z.real();
  to[1] = z.imag();
}

int32_t call_library(const char* op, const lamella_gemm& problem) {
  char message[256] = "";
  int32_t status = blas_library().gemm(&problem, message, sizeof(message));
  LAMELLA_CHECK(status != LAMELLA_BLAS_FAILED, op,
                ": the library of matrix products failed: ", message);
  return status;
}

// The product in float32 of matrices that were stored in a small type.
void widened_gemm(const char* op, const Gemm& p) {
  auto wide = [&](const Matrices& x, int64_t rows, int64_t columns, bool copy) {
    Tensor t = new_tensor({p.batch, rows, columns}, kFloat, kCPU);
    if (copy) {
      const int64_t sizes[3] = {p.batch, rows, columns};
      const int64_t from[3] = {x.batch, x.row, x.column};
      copy_strided(sizes, 3, {t.data_ptr(), t.strides().data(), kFloat},
                   {const_cast<void*>(x.data), from, p.dtype});
    }
    return t;
  };
  Tensor a = wide(p.a, p.m, p.k, true), b = wide(p.b, p.k, p.n, true);
  Tensor c = wide(p.c, p.m, p.n, p.beta.toDouble() != 0);
  Gemm q = p;
  q.dtype = kFloat;
  q.a = Matrices::of(a);
  q.b = Matrices::of(b);
  q.c = Matrices::of(c);
  gemm(op, q);
  const int64_t sizes[3] = {p.batch, p.m, p.n};
  const int64_t to[3] = {p.c.batch, p.c.row, p.c.column};
  copy_strided(sizes, 3, {const_cast<void*>(p.c.data), to, p.dtype},
               {c.data_ptr(), c.strides().data(), kFloat});
}

// How a product is cut into tiles of c.
struct Tiles {
  int64_t rows, columns;  // of one tile
  int64_t down, across;   // how many

  Tiles(int64_t m, int64_t n, int64_t wanted) : rows(m), columns(n), down(1), across(1) {
    // Nearly square tiles copy least; multiples of kStep fit the library's own blocks.
    constexpr int64_t kStep = 64;
    while (down * across < wanted && (rows > kStep || columns > kStep)) {
      int64_t& longer = rows >= columns ? rows : columns;
      longer = ((longer + 1) / 2 + kStep - 1) / kStep * kStep;
      down = (m + rows - 1) / rows;
      across = (n + columns - 1) / columns;
    }
  }
};

// c is row-major. The library's calls run on one thread each, those of the pool.
void library_gemm(const char* op, const Gemm& p) {
  Operand a(p.a, p.dtype, p.batch, p.m, p.k);
  Operand b(p.b, p.dtype, p.batch, p.k, p.n);
  lamella_gemm problem{};
  problem.scalar_type = static_cast<uint8_t>(p.dtype);
  problem.trans_a = a.transposed;
  problem.trans_b = b.transposed;
  problem.batch = p.batch;
  problem.m = p.m;
  problem.n = p.n;
  problem.k = p.k;
  set_complex(problem.alpha, p.alpha);
  set_complex(problem.beta, p.beta);
  problem.a = a.x.data;
  problem.b = b.x.data;
  problem.c = const_cast<void*>(p.c.data);
  problem.lda = a.ld(p.m, p.k);
  problem.ldb = b.ld(p.k, p.n);
  problem.ldc = leading_dimension(p.c.row, p.m, p.n);
  problem.batch_a = a.x.batch;
  problem.batch_b = b.x.batch;
  problem.batch_c = p.c.batch;

  auto work = static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
  int64_t threads = in_parallel_region() ? 1 : get_num_threads();
  // A share for each thread and one to spare, from each product what the batch leaves to do.
  int64_t shares = threads == 1 ? 1 : 2 * threads;
  auto least = static_cast<int64_t>(work / static_cast<double>(kMostShare)) + 1;
  auto most = static_cast<int64_t>(work / static_cast<double>(kLeastShare)) + 1;
  Tiles tiles(p.m, p.n, std::max(least, std::min((shares + p.batch - 1) / p.batch, most)));
  int64_t each = tiles.down * tiles.across;
  std::atomic<bool> unsupported{false};
  auto bytes = static_cast<int64_t>(element_size(p.dtype));
  auto run = [&](int64_t begin, int64_t end) {
    while (begin < end) {
      lamella_gemm part = problem;
      int64_t first = begin / each, tile = begin % each;
      int64_t row = tile / tiles.across * tiles.rows, column = tile % tiles.across * tiles.columns;
      // Whole products one behind the other are one call.
      part.batch = each == 1 ? end - begin : 1;
      part.m = std::min(tiles.rows, p.m - row);
      part.n = std::min(tiles.columns, p.n - column);
      auto at = [&](const void* base, int64_t elements) {
        return static_cast<const char*>(base) + elements * bytes;
      };
      part.a = at(problem.a, first * problem.batch_a + row * (a.transposed ? 1 : problem.lda));
      part.b = at(problem.b, first * problem.batch_b + column * (b.transposed ? problem.ldb : 1));
      part.c =
          const_cast<char*>(at(problem.c, first * problem.batch_c + row * problem.ldc + column));
      if (call_library(op, part) == LAMELLA_BLAS_UNSUPPORTED) unsupported = true;
      begin += part.batch;
    }
  };
  auto grain = static_cast<int64_t>(static_cast<double>(kLeastShare) * static_cast<double>(each) /
                                    std::max(work, 1.0));
  parallel_for(0, p.batch * each, std::max<int64_t>(grain, 1), run);
  if (unsupported) widened_gemm(op, p);
}

}  // namespace

void gemm(const char* op, const Gemm& p) {
  if (p.batch == 0 || p.m == 0 || p.n == 0) return;
  int64_t work = p.m * p.n * p.k;
  if (work * p.batch <= kSmall && p.b.column == 1 && p.c.column == 1) {
    if (p.dtype == kFloat) return tiny_gemm<float>(p);
    if (p.dtype == kDouble) return tiny_gemm<double>(p);
  }
  bool has_library = is_floating_point(p.dtype) || is_complex(p.dtype);
  if (work <= kSmall || !has_library) return plain_gemm(op, p);
  if (p.dtype == kHalf) return widened_gemm(op, p);
  if (is_row_major(p.c, p.m, p.n)) return library_gemm(op, p);
  if (is_row_major(p.c.transposed(), p.n, p.m)) {
    // c^T = b^T a^T
    Gemm q = p;
    q.m = p.n;
    q.n = p.m;
    q.a = p.b.transposed();
    q.b = p.a.transposed();
    q.c = p.c.transposed();
    return library_gemm(op, q);
  }
  Tensor c = new_tensor({p.batch, p.m, p.n}, p.dtype, kCPU);
  const int64_t sizes[3] = {p.batch, p.m, p.n};
  const int64_t strides[3] = {p.c.batch, p.c.row, p.c.column};
  StridedArray outer{const_cast<void*>(p.c.data), strides, p.dtype};
  StridedArray inner{c.data_ptr(), c.strides().data(), p.dtype};
  if (!p.beta.equal(0)) copy_strided(sizes, 3, inner, outer);
  Gemm q = p;
  q.c = Matrices::of(c);
  library_gemm(op, q);
  copy_strided(sizes, 3, outer, inner);
}

void dot_product(const Tensor& a, const Tensor& b, bool conjugate, void* result) {
  int64_t n = a.numel();
  ScalarType dtype = a.scalar_type();
  if (dtype == kFloat || dtype == kDouble) {
    Tensor x = a.contiguous(), y = b.contiguous();
    dot_stub(kCPU, dtype, x.const_data_ptr(), y.const_data_ptr(), n, result);
    return;
  }
  int64_t a_step = a.strides()[0], b_step = b.strides()[0];
  visit_numbers(dtype, "dot", [&](auto tag) {
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
