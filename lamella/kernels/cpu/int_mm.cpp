// Products of matrices of bytes, with sums of int32: Note [Products of bytes].
#include <cstring>

#include "lamella/core/visit_dtype.h"
#include "lamella/kernels/cpu/copy.h"
#include "lamella/kernels/cpu/gemm.h"
#include "lamella/kernels/cpu/simd/gemm.h"
#include "lamella/kernels/device_math.h"
#include "lamella/kernels/parallel.h"
#include "lamella/structured_kernels.h"

namespace lamella {

namespace meta {
LAMELLA_META_FUNC(_int_mm)(const Tensor& self, const Tensor& mat2) {
  const char* op = "_int_mm";
  for (auto [name, t] : {std::pair("self", &self), std::pair("mat2", &mat2)}) {
    LAMELLA_CHECK(t->dim() == 2, op, ": expected '", name, "' to have 2 dimensions, got ",
                  t->sizes());
  }
  LAMELLA_CHECK(self.sizes()[1] == mat2.sizes()[0], op, ": expected 'mat2' to be of shape [",
                self.sizes()[1], ", *], got ", mat2.sizes());
  LAMELLA_CHECK(self.scalar_type() == kChar || self.scalar_type() == kByte, op,
                ": expected 'self' to be int8 or uint8, got ", self.scalar_type());
  LAMELLA_CHECK(mat2.scalar_type() == kChar, op, ": expected 'mat2' to be int8, got ",
                mat2.scalar_type());
  set_output_contiguous(0, {self.sizes()[0], mat2.sizes()[1]}, self.options().dtype(kInt));
}
}  // namespace meta

namespace native {

namespace {
// Copies a matrix to `dtype`, with rows padded with zeros to `columns` elements.
Tensor filled_up(const Matrices& x, ScalarType from, int64_t rows, int64_t k, int64_t columns,
                 ScalarType dtype) {
  Tensor t = new_tensor({rows, columns}, dtype, kCPU);
  if (columns != k) std::memset(t.data_ptr(), 0, t.nbytes());
  const int64_t sizes[2] = {rows, k}, strides[2] = {x.row, x.column};
  copy_strided(sizes, 2, {t.data_ptr(), t.strides().data(), dtype},
               {const_cast<void*>(x.data), strides, from});
  return t;
}

// Writes the correction of each row of a (Note [Products of bytes]) `count` times to `to`.
void correct(const Gemm& p, void* to, int64_t count) {
  const auto* from = static_cast<const int8_t*>(p.a.data);
  parallel_for(0, p.m, kGrainSize / (p.k + count) + 1, [&](int64_t begin, int64_t end) {
    byte_corrections_on(kCPU, from, p.a.row, p.k, begin, end, static_cast<int32_t*>(to), count);
  });
}

void one_byte_gemm(const char* op, Gemm p) {
  const ScalarType given = p.dtype;
  ScalarType dtype = given;
  for (ScalarType other : {kShort, kInt}) {
    if (dtype != kInt && byte_gemm_kernels_on(kCPU, dtype) == nullptr) dtype = other;
  }
  int64_t group = dtype == kInt ? 1 : byte_gemm_kernels_on(kCPU, dtype)->group;
  int64_t whole = (p.k + group - 1) / group * group;
  // The kernels read groups of numbers along k, so k is padded, and contiguous in a.
  bool as_given = dtype == given && whole == p.k;
  Tensor a, b;
  if (!as_given || p.a.column != 1) {
    a = filled_up(p.a, given, p.m, p.k, whole, dtype);
    p.a = Matrices::of(a);
  }
  if (!as_given || (p.b.row != 1 && p.b.column != 1)) {
    b = filled_up(p.b.transposed(), kChar, p.n, p.k, whole, dtype == kByte ? kChar : dtype);
    p.b = Matrices::of(b).transposed();
  }
  p.dtype = dtype;
  p.k = whole;
  p.beta = 0;
  p.d = {};
  if (dtype == kInt) return gemm(op, p);
  constexpr int64_t kMaxDotRows = 8;
  bool by_dots = is_dots_gemm(p, kMaxDotRows);
  Tensor added;
  if (dtype == kChar && by_dots) {
    added = new_tensor({p.m}, kInt, kCPU);
    correct(p, added.data_ptr(), 1);
    p.d = {added.data_ptr(), 1, 0, 0};
  } else if (dtype == kChar) {
    int64_t count = 2 * byte_gemm_kernels_on(kCPU, dtype)->columns;
    added = new_tensor({p.m, count}, kInt, kCPU);
    correct(p, added.data_ptr(), count);
    p.d = {added.data_ptr(), count, 0, 0};
  }
  if (by_dots) return dots_gemm(p);
  tiled_gemm(p);
}
}  // namespace

void byte_gemm(const char* op, const Gemm& problem) {
  for (int64_t i = 0; i < problem.batch; ++i) {
    Gemm p = problem;
    auto move = [&](Matrices& x, int64_t bytes) {
      x.data = static_cast<const char*>(x.data) + i * x.batch * bytes;
    };
    move(p.a, 1);
    move(p.b, 1);
    move(p.c, sizeof(int32_t));
    p.batch = 1;
    p.result = ScalarType::Undefined;
    one_byte_gemm(op, p);
  }
}

LAMELLA_IMPL_FUNC(int_mm_cpu)(const Tensor& self, const Tensor& mat2, const Tensor& out) {
  int64_t m = out.sizes()[0], n = out.sizes()[1], k = self.sizes()[1];
  if (out.numel() == 0) return;
  if (k == 0) {
    const_cast<Tensor&>(out).zero_();
    return;
  }
  Gemm p{self.scalar_type(), 1, m, n, k, Matrices::of(self), Matrices::given(mat2),
         Matrices::of(out)};
  p.device = out.device();
  p.result = kInt;
  gemm("_int_mm", p);
}
}  // namespace native

}  // namespace lamella
