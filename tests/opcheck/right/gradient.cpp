// Correct: gradients that are recorded and right.
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

struct Cube : Function<Cube> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    AutoDispatchBelowAutograd below;
    ctx->save_for_backward({x});
    return call_cubed("right::gradient_is_right", x);
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    Tensor x = ctx->get_saved_variables()[0];
    return {grads[0] * x * x * 3};
  }
};

// Its backward is no function of operators, and says so.
struct Once : Function<Once> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    AutoDispatchBelowAutograd below;
    ctx->save_for_backward({x});
    return call_cubed("right::first_gradient_only", x);
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    LAMELLA_CHECK_NOT_IMPLEMENTED(!grads[0].requires_grad(),
                                  "first_gradient_only: has no second gradient");
    Tensor x = ctx->get_saved_variables()[0].detach();
    return {grads[0] * x * x * 3};
  }
};

Tensor product(const Tensor& x, const Tensor& y) {
  LAMELLA_CHECK(x.sizes() == y.sizes(), "product: expected 'y' to have the shape ", x.sizes(),
                ", got ", y.sizes());
  LAMELLA_CHECK(x.scalar_type() == y.scalar_type(), "product: expected 'y' to have dtype ",
                x.scalar_type(), ", got ", y.scalar_type());
  return (x.contiguous() * y.contiguous());
}
Tensor meta_of_product(const Tensor& x, const Tensor&) { return opcheck::fresh_like(x); }

struct Product : Function<Product> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& y) {
    AutoDispatchBelowAutograd below;
    ctx->save_for_backward({x, y});
    return product(x, y);
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    variable_list saved = ctx->get_saved_variables();
    return {grads[0] * saved[1], grads[0] * saved[0]};
  }
};

// Only calls operators.
Tensor composite(const Tensor& x) { return (x * x).neg() + 1; }

}  // namespace

LAMELLA_LIBRARY_FRAGMENT(right, m) {
  m.def("has_no_gradient(Tensor x) -> Tensor");
  m.def("gradient_is_right(Tensor x) -> Tensor");
  m.def("first_gradient_only(Tensor x) -> Tensor");
  m.def("product(Tensor x, Tensor y) -> Tensor");
  m.def("composite(Tensor x) -> Tensor");
}
LAMELLA_LIBRARY_IMPL(right, CPU, m) {
  m.impl("has_no_gradient", cubed);
  m.impl("gradient_is_right", cubed);
  m.impl("first_gradient_only", cubed);
  m.impl("product", product);
}
LAMELLA_LIBRARY_IMPL(right, Meta, m) {
  m.impl("has_no_gradient", opcheck::fresh_like);
  m.impl("gradient_is_right", opcheck::fresh_like);
  m.impl("first_gradient_only", opcheck::fresh_like);
  m.impl("product", meta_of_product);
}
LAMELLA_LIBRARY_IMPL(right, Autograd, m) {
  m.impl("gradient_is_right", [](const Tensor& x) -> Tensor { return Cube::apply(x); });
  m.impl("first_gradient_only", [](const Tensor& x) -> Tensor { return Once::apply(x); });
  m.impl("product",
         [](const Tensor& x, const Tensor& y) -> Tensor { return Product::apply(x, y); });
}
LAMELLA_LIBRARY_IMPL(right, CompositeImplicitAutograd, m) { m.impl("composite", composite); }
