// Structured matrix products: mm, bmm, addmm, baddbmm, addmv, and dot, vdot, mv.
#include "lamella/api/generated_kernels.h"
#include "lamella/kernels/cpu/gemm.h"

namespace lamella {

namespace {
void check_dtypes(const char* op, const Tensor& self, const Tensor& other, const char* name) {
  LAMELLA_CHECK(other.scalar_type() == self.scalar_type(), op, ": expected '", name, "' to be ",
                self.scalar_type(), ", got ", other.scalar_type());
}
void check_rank(const char* op, const Tensor& tensor, const char* name, int64_t rank) {
  LAMELLA_CHECK(tensor.dim() == rank, op, ": expected '", name, "' to have ", rank,
                rank == 1 ? " dimension, got " : " dimensions, got ", tensor.sizes());
}
void check_product(const char* op, const Tensor& a, const char* a_name, const Tensor& b,
                   const char* b_name) {
  check_rank(op, a, a_name, 2);
  check_rank(op, b, b_name, 2);
  LAMELLA_CHECK(a.sizes()[1] == b.sizes()[0], op, ": expected '", b_name, "' to be of shape [",
                a.sizes()[1], ", *], got ", b.sizes());
  check_dtypes(op, a, b, b_name);
}
void check_batched(const char* op, const Tensor& a, const char* a_name, const Tensor& b,
                   const char* b_name) {
  check_rank(op, a, a_name, 3);
  check_rank(op, b, b_name, 3);
  LAMELLA_CHECK(a.sizes()[0] == b.sizes()[0] && a.sizes()[2] == b.sizes()[1], op, ": expected '",
                b_name, "' to be of shape [", a.sizes()[0], ", ", a.sizes()[2], ", *], got ",
                b.sizes());
  check_dtypes(op, a, b, b_name);
}
void check_added(const char* op, const Tensor& self, const Tensor& product, IntArrayRef shape) {
  LAMELLA_CHECK(native::is_expandable(self.sizes(), shape), op,
                ": expected 'self' to be broadcastable to ", shape, ", got ", self.sizes());
  check_dtypes(op, product, self, "self");
}
}  // namespace

namespace meta {
LAMELLA_META_FUNC(mm)(const Tensor& self, const Tensor& mat2) {
  check_product("mm", self, "self", mat2, "mat2");
  set_output_raw_strided(0, {self.sizes()[0], mat2.sizes()[1]}, {}, self.options());
}
LAMELLA_META_FUNC(bmm)(const Tensor& self, const Tensor& mat2) {
  check_batched("bmm", self, "self", mat2, "mat2");
  set_output_raw_strided(0, {self.sizes()[0], self.sizes()[1], mat2.sizes()[2]}, {},
                         self.options());
}
LAMELLA_META_FUNC(addmm)
(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
 const Scalar& alpha) {
  check_product("addmm", mat1, "mat1", mat2, "mat2");
  const int64_t shape[2] = {mat1.sizes()[0], mat2.sizes()[1]};
  check_added("addmm", self, mat1, shape);
  set_output_raw_strided(0, shape, {}, mat1.options());
}
LAMELLA_META_FUNC(_addmm_activation)
(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
 const Scalar& alpha, bool use_gelu) {
  const char* op = "_addmm_activation";
  check_product(op, mat1, "mat1", mat2, "mat2");
  ScalarType dtype = mat1.scalar_type();
  LAMELLA_CHECK(use_gelu ? is_floating_point(dtype) : !is_complex(dtype), op, ": expected ",
                use_gelu ? "floating-point matrices for gelu" : "real matrices for relu", ", got ",
                dtype);
  const int64_t shape[2] = {mat1.sizes()[0], mat2.sizes()[1]};
  check_added(op, self, mat1, shape);
  set_output_raw_strided(0, shape, {}, mat1.options());
}
LAMELLA_META_FUNC(baddbmm)
(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta,
 const Scalar& alpha) {
  check_batched("baddbmm", batch1, "batch1", batch2, "batch2");
  const int64_t shape[3] = {batch1.sizes()[0], batch1.sizes()[1], batch2.sizes()[2]};
  check_added("baddbmm", self, batch1, shape);
  set_output_raw_strided(0, shape, {}, batch1.options());
}
LAMELLA_META_FUNC(addmv)
(const Tensor& self, const Tensor& mat, const Tensor& vec, const Scalar& beta,
 const Scalar& alpha) {
  check_rank("addmv", mat, "mat", 2);
  check_rank("addmv", vec, "vec", 1);
  LAMELLA_CHECK(mat.sizes()[1] == vec.sizes()[0], "addmv: expected 'vec' to be of shape [",
                mat.sizes()[1], "], got ", vec.sizes());
  check_dtypes("addmv", mat, vec, "vec");
  check_added("addmv", self, mat, IntArrayRef(mat.sizes().data(), 1));
  set_output_raw_strided(0, IntArrayRef(mat.sizes().data(), 1), {}, mat.options());
}
}  // namespace meta

namespace native {

namespace {
// Devices may refuse a product, after which nothing must have been written: self, or a copy of it
// if it may overlap their out.
Tensor kept_apart(const Tensor& self, const Scalar& beta, const Tensor& out) {
  const bool apart = out.is_cpu() || beta.equal(0) || out.is_same(self);
  return apart || !may_share_memory(self, out) ? self : self.clone();
}
// The operand of beta * self: self broadcast to out's shape, with a vector as a column. Empty if it
// is not read; out itself if the two may partly overlap.
Matrices added_of(const Tensor& self, const Scalar& beta, const Tensor& out) {
  if (beta.equal(0) || out.is_same(self)) return {};
  if (may_share_memory(self, out)) {
    const_cast<Tensor&>(out).copy_(self);
    return {};
  }
  size_t n = out.sizes().size(), missing = n - self.sizes().size();
  auto stride = [&](size_t d) -> int64_t {
    return d < missing || d >= n || self.sizes()[d - missing] == 1 ? 0
                                                                   : self.strides()[d - missing];
  };
  if (n == 1) return {self.data_ptr(), stride(0), 0, 0};
  return {self.data_ptr(), stride(n - 2), stride(n - 1), n == 3 ? stride(0) : 0};
}

// out = beta * self + alpha * (a b), for tensors of 2 or 3 dimensions.
void add_product(const char* op, const Tensor& self, const Tensor& a, const Tensor& b,
                 const Scalar& beta, const Scalar& alpha, const Tensor& out, bool relu = false) {
  if (out.numel() == 0) return;
  const Tensor added = kept_apart(self, beta, out);
  size_t n = a.sizes().size();
  Gemm problem{a.scalar_type(),
               n == 3 ? a.sizes()[0] : 1,
               a.sizes()[n - 2],
               b.sizes()[n - 1],
               a.sizes()[n - 1],
               Matrices::given(a),
               Matrices::given(b),
               Matrices::of(out),
               alpha,
               beta,
               added_of(added, beta, out),
               out.device()};
  problem.relu = relu;
  gemm(op, problem);
}
}  // namespace

LAMELLA_IMPL_FUNC(mm_cpu)(const Tensor& self, const Tensor& mat2, const Tensor& out) {
  add_product("mm", out, self, mat2, 0, 1, out);
}
LAMELLA_IMPL_FUNC(bmm_cpu)(const Tensor& self, const Tensor& mat2, const Tensor& out) {
  add_product("bmm", out, self, mat2, 0, 1, out);
}
LAMELLA_IMPL_FUNC(addmm_cpu)
(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
 const Scalar& alpha, const Tensor& out) {
  add_product("addmm", self, mat1, mat2, beta, alpha, out);
}
LAMELLA_IMPL_FUNC(addmm_activation_cpu)
(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
 const Scalar& alpha, bool use_gelu, const Tensor& out) {
  const bool fused = !out.is_cpu() && !use_gelu;
  add_product("_addmm_activation", self, mat1, mat2, beta, alpha, out, fused);
  if (fused) return;
  // The sums are rounded to the dtype of the result first, as if two operators were called.
  Tensor result = out;
  if (use_gelu) {
    lamella::gelu_(result);
  } else {
    lamella::relu_(result);
  }
}
LAMELLA_IMPL_FUNC(baddbmm_cpu)
(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta,
 const Scalar& alpha, const Tensor& out) {
  add_product("baddbmm", self, batch1, batch2, beta, alpha, out);
}
LAMELLA_IMPL_FUNC(addmv_cpu)
(const Tensor& self, const Tensor& mat, const Tensor& vec, const Scalar& beta, const Scalar& alpha,
 const Tensor& out) {
  if (out.numel() == 0) return;
  const Tensor added = kept_apart(self, beta, out);
  Gemm problem{mat.scalar_type(),
               1,
               mat.sizes()[0],
               1,
               mat.sizes()[1],
               Matrices::of(mat),
               {vec.data_ptr(), vec.strides()[0], 1, 0},
               {out.data_ptr(), out.strides()[0], 1, 0},
               alpha,
               beta,
               added_of(added, beta, out),
               out.device()};
  gemm("addmv", problem);
}

Tensor& addbmm_out(const Tensor& self, const Tensor& batch1, const Tensor& batch2,
                   const Scalar& beta, const Scalar& alpha, Tensor& out) {
  check_batched("addbmm", batch1, "batch1", batch2, "batch2");
  const int64_t shape[2] = {batch1.sizes()[1], batch2.sizes()[2]};
  check_added("addbmm", self, batch1, shape);
  // The sum over the batch is one product with the batch folded into the inner dimension.
  int64_t inner = batch1.sizes()[0] * batch1.sizes()[2];
  Tensor left = batch1.permute({1, 0, 2}).reshape({shape[0], inner});
  Tensor right = batch2.reshape({inner, shape[1]});
  return lamella::addmm_out(out, self, left, right, beta, alpha);
}
Tensor addbmm(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta,
              const Scalar& alpha) {
  Tensor out = new_tensor({0}, self.scalar_type(), self.device());
  native::addbmm_out(self, batch1, batch2, beta, alpha, out);
  return out;
}

Tensor mv(const Tensor& self, const Tensor& vec) {
  Tensor out = lamella::empty({self.dim() == 0 ? 0 : self.sizes()[0]}, vec.options());
  return lamella::addmv_out(out, out, self, vec, 0, 1);
}
Tensor& mv_out(const Tensor& self, const Tensor& vec, Tensor& out) {
  Tensor start = lamella::empty({self.dim() == 0 ? 0 : self.sizes()[0]}, vec.options());
  return lamella::addmv_out(out, start, self, vec, 0, 1);
}

namespace {
Tensor dot_of(const char* op, const Tensor& self, const Tensor& other, const char* name,
              bool conjugate) {
  check_rank(op, self, "self", 1);
  check_rank(op, other, name, 1);
  check_dtypes(op, self, other, name);
  LAMELLA_CHECK(self.numel() == other.numel(), op, ": expected '", name, "' to be of shape ",
                self.sizes(), ", got ", other.sizes());
  Tensor out = new_tensor({}, self.scalar_type(), self.device());
  if (self.is_cpu()) {
    dot_product(op, self, other, conjugate, out.data_ptr());
  } else if (!self.is_meta()) {
    const Tensor left = conjugate ? self.conj_physical() : self;
    gemm(op, {self.scalar_type(),
              1,
              1,
              1,
              self.numel(),
              {left.data_ptr(), 1, left.strides()[0], 0},
              {other.data_ptr(), other.strides()[0], 1, 0},
              {out.data_ptr(), 1, 1, 0},
              1,
              0,
              {},
              out.device()});
  }
  return out;
}
}  // namespace
Tensor dot(const Tensor& self, const Tensor& tensor) {
  return dot_of("dot", self, tensor, "tensor", false);
}
Tensor vdot(const Tensor& self, const Tensor& other) {
  return dot_of("vdot", self, other, "other", true);
}
Tensor& dot_out(const Tensor& self, const Tensor& tensor, Tensor& out) {
  Tensor result = lamella::dot(self, tensor);
  ::lamella::detail::assign_out("dot", "out", out, result);
  return out;
}
Tensor& vdot_out(const Tensor& self, const Tensor& other, Tensor& out) {
  Tensor result = lamella::vdot(self, other);
  ::lamella::detail::assign_out("vdot", "out", out, result);
  return out;
}

}  // namespace native
}  // namespace lamella
