// Products of complex matrices, by OpenBLAS in liblamella_blas.so.
#include <algorithm>

#include "lamella/kernels/cpu/blas_library.h"
#include "lamella/kernels/cpu/copy.h"
#include "lamella/kernels/cpu/gemm.h"
#include "lamella/kernels/parallel.h"

namespace lamella::native {

namespace {

// Bounds of the multiplications in one call into the library: the minimum for a part of a product
// (some milliseconds), and the maximum, so that interrupts are noticed between calls.
constexpr int64_t kMinShareWork = int64_t{1} << 24;
constexpr int64_t kMaxShareWork = int64_t{1} << 31;
// The usual number of shares, enough to keep all threads busy.
constexpr int64_t kShares = 16;

bool is_row_major(const Matrices& x, int64_t rows, int64_t columns) {
  return (x.column == 1 || columns == 1) && (rows == 1 || x.row >= (columns > 1 ? columns : 1));
}
int64_t leading_dimension(int64_t stride, int64_t count, int64_t least) {
  // A stride of a dimension of size 1 may have any value, but the library requires a valid one.
  int64_t smallest = least > 1 ? least : 1;
  return count == 1 || stride < smallest ? smallest : stride;
}

// An operand in a layout that the library supports, copied if necessary.
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

void call_library(const char* op, const lamella_gemm& problem) {
  char message[256] = "";
  int32_t status = blas_library().gemm(&problem, message, sizeof(message));
  LAMELLA_CHECK(status == LAMELLA_BLAS_OK, op,
                ": the library of matrix products failed: ", message);
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

}  // namespace

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

  // The library's order of sums depends on the sizes of a call, so these must not depend on the
  // number of threads.
  auto work = static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
  auto least = static_cast<int64_t>(work / static_cast<double>(kMaxShareWork)) + 1;
  auto most = static_cast<int64_t>(work / static_cast<double>(kMinShareWork)) + 1;
  Tiles tiles(p.m, p.n, std::max(least, std::min(kShares, most)));
  int64_t each = tiles.down * tiles.across;
  auto bytes = static_cast<int64_t>(element_size(p.dtype));
  auto run = [&](int64_t begin, int64_t end) {
    while (begin < end) {
      lamella_gemm part = problem;
      int64_t first = begin / each, tile = begin % each;
      int64_t row = tile / tiles.across * tiles.rows, column = tile % tiles.across * tiles.columns;
      // Consecutive whole products are passed in one call.
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
      call_library(op, part);
      begin += part.batch;
    }
  };
  auto grain = static_cast<int64_t>(static_cast<double>(kMinShareWork) * static_cast<double>(each) /
                                    std::max(work, 1.0));
  parallel_for(0, p.batch * each, std::max<int64_t>(grain, 1), run);
}

}  // namespace lamella::native
