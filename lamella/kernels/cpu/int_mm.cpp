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
// Copies x to `dtype`, with rows padded with zeros to `columns` elements.
Tensor filled_up(const Tensor& x, int64_t columns, ScalarType dtype) {
  Tensor t = new_tensor({x.sizes()[0], columns}, dtype, kCPU);
  if (columns != x.sizes()[1]) std::memset(t.data_ptr(), 0, t.nbytes());
  copy_strided(x.sizes().data(), 2, {t.data_ptr(), t.strides().data(), dtype},
               {x.data_ptr(), x.strides().data(), x.scalar_type()});
  return t;
}

// Writes the correction of each row (Note [Products of bytes]) `count` times to `to`.
void correct(const Tensor& a, int32_t* to, int64_t count) {
  int64_t rows = a.sizes()[0], k = a.sizes()[1];
  const auto* from = static_cast<const int8_t*>(a.const_data_ptr());
  parallel_for(0, rows, kGrainSize / (k + count) + 1, [&](int64_t begin, int64_t end) {
    byte_corrections_on(kCPU, from, a.strides()[0], k, begin, end, to, count);
  });
}
}  // namespace

LAMELLA_IMPL_FUNC(int_mm_cpu)(const Tensor& self, const Tensor& mat2, const Tensor& out) {
  int64_t m = out.sizes()[0], n = out.sizes()[1], k = self.sizes()[1];
  if (out.numel() == 0) return;
  if (k == 0) {
    const_cast<Tensor&>(out).zero_();
    return;
  }
  ScalarType dtype = self.scalar_type();
  if (!out.is_cpu()) {
    Gemm p{dtype, 1, m, n, k, Matrices::of(self), Matrices::of(mat2), Matrices::of(out)};
    p.device = out.device();
    p.result = kInt;
    return gemm("_int_mm", p);
  }
  for (ScalarType other : {kShort, kInt}) {
    if (dtype != kInt && byte_gemm_kernels_on(kCPU, dtype) == nullptr) dtype = other;
  }
  int64_t group = dtype == kInt ? 1 : byte_gemm_kernels_on(kCPU, dtype)->group;
  int64_t whole = (k + group - 1) / group * group;
  // The kernels read groups of numbers along k, so k is padded, and contiguous in a.
  Tensor a = self, b = mat2;
  bool as_given = dtype == self.scalar_type() && whole == k;
  if (!as_given || a.strides()[1] != 1) a = filled_up(a, whole, dtype);
  if (!as_given || (b.strides()[0] != 1 && b.strides()[1] != 1)) {
    b = filled_up(b.t(), whole, dtype == kByte ? kChar : dtype).t();
  }
  Matrices weight = b.is_same(mat2) ? Matrices::given(b) : Matrices::of(b);
  Gemm p{dtype, 1, m, n, whole, Matrices::of(a), weight, Matrices::of(out)};
  if (dtype == kInt) {
    p.beta = 0;
    return gemm("_int_mm", p);
  }
  constexpr int64_t kMaxDotRows = 8;
  bool by_dots = is_dots_gemm(p, kMaxDotRows);
  Tensor added;
  if (dtype == kChar && by_dots) {
    added = new_tensor({m}, kInt, kCPU);
    correct(a, added.mutable_data_ptr<int32_t>(), 1);
    p.d = {added.data_ptr(), 1, 0, 0};
  } else if (dtype == kChar) {
    correct(a, out.mutable_data_ptr<int32_t>(), n);
    p.d = p.c;
  }
  if (by_dots) return dots_gemm(p);
  tiled_gemm(p);
}
}  // namespace native

}  // namespace lamella
