// Lowering rules of reductions, scans and softmax. Sums of 16-bit types are computed in float32.
#include <algorithm>
#include <limits>

#include "lamella/graph/lowering/lowering.h"

namespace lamella::hlo::lowering {
namespace {

Op self(const Call& c) { return c.op("self"); }
Sizes dims_of(const Call& c) { return c.dimensions("dim", c.rank_of(self(c))); }
// The operand, converted to the type in which sums are computed.
Op wide_self(const Call& c) { return c.convert(self(c), Call::wide(c.result().element_type())); }
Op shaped(const Call& c, Op op, size_t i = 0) { return c.reshape(op, c.sizes(i)); }
double count_of(const Call& c, Op x, const Sizes& dims) {
  double count = 1;
  for (int64_t d : dims) count *= static_cast<double>(c.sizes_of(x)[static_cast<size_t>(d)]);
  return count;
}

Op mean_of(const Call& c, Op x, const Sizes& dims) {
  Op sum = c.sum(x, dims);
  return Div(sum, c.like(sum, count_of(c, x, dims)));
}

Ops sum(Call& c) { return {shaped(c, c.sum(wide_self(c), dims_of(c)))}; }
Ops mean(Call& c) { return {shaped(c, mean_of(c, wide_self(c), dims_of(c)))}; }
Ops prod(Call& c) {
  Op x = wide_self(c);
  ElementType type = c.type_of(x);
  return {shaped(c, Reduce(x, One(c.builder(), type),
                           CreateScalarMultiplyComputation(type, c.builder()), dims_of(c)))};
}
Op minimum(const Call& c, Op x, const Sizes& dims) {
  ElementType type = c.type_of(x);
  return Reduce(x, MaxValue(c.builder(), type), CreateScalarMinComputation(type, c.builder()),
                dims);
}
bool is_ordered(const Call& c) {
  ElementType type = c.type_of(self(c));
  return is_floating(type) || is_integral(type);
}
template <bool kMax>
Ops extreme(Call& c) {
  if (!is_ordered(c)) return {};
  return {shaped(c, kMax ? c.maximum(self(c), dims_of(c)) : minimum(c, self(c), dims_of(c)))};
}

// The index of the first element that equals `extreme` or is NaN.
Op first_place(const Call& c, Op x, Op extreme, int64_t dim) {
  Sizes sizes = c.sizes_of(x);
  Op spread = c.broadcast_back(extreme, {dim}, sizes);
  Op found = Eq(x, spread);
  if (is_floating(c.type_of(x))) found = Or(found, IsNan(x));
  Op none = c.full(ElementType::S64, sizes, sizes[static_cast<size_t>(dim)]);
  return minimum(c, Select(found, c.iota(ElementType::S64, sizes, dim), none), {dim});
}
// max and min of two tensors, of all elements, or with indices along one dimension (max.dim,
// min.dim).
template <bool kMax>
Ops extreme_or_other(Call& c) {
  if (c.has("other")) {
    return {kMax ? Max(c.in("self"), c.in("other")) : Min(c.in("self"), c.in("other"))};
  }
  if (c.result_count() == 1) return extreme<kMax>(c);
  if (!is_ordered(c) || c.rank_of(self(c)) == 0) return {};
  int64_t dim = c.dimension("dim", c.rank_of(self(c)));
  Op value = kMax ? c.maximum(self(c), {dim}) : minimum(c, self(c), {dim});
  return {shaped(c, value), shaped(c, first_place(c, self(c), value, dim), 1)};
}
template <bool kMax>
Ops place(Call& c) {
  if (!is_ordered(c)) return {};
  Op x = self(c);
  int64_t dim = 0;
  if (!c.has("dim") || c.rank_of(x) == 0) {
    x = Reshape(x, {c.shape(x).elements()});
  } else {
    dim = c.dimension("dim", c.rank_of(x));
  }
  Op value = kMax ? c.maximum(x, {dim}) : minimum(c, x, {dim});
  return {shaped(c, first_place(c, x, value, dim))};
}

template <bool kAll>
Ops truth(Call& c) {
  Op x = c.convert(self(c), ElementType::PRED);
  Op start = c.constant(ElementType::PRED, kAll);
  BuiltComputation body = kAll ? CreateScalarAndComputation(ElementType::PRED, c.builder())
                               : CreateScalarOrComputation(ElementType::PRED, c.builder());
  // An empty list means no dimensions here; for other reductions it means all.
  bool none = c.has("dim") && c.integers("dim").empty();
  return {none ? x : shaped(c, Reduce(x, start, body, dims_of(c)))};
}
Ops count_nonzero(Call& c) {
  Op x = c.convert(c.convert(self(c), ElementType::PRED), ElementType::S64);
  return {shaped(c, c.sum(x, dims_of(c)))};
}

// ---- Moments and norms --------------------------------------------------------------------------

double correction_of(const Call& c) {
  return c.has("correction") ? c.real("correction") : c.flag("unbiased", true) ? 1 : 0;
}
template <bool kRoot, bool kWithMean>
Ops variance(Call& c) {
  if (!is_floating(c.type_of(self(c)))) return {};
  Op x = wide_self(c);
  Sizes dims = dims_of(c);
  Op mean = mean_of(c, x, dims);
  Op gap = Sub(x, c.broadcast_back(mean, dims, c.sizes_of(x)));
  double count = count_of(c, x, dims) - correction_of(c);
  Op squares = c.sum(Mul(gap, gap), dims);
  Op made = Div(squares, c.like(squares, std::max(count, 0.0)));
  if (kRoot) made = Sqrt(made);
  return kWithMean ? Ops{shaped(c, made), shaped(c, mean, 1)} : Ops{shaped(c, made)};
}

Ops norm(Call& c) {
  Op x = self(c);
  if (is_complex(c.type_of(x)) || !is_floating(c.result().element_type())) return {};
  x = Abs(wide_self(c));
  Sizes dims = dims_of(c);
  double order = c.has("ord") ? c.real("ord") : c.real("p", 2);
  Op made;
  if (order == 2) {
    made = Sqrt(c.sum(Mul(x, x), dims));
  } else if (order == 1) {
    made = c.sum(x, dims);
  } else if (order == 0) {
    made = c.sum(c.convert(c.convert(x, ElementType::PRED), c.type_of(x)), dims);
  } else if (order == std::numeric_limits<double>::infinity()) {
    if (c.result().elements() != 0 && c.shape(x).elements() == 0) return {};
    made = Max(c.maximum(x, dims), c.constant(c.type_of(x), 0));
  } else if (order == -std::numeric_limits<double>::infinity()) {
    made = minimum(c, x, dims);
  } else {
    Op powers = c.sum(Pow(x, c.like(x, order)), dims);
    made = Pow(powers, c.like(powers, 1 / order));
  }
  return {shaped(c, made)};
}

// ---- Softmax ------------------------------------------------------------------------------------

Sizes one_dim(const Call& c) { return {c.dimension("dim", c.rank_of(self(c)))}; }
Ops softmax(Call& c) {
  Op x = wide_self(c);
  if (c.rank_of(x) == 0) return {};
  Sizes dims = one_dim(c), sizes = c.sizes_of(x);
  Op power = Exp(Sub(x, c.broadcast_back(c.maximum(x, dims), dims, sizes)));
  return {Div(power, c.broadcast_back(c.sum(power, dims), dims, sizes))};
}
Ops log_softmax(Call& c) {
  Op x = wide_self(c);
  if (c.rank_of(x) == 0) return {};
  Sizes dims = one_dim(c), sizes = c.sizes_of(x);
  Op shifted = Sub(x, c.broadcast_back(c.maximum(x, dims), dims, sizes));
  Op total = Log(c.sum(Exp(shifted), dims));
  return {Sub(shifted, c.broadcast_back(total, dims, sizes))};
}
template <bool kLog>
Ops softmax_backward(Call& c) {
  ElementType type = Call::wide(c.type_of(c.op("output")));
  Op g = c.convert(c.op("grad_output"), type), y = c.convert(c.op("output"), type);
  if (c.rank_of(y) == 0) return {};
  Sizes dims{c.dimension("dim", c.rank_of(y))}, sizes = c.sizes_of(y);
  if (kLog) return {Sub(g, Mul(Exp(y), c.broadcast_back(c.sum(g, dims), dims, sizes)))};
  Op product = Mul(g, y);
  return {Sub(product, Mul(y, c.broadcast_back(c.sum(product, dims), dims, sizes)))};
}
Ops logsumexp(Call& c) {
  if (!is_floating(c.type_of(self(c)))) return {};
  Op x = wide_self(c);
  Sizes dims = dims_of(c);
  if (c.shape(x).elements() == 0) return {};
  Op top = c.maximum(x, dims);
  // infinity - infinity would be NaN, so an infinite maximum is not subtracted.
  Op shift = Select(IsInf(top), c.like(top, 0), top);
  Op power = Exp(Sub(x, c.broadcast_back(shift, dims, c.sizes_of(x))));
  return {shaped(c, Add(Log(c.sum(power, dims)), shift))};
}

// ---- Scans --------------------------------------------------------------------------------------

// A scan as a reduction over windows that reach back to the first element of the dimension.
template <bool kProduct>
Ops scan(Call& c) {
  Op x = wide_self(c);
  int64_t rank = c.rank_of(x);
  if (rank == 0 || c.shape(x).elements() == 0) return {x};
  auto dim = static_cast<size_t>(c.dimension("dim", rank));
  Sizes window(static_cast<size_t>(rank), 1);
  std::vector<std::pair<int64_t, int64_t>> padding(static_cast<size_t>(rank), {0, 0});
  window[dim] = c.sizes_of(x)[dim];
  padding[dim] = {window[dim] - 1, 0};
  // Long scans stay calls, because the work of windows is quadratic in the length.
  if (window[dim] > 64) return {};
  ElementType type = c.type_of(x);
  Sizes ones(static_cast<size_t>(rank), 1);
  Op start = c.constant(type, kProduct ? 1 : 0);
  BuiltComputation body = kProduct ? CreateScalarMultiplyComputation(type, c.builder())
                                   : CreateScalarAddComputation(type, c.builder());
  return {ReduceWindowWithGeneralPadding(x, start, body, window, ones, ones, ones, padding)};
}

const Rule kReduction[] = {
    {"aten::sum", sum},
    {"aten::mean", mean},
    {"aten::prod", prod},
    {"aten::amax", extreme<true>},
    {"aten::amin", extreme<false>},
    {"aten::max", extreme_or_other<true>},
    {"aten::min", extreme_or_other<false>},
    {"aten::argmax", place<true>},
    {"aten::argmin", place<false>},
    {"aten::all", truth<true>},
    {"aten::any", truth<false>},
    {"aten::count_nonzero", count_nonzero},
    {"aten::var", variance<false, false>},
    {"aten::std", variance<true, false>},
    {"aten::var_mean", variance<false, true>},
    {"aten::std_mean", variance<true, true>},
    {"aten::linalg_vector_norm", norm},
    {"aten::norm", norm},
    {"aten::logsumexp", logsumexp},
    {"aten::_softmax", softmax},
    {"aten::_log_softmax", log_softmax},
    {"aten::_softmax_backward_data", softmax_backward<false>},
    {"aten::_log_softmax_backward_data", softmax_backward<true>},
    {"aten::cumsum", scan<false>},
    {"aten::cumprod", scan<true>},
};

}  // namespace

std::span<const Rule> reduction_rules() { return kReduction; }

}  // namespace lamella::hlo::lowering
