// Reductions made of other operators.
#include "lamella/api/functions.h"
#include "lamella/kernels/native.h"
#include "lamella/kernels/reduce/reduce_shape.h"
#include "lamella/native_functions.h"

namespace lamella::native {
namespace {
using MaybeType = std::optional<ScalarType>;
using MaybeNumber = std::optional<Scalar>;
Scalar bessel(bool unbiased) { return unbiased ? 1 : 0; }
}  // namespace

Tensor sum(const Tensor& self, MaybeType dtype) {
  return lamella::sum(self, OptionalIntArrayRef(), false, dtype);
}
Tensor mean(const Tensor& self, MaybeType dtype) {
  return lamella::mean(self, OptionalIntArrayRef(), false, dtype);
}
Tensor prod(const Tensor& self, MaybeType dtype) {
  return lamella::prod(self.reshape({-1}), 0, false, dtype);
}
Tensor max(const Tensor& self) {
  LAMELLA_CHECK(self.numel() != 0, "max: expected 'self' to have elements, got shape ",
                self.sizes());
  return lamella::amax(self, {}, false);
}
Tensor min(const Tensor& self) {
  LAMELLA_CHECK(self.numel() != 0, "min: expected 'self' to have elements, got shape ",
                self.sizes());
  return lamella::amin(self, {}, false);
}
Tensor max(const Tensor& self, const Tensor& other) { return lamella::maximum(self, other); }
Tensor min(const Tensor& self, const Tensor& other) { return lamella::minimum(self, other); }

Tensor all(const Tensor& self) { return lamella::all(self, OptionalIntArrayRef(), false); }
Tensor all(const Tensor& self, int64_t dim, bool keepdim) {
  return lamella::all(self, OptionalIntArrayRef(dim), keepdim);
}
Tensor any(const Tensor& self) { return lamella::any(self, OptionalIntArrayRef(), false); }
Tensor any(const Tensor& self, int64_t dim, bool keepdim) {
  return lamella::any(self, OptionalIntArrayRef(dim), keepdim);
}

// Defines the forms of var or std with `unbiased`, and those that return the mean as well.
#define LAMELLA_SPREAD(name, name_mean, of)                                               \
  Tensor name(const Tensor& self, OptionalIntArrayRef dim, bool unbiased, bool keepdim) { \
    return of(self, dim, MaybeNumber(bessel(unbiased)), keepdim);                         \
  }                                                                                       \
  Tensor name(const Tensor& self, bool unbiased) {                                        \
    return name(self, OptionalIntArrayRef(), unbiased, false);                            \
  }                                                                                       \
  ::std::tuple<Tensor, Tensor> name_mean(const Tensor& self, OptionalIntArrayRef dim,     \
                                         const MaybeNumber& correction, bool keepdim) {   \
    return {of(self, dim, correction, keepdim),                                           \
            lamella::mean(self, dim, keepdim, ::std::nullopt)};                           \
  }                                                                                       \
  ::std::tuple<Tensor, Tensor> name_mean(const Tensor& self, OptionalIntArrayRef dim,     \
                                         bool unbiased, bool keepdim) {                   \
    return name_mean(self, dim, MaybeNumber(bessel(unbiased)), keepdim);                  \
  }                                                                                       \
  ::std::tuple<Tensor, Tensor> name_mean(const Tensor& self, bool unbiased) {             \
    return name_mean(self, OptionalIntArrayRef(), MaybeNumber(bessel(unbiased)), false);  \
  }
LAMELLA_SPREAD(var, var_mean, lamella::var)
LAMELLA_SPREAD(std_, std_mean, lamella::std)

// ---- Norms ----

Tensor norm(const Tensor& self, const MaybeNumber& p, IntArrayRef dim, bool keepdim) {
  return lamella::linalg_vector_norm(self, p.value_or(2), dim, keepdim, ::std::nullopt);
}
Tensor norm(const Tensor& self, const MaybeNumber& p, IntArrayRef dim, bool keepdim,
            ScalarType dtype) {
  return lamella::linalg_vector_norm(self, p.value_or(2), dim, keepdim, dtype);
}
Tensor norm(const Tensor& self, const MaybeNumber& p, ScalarType dtype) {
  return lamella::linalg_vector_norm(self, p.value_or(2), OptionalIntArrayRef(), false, dtype);
}
Tensor norm(const Tensor& self, const Scalar& p) {
  return lamella::linalg_vector_norm(self, p, OptionalIntArrayRef(), false, ::std::nullopt);
}

// log(sum(exp(x))), as max(x) + log(sum(exp(x - max(x)))) to avoid overflow.
Tensor logsumexp(const Tensor& self, IntArrayRef dim, bool keepdim) {
  const bool has_kernel = self.device() == kCPU || self.device().is_cuda();
  if (has_kernel && self.is_floating_point() && !is_float8(self.dtype())) {
    DimMask mask = reduced_dims("logsumexp", dim, self.dim());
    Tensor result =
        new_tensor(reduced_shape(self, mask, keepdim).ref(), self.dtype(), self.device());
    reduce_tensor(reduction<"logsumexp">(), self.dtype(), self, mask, result);
    return result;
  }
  Tensor x = is_integral(self.dtype(), true) ? self.to(kFloat) : self;
  if (x.numel() == 0) return lamella::log(lamella::sum(lamella::exp(x), dim, keepdim));
  Tensor most = lamella::amax(x.is_complex() ? lamella::real(x) : x, dim, true);
  // An infinite maximum is not subtracted, because inf - inf is NaN.
  most = lamella::where(lamella::isinf(most), Scalar(0), most);
  Tensor sum = lamella::sum(lamella::exp(lamella::sub(x, most)), dim, true);
  Tensor result = lamella::add(lamella::log(sum), most);
  if (keepdim) return result;
  return lamella::sum(result, dim, false);  // over dimensions of size 1
}

Tensor count_nonzero(const Tensor& self, ::std::optional<int64_t> dim) {
  if (!dim.has_value()) return lamella::count_nonzero(self, IntArrayRef());
  int64_t one = *dim;
  return lamella::count_nonzero(self, IntArrayRef(one));
}

}  // namespace lamella::native
