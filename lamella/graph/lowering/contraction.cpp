// Lowering rules of products. Convolutions stay custom calls, because their kernels choose layouts
// and algorithms.
#include "lamella/graph/lowering/lowering.h"

namespace lamella::hlo::lowering {
namespace {

// The product of x and y converted to the result type. Products of 16-bit types are summed in
// float32.
Op product(const Call& c, Op x, Op y, const DotDimensionNumbers& numbers) {
  ElementType type = c.result().element_type();
  x = c.convert(x, type);
  y = c.convert(y, type);
  ElementType wide = Call::wide(type);
  return DotGeneral(x, y, numbers, nullptr,
                    wide == type ? std::nullopt : std::optional<PrimitiveType>(wide));
}
// Contracts the last dimension of x with dimension `contracted` of y; both have `batches` leading
// batch dimensions.
Op product(const Call& c, Op x, Op y, int64_t batches, int64_t contracted) {
  DotDimensionNumbers numbers;
  for (int64_t d = 0; d < batches; ++d) {
    numbers.add_lhs_batch_dimensions(d);
    numbers.add_rhs_batch_dimensions(d);
  }
  numbers.add_lhs_contracting_dimensions(c.rank_of(x) - 1);
  numbers.add_rhs_contracting_dimensions(contracted);
  return product(c, x, y, numbers);
}

// beta * self + alpha * product.
Ops with_sum(Call& c, Op made) {
  ElementType type = c.result().element_type();
  c.set_type(Call::wide(type));
  made = c.convert(made, c.type());
  Number alpha = c.number("alpha", 1), beta = c.number("beta", 1);
  if (alpha.inexact != complex<double>(1, 0)) made = Mul(made, c.fill(alpha));
  if (beta.inexact == complex<double>(0, 0)) return {made};
  Op given = c.in("self");
  if (beta.inexact != complex<double>(1, 0)) given = Mul(given, c.fill(beta));
  return {Add(made, given)};
}

Ops mm(Call& c) { return {product(c, c.op("self"), c.op("mat2"), 0, 0)}; }
Ops int_mm(Call& c) {
  DotDimensionNumbers numbers;
  numbers.add_lhs_contracting_dimensions(1);
  numbers.add_rhs_contracting_dimensions(0);
  return {DotGeneral(c.op("self"), c.op("mat2"), numbers, nullptr, c.result().element_type())};
}
Ops bmm(Call& c) { return {product(c, c.op("self"), c.op("mat2"), 1, 1)}; }
Ops mv(Call& c) { return {product(c, c.op("self"), c.op("vec"), 0, 0)}; }
Ops dot(Call& c) { return {product(c, c.op("self"), c.op("tensor"), 0, 0)}; }
Ops vdot(Call& c) { return {product(c, Conj(c.op("self")), c.op("other"), 0, 0)}; }
Ops addmm(Call& c) { return with_sum(c, product(c, c.op("mat1"), c.op("mat2"), 0, 0)); }
Ops addmv(Call& c) { return with_sum(c, product(c, c.op("mat"), c.op("vec"), 0, 0)); }
Ops baddbmm(Call& c) { return with_sum(c, product(c, c.op("batch1"), c.op("batch2"), 1, 1)); }
Ops addbmm(Call& c) {
  DotDimensionNumbers numbers;
  numbers.add_lhs_contracting_dimensions(0);
  numbers.add_lhs_contracting_dimensions(2);
  numbers.add_rhs_contracting_dimensions(0);
  numbers.add_rhs_contracting_dimensions(1);
  return with_sum(c, product(c, c.op("batch1"), c.op("batch2"), numbers));
}
Ops addr(Call& c) {
  ElementType type = Call::wide(c.result().element_type());
  Sizes sizes = c.sizes();
  Op x = BroadcastInDim(c.convert(c.op("vec1"), type), sizes, {0});
  Op y = BroadcastInDim(c.convert(c.op("vec2"), type), sizes, {1});
  return with_sum(c, Mul(x, y));
}
Ops linear(Call& c) {
  Op made = product(c, c.op("input"), c.op("weight"), 0, c.rank_of(c.op("weight")) - 1);
  if (!c.has("bias")) return {made};
  c.set_type(Call::wide(c.result().element_type()));
  return {Add(c.convert(made, c.type()), c.in("bias"))};
}

// The requested gradients of the input, the weight and the bias.
Ops linear_backward(Call& c) {
  Op x = c.op("self"), g = c.op("grad_output"), weight = c.op("weight");
  int64_t outer = c.rank_of(g) - 1;
  if (c.rank_of(weight) != 2 || c.rank_of(x) != outer + 1 || is_complex(c.type_of(g))) return {};
  std::vector<bool> mask = c.flags("output_mask");
  DotDimensionNumbers of_weight;
  Sizes rows;
  for (int64_t d = 0; d < outer; ++d) {
    of_weight.add_lhs_contracting_dimensions(d);
    of_weight.add_rhs_contracting_dimensions(d);
    rows.push_back(d);
  }
  Ops results;
  if (mask[0]) results.push_back(product(c, g, weight, 0, 0));
  if (mask[1]) results.push_back(product(c, g, x, of_weight));
  if (mask[2]) results.push_back(c.sum(c.convert(g, Call::wide(c.type_of(g))), rows));
  return results.size() == c.result_count() ? results : Ops();
}

const Rule kContraction[] = {
    {"aten::mm", mm},
    {"aten::_int_mm", int_mm},
    {"aten::bmm", bmm},
    {"aten::mv", mv},
    {"aten::dot", dot},
    {"aten::vdot", vdot},
    {"aten::addmm", addmm},
    {"aten::addmv", addmv},
    {"aten::baddbmm", baddbmm},
    {"aten::addbmm", addbmm},
    {"aten::addr", addr},
    {"aten::linear", linear},

    {"aten::linear_backward", linear_backward},
};

}  // namespace

std::span<const Rule> contraction_rules() { return kContraction; }

}  // namespace lamella::hlo::lowering
