// Lowering rules of normalisations and their gradients.
#include <algorithm>
#include <limits>
#include <numeric>

#include "lamella/graph/lowering/lowering.h"

namespace lamella::hlo::lowering {
namespace {

Op wide(const Call& c, const char* name, ElementType type) { return c.convert(c.op(name), type); }

double count_of(const Sizes& sizes, const Sizes& dims) {
  double count = 1;
  for (int64_t d : dims) count *= static_cast<double>(sizes[static_cast<size_t>(d)]);
  return count;
}
Op mean_of(const Call& c, Op x, const Sizes& dims) {
  Op sum = c.sum(x, dims);
  return Div(sum, c.like(sum, count_of(c.sizes_of(x), dims)));
}
// Powers of two by which rows are multiplied whose squares leave the type's range, and their
// bounds.
struct Range {
  double large, shrink, small, grow, least;
};
Range range_of(ElementType type) {
  if (type == ElementType::F64) return {0x1p400, 0x1p-900, 0x1p-400, 0x1p800, 0x1p-1022};
  return {0x1p40, 0x1p-100, 0x1p-50, 0x1p90, 0x1p-126};
}
// (x - mean) / sqrt(variance + eps), with the mean and 1 / sqrt(...). Rows of huge numbers, and of
// tiny ones beside a tiny eps, are normalised times a power of two, as by the kernels.
struct Normal {
  Op y, mean, rstd, variance;
};
Normal normalized(const Call& c, Op x, const Sizes& dims, double eps, bool centred = true) {
  Sizes sizes = c.sizes_of(x);
  Range range = range_of(c.type_of(x));
  Op top = c.maximum(Abs(x), dims);
  Op scale = c.like(top, 1), back = scale, scaled_eps = c.like(top, eps);
  auto rescale = [&](Op where, double by) {
    double wanted = eps * by * by;
    if (eps > 0) wanted = std::max(wanted, range.least);
    scale = Select(where, c.like(top, by), scale);
    back = Select(where, c.like(top, 1 / by), back);
    scaled_eps = Select(where, c.like(top, wanted), scaled_eps);
  };
  Op infinity = c.like(top, std::numeric_limits<double>::infinity());
  rescale(And(Gt(top, c.like(top, range.large)), Lt(top, infinity)), range.shrink);
  bool has_tiny_eps = eps < range.small * range.small * 0x1p20;
  if (has_tiny_eps) rescale(Lt(top, c.like(top, range.small)), range.grow);
  Normal n;
  // Beside another eps what a fixed scale loses of tiny numbers is nothing, and the sum needs no
  // pass of its own after that for the largest number.
  if (centred && !has_tiny_eps) {
    n.mean = Mul(mean_of(c, Mul(x, c.like(x, 0x1p-32)), dims), c.like(top, 0x1p32));
  }
  x = Mul(x, c.broadcast_back(scale, dims, sizes));
  if (centred) {
    Op mean = has_tiny_eps ? mean_of(c, x, dims) : Mul(n.mean, scale);
    if (has_tiny_eps) n.mean = Mul(mean, back);
    x = Sub(x, c.broadcast_back(mean, dims, sizes));
  }
  n.variance = mean_of(c, Mul(x, x), dims);
  n.rstd = Rsqrt(Add(n.variance, scaled_eps));
  n.y = Mul(x, c.broadcast_back(n.rstd, dims, sizes));
  n.variance = Mul(Mul(n.variance, back), back);
  n.rstd = Mul(n.rstd, scale);
  return n;
}
Sizes last_dims(int64_t rank, size_t count) {
  Sizes dims(count);
  std::iota(dims.begin(), dims.end(), rank - static_cast<int64_t>(count));
  return dims;
}

Ops layer_norm(Call& c) {
  ElementType type = Call::wide(c.result().element_type());
  Op x = wide(c, "input", type);
  if (c.shape(x).elements() == 0) return {};
  Sizes dims = last_dims(c.rank_of(x), c.integers("normalized_shape").size());
  Normal n = normalized(c, x, dims, c.real("eps"));
  Op y = n.y;
  if (c.has("weight")) y = Mul(y, c.broadcast(wide(c, "weight", type), c.sizes()));
  if (c.has("bias")) y = Add(y, c.broadcast(wide(c, "bias", type), c.sizes()));
  return {y, c.reshape(n.mean, c.sizes(1)), c.reshape(n.rstd, c.sizes(2))};
}
Ops rms_norm(Call& c) {
  ElementType type = Call::wide(c.result().element_type());
  Op x = wide(c, "input", type);
  if (c.shape(x).elements() == 0 || !c.has("eps")) return {};
  Sizes dims = last_dims(c.rank_of(x), c.integers("normalized_shape").size());
  Normal n = normalized(c, x, dims, c.real("eps"), false);
  Op y = n.y;
  if (c.has("weight")) y = Mul(y, c.broadcast(wide(c, "weight", type), c.sizes()));
  return {y, c.reshape(n.rstd, c.sizes(1))};
}
// Broadcasts an argument with one element per feature; features are dimension 1.
Op by_feature(const Call& c, const char* name, ElementType type) {
  return BroadcastInDim(wide(c, name, type), c.sizes(), {1});
}
Op scaled(const Call& c, Op y, ElementType type) {
  if (c.has("weight")) y = Mul(y, by_feature(c, "weight", type));
  if (c.has("bias")) y = Add(y, by_feature(c, "bias", type));
  return y;
}
Ops group_norm(Call& c) {
  ElementType type = Call::wide(c.result().element_type());
  Op x = wide(c, "input", type);
  if (c.shape(x).elements() == 0) return {};
  int64_t groups = c.integer("group"), batch = c.integer("N");
  Normal n = normalized(c, Reshape(x, {batch, groups, -1}), {2}, c.real("eps"));
  return {scaled(c, c.reshape(n.y, c.sizes()), type), c.reshape(n.mean, c.sizes(1)),
          c.reshape(n.rstd, c.sizes(2))};
}
Sizes all_but_features(int64_t rank) {
  Sizes dims{0};
  for (int64_t d = 2; d < rank; ++d) dims.push_back(d);
  return dims;
}
// The updated running statistics of training: (1 - momentum) old + momentum new, where the variance
// is unbiased. They are results after the operator's own.
Op moved(const Call& c, const char* name, Op now, ElementType type) {
  double momentum = c.real("momentum", 0.1);
  Op before = wide(c, name, type);
  return Add(Mul(before, c.like(before, 1 - momentum)), Mul(now, c.like(now, momentum)));
}
Ops batch_norm(Call& c) {
  ElementType type = Call::wide(c.result().element_type());
  Op x = wide(c, "input", type);
  if (c.shape(x).elements() == 0) return {};
  if (c.flag("training")) {
    Sizes dims = all_but_features(c.rank_of(x));
    Normal n = normalized(c, x, dims, c.real("eps"));
    Ops results{scaled(c, n.y, type), c.reshape(n.mean, c.sizes(1)), c.reshape(n.rstd, c.sizes(2))};
    if (!c.has("running_mean")) return results;
    double count = count_of(c.sizes_of(x), dims);
    Op unbiased = Mul(n.variance, c.like(n.variance, count / (count - 1)));
    results.push_back(moved(c, "running_mean", n.mean, type));
    results.push_back(moved(c, "running_var", unbiased, type));
    return results;
  }
  if (!c.has("running_mean") || !c.has("running_var")) return {};
  Op variance = wide(c, "running_var", type);
  Op rstd = Rsqrt(Add(variance, c.like(variance, c.real("eps"))));
  Op gap = Sub(x, by_feature(c, "running_mean", type));
  Op y = Mul(gap, BroadcastInDim(rstd, c.sizes(), {1}));
  Ops results{scaled(c, y, type)};
  for (size_t i = 1; i < c.result_count(); ++i) {
    if (c.result(i).elements() != 0) return {};
    results.push_back(c.full(c.result(i).element_type(), c.sizes(i), 0));
  }
  return results;
}

// ---- Gradients ----------------------------------------------------------------------------------

// Selects the gradients that `output_mask` requests.
Ops asked(const Call& c, const Ops& all) {
  std::vector<bool> mask = c.flags("output_mask");
  Ops results;
  for (size_t i = 0; i < all.size() && i < mask.size(); ++i) {
    if (mask[i] && all[i].valid()) results.push_back(all[i]);
  }
  if (results.size() != c.result_count()) return {};
  for (size_t i = 0; i < results.size(); ++i) results[i] = c.reshape(results[i], c.sizes(i));
  return results;
}
// The gradient through y = (x - mean) rstd, whose mean and variance are taken over `dims`:
// rstd (g - mean(g) - y mean(g y)). Without a mean, as in RMS norm, the term mean(g) is omitted.
Op through(const Call& c, Op g, Op y, Op rstd, const Sizes& dims, bool with_mean) {
  Sizes sizes = c.sizes_of(g);
  Op second = Mul(y, c.broadcast_back(mean_of(c, Mul(g, y), dims), dims, sizes));
  Op rest = Sub(g, second);
  if (with_mean) rest = Sub(rest, c.broadcast_back(mean_of(c, g, dims), dims, sizes));
  return Mul(rstd, rest);
}
Ops last_norm_backward(Call& c, bool with_mean) {
  Op input = c.op("input");
  ElementType type = Call::wide(c.type_of(input));
  Sizes sizes = c.sizes_of(input);
  if (c.shape(input).elements() == 0) return {};
  size_t inner = c.integers("normalized_shape").size();
  Sizes dims = last_dims(static_cast<int64_t>(sizes.size()), inner);
  Sizes outer(sizes.size() - inner);
  std::iota(outer.begin(), outer.end(), 0);
  Op x = c.convert(input, type), g = wide(c, "grad_out", type);
  Op rstd = c.broadcast(wide(c, "rstd", type), sizes);
  if (with_mean) x = Sub(x, c.broadcast(wide(c, "mean", type), sizes));
  Op y = Mul(x, rstd);
  Op scaled = c.has("weight") ? Mul(g, c.broadcast(wide(c, "weight", type), sizes)) : g;
  Ops all{through(c, scaled, y, rstd, dims, with_mean), c.sum(Mul(g, y), outer)};
  if (with_mean) all.push_back(c.sum(g, outer));
  return asked(c, all);
}
Ops layer_norm_backward(Call& c) { return last_norm_backward(c, true); }
Ops rms_norm_backward(Call& c) { return last_norm_backward(c, false); }
Ops batch_norm_backward(Call& c) {
  Op input = c.op("input");
  ElementType type = Call::wide(c.type_of(input));
  Sizes sizes = c.sizes_of(input), dims = all_but_features(c.rank_of(input));
  if (c.shape(input).elements() == 0) return {};
  bool trains = c.flag("train");
  if (!trains && !c.has("running_var")) return {};
  auto spread = [&](Op op) { return BroadcastInDim(op, sizes, {1}); };
  Op mean = wide(c, trains ? "save_mean" : "running_mean", type);
  Op rstd = wide(c, trains ? "save_invstd" : "running_var", type);
  if (!trains) rstd = Rsqrt(Add(rstd, c.like(rstd, c.real("eps"))));
  Op g = wide(c, "grad_out", type);
  Op y = Mul(Sub(c.convert(input, type), spread(mean)), spread(rstd));
  Op scaled = c.has("weight") ? Mul(g, spread(wide(c, "weight", type))) : g;
  Op of_input =
      trains ? through(c, scaled, y, spread(rstd), dims, true) : Mul(scaled, spread(rstd));
  return asked(c, {of_input, c.sum(Mul(g, y), dims), c.sum(g, dims)});
}

const Rule kNormalization[] = {
    {"aten::native_layer_norm", layer_norm},
    {"aten::native_layer_norm_backward", layer_norm_backward},
    {"aten::native_batch_norm_backward", batch_norm_backward},
    {"aten::_fused_rms_norm", rms_norm},
    {"aten::_fused_rms_norm_backward", rms_norm_backward},
    {"aten::native_group_norm", group_norm},
    {"aten::native_batch_norm", batch_norm},
    {"aten::_native_batch_norm_legit_no_training", batch_norm},
    {"aten::_native_batch_norm_legit", batch_norm},
};

}  // namespace

std::span<const Rule> normalization_rules() { return kNormalization; }

}  // namespace lamella::hlo::lowering
