// One operator, log(cosh(x)), with all that a framework asks for: kernels for the CPU, a form that
// writes a given tensor, the shape without numbers, a derivative, and words for vmap and autocast.
#include <lamella/lamella.h>

#include <cmath>

namespace {
using lamella::Tensor;

template <class T>
void loop(const T* from, T* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    // |x| + log(1 + exp(-2 |x|)) - log(2), which does not overflow.
    const T x = std::abs(from[i]);
    to[i] = x + std::log1p(std::exp(-2 * x)) - T(0.6931471805599453);
  }
}
Tensor& logcosh_out(const Tensor& x, Tensor& out) {
  LAMELLA_CHECK_TYPE(x.scalar_type() == lamella::kFloat || x.scalar_type() == lamella::kDouble,
                     "logcosh: expected 'x' to be float32 or float64, got ", x.scalar_type());
  LAMELLA_CHECK(out.is_contiguous() && out.sizes() == x.sizes(),
                "logcosh: expected 'out' to be contiguous, of shape ", x.sizes(), ", got ",
                out.sizes());
  const Tensor from = x.contiguous();
  if (x.scalar_type() == lamella::kDouble) {
    loop(from.const_data_ptr<double>(), out.mutable_data_ptr<double>(), x.numel());
  } else {
    loop(from.const_data_ptr<float>(), out.mutable_data_ptr<float>(), x.numel());
  }
  return out;
}
Tensor logcosh_meta(const Tensor& x) { return lamella::empty(x.sizes(), x.options()); }
Tensor logcosh(const Tensor& x) {
  Tensor out = logcosh_meta(x);
  return logcosh_out(x, out);
}

// Its derivative is tanh(x). Made of operators, it can be differentiated again.
lamella_status backward(const lamella_backward* call) {
  const Tensor grad(lamella::TensorBase::borrow(call->grads[0]));
  const Tensor x(lamella::TensorBase::borrow(call->saved[0].as.tensor));
  call->results[0] = (grad * x.tanh()).unsafe_release();
  return LAMELLA_OK;
}
constexpr uint16_t kSlots[] = {0};
constexpr lamella_saved kSaved[] = {{LAMELLA_SAVE_VALUE, 0, 0, 0, 1}};
constexpr lamella_derivative kDerivative = [] {
  lamella_derivative made = {};
  made.name = "LogcoshBackward";
  made.backward = &backward;
  made.slots = kSlots;
  made.slot_count = 1;
  made.saved = kSaved;
  made.saved_count = 1;
  made.differentiable_returns = 1;
  made.flags = LAMELLA_FORWARD_ELEMENTWISE;  // tangents by the same formula
  return made;
}();
}  // namespace

LAMELLA_LIBRARY(one_binary, m) {
  m.def("logcosh(Tensor x) -> Tensor", "batching:pointwise,autocast:float32");
  m.def("logcosh.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)");
  m.derivative("logcosh", &kDerivative);
}
LAMELLA_LIBRARY_IMPL(one_binary, CPU, m) {
  m.impl("logcosh", logcosh);
  m.impl("logcosh.out", logcosh_out);
}
LAMELLA_LIBRARY_IMPL(one_binary, Meta, m) {
  m.impl("logcosh", logcosh_meta);
  m.impl("logcosh.out", [](const Tensor&, Tensor& out) -> Tensor& { return out; });
}
