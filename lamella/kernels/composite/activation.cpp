// Activations and special functions made of other operators.
#include "lamella/api/functions.h"
#include "lamella/api/generated_kernels.h"
#include "lamella/core/tensor_impl.h"
#include "lamella/kernels/dims.h"
#include "lamella/native_functions.h"

namespace lamella::native {

// `weight` has one slope for all elements, or one for each channel (dimension 1; a vector has one
// channel).
Tensor prelu(const Tensor& self, const Tensor& weight) {
  LAMELLA_CHECK(self.dtype() == weight.dtype(), "prelu: expected 'weight' to have dtype ",
                self.dtype(), ", got ", weight.dtype());
  LAMELLA_CHECK(weight.dim() <= 1, "prelu: expected 'weight' to have at most 1 dimension, got ",
                weight.sizes());
  lamella::detail::SameDevice device("prelu");
  device.see("self", self);
  device.see("weight", weight);
  if (weight.numel() == 1) return lamella::_prelu_kernel(self, weight.reshape({}));
  LAMELLA_CHECK(self.dim() > 0, "prelu: expected 'self' to have at least 1 dimension for a ",
                "'weight' of ", weight.numel(), " elements, got a tensor with 0");
  int64_t channels = self.dim() > 1 ? self.size(1) : 1;
  LAMELLA_CHECK(weight.numel() == channels, "prelu: expected 'weight' to have 1 element or ",
                channels, ", got ", weight.numel());
  Dims shape(static_cast<size_t>(self.dim()), 1);
  if (self.dim() > 1) shape[1] = channels;
  return lamella::_prelu_kernel(self, weight.reshape(shape));
}

namespace {
Scalar inverse(const Scalar& alpha) {
  LAMELLA_CHECK(alpha.toDouble() != 0, "celu: expected 'alpha' not to be 0");
  return 1 / alpha.toDouble();
}
}  // namespace
Tensor celu(const Tensor& self, const Scalar& alpha) {
  return lamella::elu(self, alpha, 1.0, inverse(alpha));
}
Tensor& celu_(Tensor& self, const Scalar& alpha) {
  return lamella::elu_(self, alpha, 1.0, inverse(alpha));
}
Tensor& selu_(Tensor& self) {
  return lamella::elu_(self, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946,
                       1.0);
}
Tensor& relu6_(Tensor& self) { return lamella::hardtanh_(self, 0, 6); }

// The first half along `dim`, gated by the second.
Tensor glu(const Tensor& self, int64_t dim) {
  dim = maybe_wrap_dim(dim, self.dim(), "glu");
  LAMELLA_CHECK(self.dim() > 0 && self.size(dim) % 2 == 0,
                "glu: expected 'self' to have an even size along dimension ", dim, ", got shape ",
                self.sizes());
  int64_t half = self.size(dim) / 2;
  return lamella::mul(self.narrow(dim, 0, half), lamella::sigmoid(self.narrow(dim, half, half)));
}

// In training, the slope of each element that is not positive is drawn at random; otherwise it is
// the mean of `lower` and `upper`.
Tensor rrelu(const Tensor& self, const Scalar& lower, const Scalar& upper, bool training,
             std::optional<Generator> generator) {
  double low = lower.toDouble(), high = upper.toDouble();
  LAMELLA_CHECK(low <= high, "rrelu: expected 'lower' not to be above 'upper', got ", lower,
                " and ", upper);
  if (!training) return lamella::leaky_relu(self, (low + high) / 2);
  return lamella::mul(self, lamella::_rrelu_slopes(self, low, high, generator));
}
Tensor& rrelu_(Tensor& self, const Scalar& lower, const Scalar& upper, bool training,
               std::optional<Generator> generator) {
  // The gradient needs the elements that are overwritten, so they are cloned.
  return self.copy_(lamella::rrelu(self.clone(), lower, upper, training, generator));
}

namespace {
Tensor wrapped(const Scalar& number, Device device) {
  Tensor tensor = lamella::full({}, number, number.type(), std::nullopt, device, std::nullopt);
  set_flag(TensorImpl::of(tensor), LAMELLA_TENSOR_WRAPPED_NUMBER, true);
  return tensor;
}
}  // namespace
#define LAMELLA_WITH_NUMBER(name)                               \
  Tensor name(const Scalar& self, const Tensor& other) {        \
    return lamella::name(wrapped(self, other.device()), other); \
  }                                                             \
  Tensor name(const Tensor& self, const Scalar& other) {        \
    return lamella::name(self, wrapped(other, self.device()));  \
  }
LAMELLA_WITH_NUMBER(special_zeta)
LAMELLA_WITH_NUMBER(special_xlog1py)

// The normal distribution function; erfc keeps the lower tail exact.
Tensor special_ndtr(const Tensor& self) {
  return lamella::mul(lamella::erfc(lamella::mul(self, -0.70710678118654752440)), 0.5);
}

}  // namespace lamella::native
