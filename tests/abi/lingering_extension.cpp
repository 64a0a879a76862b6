// A library that leaves objects with code behind: nodes, hooks, deleters and derivatives.
#include <lamella/lamella.h>

namespace {

using lamella::Tensor;
using lamella::autograd::AutogradContext;
using lamella::autograd::variable_list;

int64_t deleted = 0;

struct Twice : lamella::autograd::Function<Twice> {
  static Tensor forward(AutogradContext*, const Tensor& x) { return x * 2; }
  static variable_list backward(AutogradContext*, variable_list grads) { return {grads[0] * 2}; }
};

Tensor square(const Tensor& x) { return x * x; }
lamella_status square_backward(const lamella_backward* call) {
  Tensor x(lamella::TensorBase::borrow(call->saved[0].as.tensor));
  Tensor grad(lamella::TensorBase::borrow(call->grads[0]));
  call->results[0] = (x * 2 * grad).unsafe_release();
  return LAMELLA_OK;
}
constexpr uint16_t kSlots[] = {0};
constexpr lamella_saved kSaved[] = {{LAMELLA_SAVE_VALUE, 0, 0, 0, 1}};
constexpr lamella_derivative kSquare = [] {
  lamella_derivative made = {};
  made.name = "SquareBackward";
  made.backward = &square_backward;
  made.slots = kSlots;
  made.saved = kSaved;
  made.slot_count = 1;
  made.saved_count = 1;
  made.differentiable_returns = 1;
  return made;
}();

Tensor foreign(int64_t n) {
  float* data = new float[static_cast<size_t>(n)]();
  return lamella::from_blob(data, {n}, [](void* memory) {
    delete[] static_cast<float*>(memory);
    ++deleted;
  });
}
void hooked(const Tensor& x) {
  x.register_hook([](const Tensor& grad) { return grad * 10; });
}

}  // namespace

LAMELLA_LIBRARY(lingering, m) {
  m.def("twice(Tensor x) -> Tensor");
  m.def("square(Tensor x) -> Tensor");
  m.def("foreign(int n) -> Tensor", &foreign);
  m.def("hooked(Tensor x) -> ()", &hooked);
  m.def("deleted() -> int", [] { return deleted; });
  m.derivative("square", &kSquare);
}
LAMELLA_LIBRARY_IMPL(lingering, CPU, m) { m.impl("square", &square); }
LAMELLA_LIBRARY_IMPL(lingering, Autograd, m) {
  m.impl("twice", [](const Tensor& x) { return Twice::apply(x); });
}
