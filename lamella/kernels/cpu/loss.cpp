// Losses that compare two tensors element by element, and their backwards: mse_loss,
// smooth_l1_loss, huber_loss, soft_margin_loss, binary_cross_entropy.
#include <limits>

#include "lamella/kernels/cpu/simd/loss.h"
#include "lamella/kernels/device_lines.h"
#include "lamella/kernels/native.h"
#include "lamella/kernels/parallel.h"
#include "lamella/kernels/reduction.h"

namespace lamella::native {

namespace {
struct Operands {
  Dims shape;
  ScalarType dtype;    // of the result
  ScalarType compute;  // float for the small types
};

Operands operands(const char* op, const Tensor& self, const Tensor& target) {
  Operands o;
  bool same = self.sizes().equals(target.sizes());
  o.shape =
      same ? Dims(self.sizes()) : broadcast_shapes(self.sizes(), target.sizes(), op, "target");
  o.dtype = self.scalar_type() == target.scalar_type() ? self.scalar_type()
                                                       : lamella::result_type(self, target);
  LAMELLA_CHECK_NOT_IMPLEMENTED(is_floating_point(o.dtype) && !is_float8(o.dtype), op,
                                ": expected 'self' and 'target' to be floating point, got ",
                                self.scalar_type(), " and ", target.scalar_type());
  o.compute = o.dtype == kDouble ? kDouble : kFloat;
  return o;
}
// The operand as a contiguous tensor of the shape and dtype of the computation.
Tensor prepared(const Tensor& tensor, const Operands& o) {
  if (tensor.scalar_type() == o.compute && tensor.sizes().equals(o.shape)) {
    return tensor.contiguous();
  }
  return tensor.to(o.compute).expand(o.shape).contiguous();
}
Tensor finished(Tensor result, const Operands& o) {
  return o.compute == o.dtype ? result : result.to(o.dtype);
}

Tensor all_losses(Loss loss, const Operands& o, const Tensor& x, const Tensor& t, double beta) {
  Tensor out = new_tensor(o.shape, o.compute, x.device());
  if (x.device() != kCPU) {
    auto on_device = device_lines("loss", x.device().type()).loss;
    require_on_device(on_device(static_cast<int>(loss), x, t, out, beta), "loss", x);
    return out;
  }
  auto* result = static_cast<char*>(out.data_ptr());
  auto* a = static_cast<const char*>(x.const_data_ptr());
  auto* b = static_cast<const char*>(t.const_data_ptr());
  auto size = static_cast<int64_t>(element_size(o.compute));
  parallel_for(0, x.numel(), kGrainSize, [&](int64_t begin, int64_t end) {
    loss_on(kCPU, loss, o.compute, a + begin * size, b + begin * size, result + begin * size,
            end - begin, beta);
  });
  return out;
}

// Sums in parts of fixed length, so that the result does not depend on the number of threads.
double sum_of_losses(Loss loss, const Operands& o, const Tensor& x, const Tensor& t, double beta) {
  constexpr int64_t kPart = 1 << 16;
  int64_t n = x.numel(), parts = (n + kPart - 1) / kPart;
  auto* a = static_cast<const char*>(x.const_data_ptr());
  auto* b = static_cast<const char*>(t.const_data_ptr());
  if (parts <= 1) return loss_on(kCPU, loss, o.compute, a, b, nullptr, n, beta);
  std::vector<double> sums(static_cast<size_t>(parts));
  auto size = static_cast<int64_t>(element_size(o.compute));
  parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t count = n - i * kPart < kPart ? n - i * kPart : kPart;
      sums[static_cast<size_t>(i)] = loss_on(kCPU, loss, o.compute, a + i * kPart * size,
                                             b + i * kPart * size, nullptr, count, beta);
    }
  });
  double sum = 0;
  for (double part : sums) sum += part;
  return sum;
}

void store_number(const Tensor& out, double value) {
  switch (out.scalar_type()) {
    case kFloat:
      *static_cast<float*>(out.data_ptr()) = static_cast<float>(value);
      break;
    case kDouble:
      *static_cast<double*>(out.data_ptr()) = value;
      break;
    default:
      const_cast<Tensor&>(out).fill_(value);
  }
}

Tensor loss_of(const char* op, Loss loss, const Tensor& self, const Tensor& target,
               int64_t reduction, double beta) {
  check_reduction(op, reduction);
  Operands o = operands(op, self, target);
  bool none = reduction == kReduceNone;
  if (self.is_meta())
    return new_tensor(none ? IntArrayRef(o.shape) : IntArrayRef(), o.dtype, kMeta);
  Tensor x = prepared(self, o), t = prepared(target, o);
  if (none) return finished(all_losses(loss, o, x, t, beta), o);
  if (self.device() != kCPU) {
    return finished(apply_reduction(op, all_losses(loss, o, x, t, beta), reduction), o);
  }
  double sum = sum_of_losses(loss, o, x, t, beta);
  if (reduction == kReduceMean) {
    sum = x.numel() == 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sum / static_cast<double>(x.numel());
  }
  Tensor out = new_tensor({}, o.dtype, self.device());
  store_number(out, sum);
  return out;
}

Tensor loss_backward_of(const char* op, Loss loss, const Tensor& grad, const Tensor& self,
                        const Tensor& target, int64_t reduction, double beta) {
  check_reduction(op, reduction);
  Operands o = operands(op, self, target);
  if (self.is_meta()) return new_tensor(o.shape, o.dtype, kMeta);
  Tensor x = prepared(self, o), t = prepared(target, o);
  Tensor out = new_tensor(o.shape, o.compute, self.device());
  int64_t n = x.numel();
  if (n == 0) return finished(out, o);
  bool one = grad.numel() == 1;
  Tensor g = one ? grad.to(o.compute) : prepared(grad, o);
  double scale = reduction == kReduceMean ? 1 / static_cast<double>(n) : 1;
  if (x.device() != kCPU) {
    auto on_device = device_lines(op, x.device().type()).loss_backward;
    require_on_device(
        on_device(static_cast<int>(loss), x, t, one ? g.view(IntArrayRef()) : g, out, beta, scale),
        op, x);
    return finished(out, o);
  }
  LossBackward p{
      loss,           o.compute, one,  x.const_data_ptr(), t.const_data_ptr(), g.const_data_ptr(),
      out.data_ptr(), beta,      scale};
  parallel_for(0, n, kGrainSize,
               [&](int64_t begin, int64_t end) { loss_backward_on(kCPU, p, begin, end); });
  return finished(out, o);
}
}  // namespace

namespace {
void check_beta(double beta) {
  LAMELLA_CHECK(beta >= 0, "smooth_l1_loss: expected 'beta' not to be negative, got ", beta);
}
void check_delta(double delta) {
  LAMELLA_CHECK(delta > 0, "huber_loss: expected 'delta' to be greater than 0, got ", delta);
}
}  // namespace

// Defines a loss and its backward. The last arguments are its number with the check of it.
#define LAMELLA_LOSS(name, loss)                                                               \
  Tensor name(const Tensor& self, const Tensor& target, int64_t reduction) {                   \
    return loss_of(#name, loss, self, target, reduction, 0);                                   \
  }                                                                                            \
  Tensor name##_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target,  \
                         int64_t reduction) {                                                  \
    return loss_backward_of(#name "_backward", loss, grad_output, self, target, reduction, 0); \
  }
#define LAMELLA_LOSS_WITH(name, loss, number, check)                                          \
  Tensor name(const Tensor& self, const Tensor& target, int64_t reduction, double number) {   \
    check(number);                                                                            \
    return loss_of(#name, loss, self, target, reduction, number);                             \
  }                                                                                           \
  Tensor name##_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target, \
                         int64_t reduction, double number) {                                  \
    check(number);                                                                            \
    return loss_backward_of(#name "_backward", loss, grad_output, self, target, reduction,    \
                            number);                                                          \
  }
LAMELLA_LOSS(mse_loss, Loss::kSquare)
LAMELLA_LOSS_WITH(smooth_l1_loss, Loss::kSmoothL1, beta, check_beta)
LAMELLA_LOSS_WITH(huber_loss, Loss::kHuber, delta, check_delta)
LAMELLA_LOSS(soft_margin_loss, Loss::kSoftMargin)

namespace {
// `other` as a tensor of the shape of `self`, from which it may differ by dimensions of size 1.
Tensor in_shape_of(const char* op, const char* name, const Tensor& self, const Tensor& other) {
  if (self.sizes().equals(other.sizes())) return other;
  LAMELLA_CHECK(self.squeeze().sizes().equals(other.squeeze().sizes()), op, ": expected '", name,
                "' to be of shape ", self.sizes(), ", got ", other.sizes());
  return other.reshape(self.sizes());
}
void check_probabilities(const char* op, const Tensor& self, const Tensor& target) {
  // On other devices the kernel looks, since the host would have to wait for it.
  if (self.device() != kCPU || self.numel() == 0) return;
  for (auto [name, tensor] : {std::pair("self", &self), std::pair("target", &target)}) {
    auto [least, most] = tensor->aminmax();
    double low = least.item().toDouble(), high = most.item().toDouble();
    LAMELLA_CHECK(low >= 0 && high <= 1, op, ": expected the elements of '", name,
                  "' to be in [0, 1], got some from ", low, " to ", high);
  }
}
}  // namespace
Tensor binary_cross_entropy(const Tensor& self, const Tensor& given_target,
                            const std::optional<Tensor>& weight, int64_t reduction) {
  const char* op = "binary_cross_entropy";
  const Tensor target = in_shape_of(op, "target", self, given_target);
  check_probabilities(op, self, target);
  if (!weight || !weight->defined()) {
    return loss_of(op, Loss::kEntropy, self, target, reduction, 0);
  }
  Tensor values = loss_of(op, Loss::kEntropy, self, target, kReduceNone, 0);
  return apply_reduction(op, values.mul(*weight), reduction);
}
Tensor binary_cross_entropy_backward(const Tensor& grad_output, const Tensor& self,
                                     const Tensor& target, const std::optional<Tensor>& weight,
                                     int64_t reduction) {
  const char* op = "binary_cross_entropy_backward";
  Tensor grad = loss_backward_of(op, Loss::kEntropy, grad_output, self,
                                 in_shape_of(op, "target", self, target), reduction, 0);
  return weight && weight->defined() ? grad.mul_(*weight) : grad;
}

}  // namespace lamella::native
