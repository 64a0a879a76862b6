// Defects: lost or wrong gradients.
#include "tests/opcheck/kernels.h"

namespace {

using lamella::AutoDispatchBelowAutograd;
using lamella::autograd::AutogradContext;
using lamella::autograd::Function;
using lamella::autograd::variable_list;
using opcheck::Tensor;

Tensor cubed(const Tensor& x) {
  return opcheck::map(x, [](double value) { return value * value * value; });
}
Tensor call_cubed(const char* name, const Tensor& x) {
  return lamella::Dispatcher::singleton()
      .findSchemaOrThrow(name, "")
      .typed<Tensor(const Tensor&)>()
      .call(x);
}

Tensor loses_its_gradient(const Tensor& x) {
  AutoDispatchBelowAutograd below;
  return call_cubed("defects::loses_its_gradient", x);
}

// Twice the square in the place of three times.
struct WrongFactor : Function<WrongFactor> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    AutoDispatchBelowAutograd below;
    ctx->save_for_backward({x});
    return call_cubed("defects::gradient_is_wrong", x);
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    Tensor x = ctx->get_saved_variables()[0];
    return {grads[0] * x * x * 2};
  }
};

// Right once, but what it computes with has no history.
struct Detached : Function<Detached> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    AutoDispatchBelowAutograd below;
    ctx->save_for_backward({x});
    return call_cubed("defects::second_gradient_is_wrong", x);
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    Tensor x = ctx->get_saved_variables()[0].detach();
    return {grads[0] * x * x * 3};
  }
};

Tensor product(const Tensor& x, const Tensor& y) {
  LAMELLA_CHECK(x.sizes() == y.sizes(), "forgets_an_input: expected 'y' to have the shape ",
                x.sizes(), ", got ", y.sizes());
  LAMELLA_CHECK(x.scalar_type() == y.scalar_type(), "forgets_an_input: expected 'y' to have dtype ",
                x.scalar_type(), ", got ", y.scalar_type());
  return (x.contiguous() * y.contiguous());
}
Tensor meta_of_product(const Tensor& x, const Tensor&) { return opcheck::fresh_like(x); }

struct ForgetsAnInput : Function<ForgetsAnInput> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& y) {
    AutoDispatchBelowAutograd below;
    ctx->save_for_backward({y});
    return product(x, y);
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    return {grads[0] * ctx->get_saved_variables()[0], Tensor()};
  }
};

// A composite kernel that does not see the tensors that layers put in the place of its own.
Tensor composite_reads(const Tensor& x) { return opcheck::doubled(x); }

}  // namespace

LAMELLA_LIBRARY_FRAGMENT(defects, m) {
  m.def("loses_its_gradient(Tensor x) -> Tensor");
  m.def("gradient_is_wrong(Tensor x) -> Tensor");
  m.def("second_gradient_is_wrong(Tensor x) -> Tensor");
  m.def("forgets_an_input(Tensor x, Tensor y) -> Tensor");
  m.def("composite_reads(Tensor x) -> Tensor");
}
LAMELLA_LIBRARY_IMPL(defects, CPU, m) {
  m.impl("loses_its_gradient", cubed);
  m.impl("gradient_is_wrong", cubed);
  m.impl("second_gradient_is_wrong", cubed);
  m.impl("forgets_an_input", product);
}
LAMELLA_LIBRARY_IMPL(defects, Meta, m) {
  m.impl("loses_its_gradient", opcheck::fresh_like);
  m.impl("gradient_is_wrong", opcheck::fresh_like);
  m.impl("second_gradient_is_wrong", opcheck::fresh_like);
  m.impl("forgets_an_input", meta_of_product);
}
LAMELLA_LIBRARY_IMPL(defects, Autograd, m) {
  m.impl("loses_its_gradient", loses_its_gradient);
  m.impl("gradient_is_wrong", [](const Tensor& x) -> Tensor { return WrongFactor::apply(x); });
  m.impl("second_gradient_is_wrong", [](const Tensor& x) -> Tensor { return Detached::apply(x); });
  m.impl("forgets_an_input",
         [](const Tensor& x, const Tensor& y) -> Tensor { return ForgetsAnInput::apply(x, y); });
}
LAMELLA_LIBRARY_IMPL(defects, CompositeImplicitAutograd, m) {
  m.impl("composite_reads", composite_reads);
}
