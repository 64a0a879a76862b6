// Lowering rules of operators that make tensors from numbers.
#include "lamella/graph/lowering/lowering.h"

namespace lamella::hlo::lowering {
namespace {

Op filled(const Call& c, Number number) {
  return c.full(c.result().element_type(), c.sizes(), number);
}
// Uninitialized tensors are filled with zeros as well.
Ops zeros(Call& c) { return {filled(c, 0)}; }
Ops ones(Call& c) { return {filled(c, 1)}; }
Ops full(Call& c) { return {filled(c, c.number("fill_value"))}; }
Ops fill(Call& c) {
  c.set_type(c.result().element_type());
  return {c.in("value")};
}
Ops scalar_tensor(Call& c) { return {filled(c, c.number("s"))}; }

// start, start + step, ...
Ops arange(Call& c) {
  ElementType type = Call::wide(c.result().element_type());
  Number start = c.number("start", 0), step = c.number("step", 1);
  // Kernels compute floating-point steps in float64, so other floating-point ranges stay calls.
  bool whole = is_integral(type) && start.is_integer && step.is_integer;
  if (!whole && !(is_floating(type) && step.inexact.real() == 1 && start.inexact.real() == 0)) {
    return {};
  }
  Op at = c.iota(type, c.sizes(), 0);
  if (!whole) return {at};
  return {Add(Mul(at, c.like(at, step)), c.like(at, start))};
}
Ops eye(Call& c) {
  Sizes sizes = c.sizes();
  Op row = c.iota(ElementType::S64, sizes, 0), column = c.iota(ElementType::S64, sizes, 1);
  return {c.convert(Eq(row, column), c.result().element_type())};
}

const Rule kFactory[] = {
    {"aten::zeros", zeros},
    {"aten::zeros_like", zeros},
    {"aten::new_zeros", zeros},
    {"aten::zero", zeros},
    {"aten::empty", zeros},
    {"aten::empty_like", zeros},
    {"aten::empty_strided", zeros},
    {"aten::new_empty", zeros},
    {"aten::new_empty_strided", zeros},
    {"aten::ones", ones},
    {"aten::ones_like", ones},
    {"aten::new_ones", ones},
    {"aten::full", full},
    {"aten::full_like", full},
    {"aten::new_full", full},
    {"aten::fill", fill},
    {"aten::scalar_tensor", scalar_tensor},
    {"aten::arange", arange},
    {"aten::eye", eye},
};

}  // namespace

std::span<const Rule> factory_rules() { return kFactory; }

}  // namespace lamella::hlo::lowering
