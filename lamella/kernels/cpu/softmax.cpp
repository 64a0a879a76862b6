// Structured softmax and log_softmax.
#include "lamella/kernels/cpu/simd/rows.h"
#include "lamella/kernels/device_lines.h"
#include "lamella/kernels/native.h"
#include "lamella/kernels/parallel.h"

namespace lamella {

namespace {
void check_softmax(const char* op, const Tensor& self, int64_t dim, bool half_to_float) {
  maybe_wrap_dim(dim, self.dim(), op);
  LAMELLA_CHECK(!half_to_float, op, ": expected 'half_to_float' to be False on ", self.device());
  LAMELLA_CHECK_NOT_IMPLEMENTED(self.is_floating_point() && !is_float8(self.scalar_type()), op,
                                ": expected 'self' to be floating point, got ", self.scalar_type());
}
void check_softmax_backward(const char* op, const Tensor& grad_output, const Tensor& output,
                            int64_t dim) {
  maybe_wrap_dim(dim, output.dim(), op);
  LAMELLA_CHECK(grad_output.sizes().equals(output.sizes()), op,
                ": expected 'grad_output' to have shape ", output.sizes(), ", got ",
                grad_output.sizes());
  LAMELLA_CHECK(grad_output.dtype() == output.dtype(), op,
                ": expected 'grad_output' to have dtype ", output.dtype(), ", got ",
                grad_output.dtype());
  LAMELLA_CHECK_NOT_IMPLEMENTED(output.is_floating_point() && !is_float8(output.scalar_type()), op,
                                ": expected 'output' to be floating point, got ",
                                output.scalar_type());
}
}  // namespace

namespace meta {
LAMELLA_META_FUNC(_softmax)(const Tensor& self, int64_t dim, bool half_to_float) {
  check_softmax("softmax", self, dim, half_to_float);
  set_output_raw_strided(0, self.sizes(), {}, self.options());
}
LAMELLA_META_FUNC(_log_softmax)(const Tensor& self, int64_t dim, bool half_to_float) {
  check_softmax("log_softmax", self, dim, half_to_float);
  set_output_raw_strided(0, self.sizes(), {}, self.options());
}
LAMELLA_META_FUNC(_softmax_backward_data)
(const Tensor& grad_output, const Tensor& output, int64_t dim, ScalarType input_dtype) {
  check_softmax_backward(op_name(), grad_output, output, dim);
  set_output_raw_strided(0, grad_output.sizes(), {}, grad_output.options().dtype(input_dtype));
}
LAMELLA_META_FUNC(_log_softmax_backward_data)
(const Tensor& grad_output, const Tensor& output, int64_t dim, ScalarType input_dtype) {
  check_softmax_backward(op_name(), grad_output, output, dim);
  set_output_raw_strided(0, grad_output.sizes(), {}, grad_output.options().dtype(input_dtype));
}
}  // namespace meta

namespace native {

namespace {
void softmax_into(const Tensor& self, int64_t dim, const Tensor& out, bool logarithm) {
  if (self.numel() == 0) return;
  dim = maybe_wrap_dim(dim, self.dim());
  Tensor x = self.contiguous();
  Tensor y = out.is_contiguous() ? out : new_tensor(out.sizes(), out.scalar_type(), out.device());
  int64_t size = x.dim() == 0 ? 1 : x.sizes()[static_cast<size_t>(dim)];
  int64_t inner = 1;
  for (int64_t d = dim + 1; d < x.dim(); ++d) inner *= x.sizes()[static_cast<size_t>(d)];
  if (x.device() != kCPU) {
    auto on_device = device_lines("softmax", x.device().type()).softmax;
    require_on_device(on_device(x, y, size, inner, logarithm), "softmax", x);
  } else {
    parallel_for(0, x.numel() / size, kGrainSize / 4 / size + 1, [&](int64_t begin, int64_t end) {
      softmax_on(kCPU, x.scalar_type(), x.const_data_ptr(), y.data_ptr(), size, inner, begin, end,
                 logarithm);
    });
  }
  if (!y.is_same(out)) out.copy_(y);
}
}  // namespace

LAMELLA_IMPL_FUNC(softmax_cpu)
(const Tensor& self, int64_t dim, bool half_to_float, const Tensor& out) {
  softmax_into(self, dim, out, false);
}
LAMELLA_IMPL_FUNC(log_softmax_cpu)
(const Tensor& self, int64_t dim, bool half_to_float, const Tensor& out) {
  softmax_into(self, dim, out, true);
}

namespace {
void softmax_backward_into(const Tensor& grad, const Tensor& output, int64_t dim, const Tensor& out,
                           bool logarithm) {
  if (output.numel() == 0) return;
  dim = maybe_wrap_dim(dim, output.dim());
  Tensor g = grad.contiguous(), y = output.contiguous();
  bool direct = out.is_contiguous() && out.scalar_type() == y.scalar_type();
  Tensor x = direct ? out : new_tensor(y.sizes(), y.scalar_type(), y.device());
  int64_t size = y.dim() == 0 ? 1 : y.sizes()[static_cast<size_t>(dim)];
  int64_t inner = 1;
  for (int64_t d = dim + 1; d < y.dim(); ++d) inner *= y.sizes()[static_cast<size_t>(d)];
  if (y.device() != kCPU) {
    auto on_device = device_lines("softmax_backward", y.device().type()).softmax_backward;
    require_on_device(on_device(g, y, x, size, inner, logarithm), "softmax_backward", y);
  } else {
    parallel_for(0, y.numel() / size, kGrainSize / 4 / size + 1, [&](int64_t begin, int64_t end) {
      softmax_backward_on(kCPU, y.scalar_type(), g.const_data_ptr(), y.const_data_ptr(),
                          x.data_ptr(), size, inner, begin, end, logarithm);
    });
  }
  if (!direct) out.copy_(x);
}
}  // namespace

LAMELLA_IMPL_FUNC(softmax_backward_cpu)
(const Tensor& grad_output, const Tensor& output, int64_t dim, ScalarType input_dtype,
 const Tensor& out) {
  softmax_backward_into(grad_output, output, dim, out, false);
}
LAMELLA_IMPL_FUNC(log_softmax_backward_cpu)
(const Tensor& grad_output, const Tensor& output, int64_t dim, ScalarType input_dtype,
 const Tensor& out) {
  softmax_backward_into(grad_output, output, dim, out, true);
}

}  // namespace native
}  // namespace lamella
