// Neural-network operators made of others: softmax, norms, embedding, dropout, attention, padding,
// similarity.
#include <cmath>
#include <limits>

#include "lamella/core/checked_size.h"
#include "lamella/kernels/native.h"

namespace lamella::native {

namespace {
bool has(const std::optional<Tensor>& tensor) { return tensor.has_value() && tensor->defined(); }
}  // namespace

Tensor softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype) {
  return lamella::_softmax(dtype ? self.to(*dtype) : self, dim, false);
}
Tensor log_softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype) {
  return lamella::_log_softmax(dtype ? self.to(*dtype) : self, dim, false);
}

// ---- Norms ----

Tensor layer_norm(const Tensor& input, IntArrayRef normalized_shape,
                  const std::optional<Tensor>& weight, const std::optional<Tensor>& bias,
                  double eps, bool cudnn_enable) {
  return std::get<0>(lamella::native_layer_norm(input, normalized_shape, weight, bias, eps));
}
namespace {
// As in PyTorch, the mean of the complex squares is taken, not that of their absolute values.
Tensor complex_rms_norm(const Tensor& input, IntArrayRef normalized_shape,
                        const std::optional<Tensor>& weight, std::optional<double> eps) {
  const char* op = "rms_norm";
  const size_t n = normalized_shape.size(), rank = input.sizes().size();
  LAMELLA_CHECK(n >= 1, op, ": expected 'normalized_shape' not to be empty");
  LAMELLA_CHECK(rank >= n && input.sizes().slice(rank - n).equals(normalized_shape), op,
                ": expected 'input' to end in the dimensions ", normalized_shape, ", got ",
                input.sizes());
  LAMELLA_CHECK(!has(weight) || weight->sizes().equals(normalized_shape), op,
                ": expected 'weight' to be of shape ", normalized_shape, ", got ", weight->sizes());
  Dims dims;
  for (size_t d = rank - n; d < rank; ++d) dims.push_back(static_cast<int64_t>(d));
  const double least = input.scalar_type() == kComplexDouble
                           ? std::numeric_limits<double>::epsilon()
                           : static_cast<double>(std::numeric_limits<float>::epsilon());
  const Tensor squares = input.mul(input).mean(IntArrayRef(dims), /*keepdim=*/true);
  const Tensor result = input.mul(squares.add(eps.value_or(least)).rsqrt());
  return has(weight) ? result.mul(*weight).to(input.scalar_type()) : result;
}
}  // namespace

Tensor rms_norm(const Tensor& input, IntArrayRef normalized_shape,
                const std::optional<Tensor>& weight, std::optional<double> eps) {
  if (input.is_complex()) return complex_rms_norm(input, normalized_shape, weight, eps);
  return std::get<0>(lamella::_fused_rms_norm(input, normalized_shape, weight, eps));
}

// ---- Embedding and dropout ----

Tensor embedding(const Tensor& weight, const Tensor& indices, int64_t padding_idx,
                 bool scale_grad_by_freq, bool sparse) {
  LAMELLA_CHECK(weight.dim() == 2, "embedding: expected 'weight' to have 2 dimensions, got ",
                weight.sizes());
  LAMELLA_CHECK(indices.scalar_type() == kLong || indices.scalar_type() == kInt,
                "embedding: expected 'indices' to be int64 or int32, got ", indices.scalar_type());
  if (indices.dim() == 1) return weight.index_select(0, indices);
  Dims shape(indices.sizes());
  shape.push_back(weight.sizes()[1]);
  return weight.index_select(0, indices.reshape({-1})).reshape(shape);
}

namespace {
void check_probability(const char* op, double p) {
  LAMELLA_CHECK(p >= 0 && p <= 1, op, ": expected 'p' in [0, 1], got ", p);
}
Tensor dropout_noise(const Tensor& input, double p,
                     std::optional<MemoryFormat> format = std::nullopt) {
  Tensor noise = lamella::empty_like(input, {}, format);
  noise.bernoulli_(1 - p);
  noise.div_(1 - p);
  return noise;
}
}  // namespace
Tensor dropout(const Tensor& input, double p, bool train) {
  check_probability("dropout", p);
  if (p == 0 || !train || input.numel() == 0) return input;
  if (p == 1) return input.mul(lamella::zeros({}, input.options()));
  if (input.is_cuda()) return std::get<0>(lamella::native_dropout(input, p, train));
  return input.mul(dropout_noise(input, p));
}
Tensor& dropout_(Tensor& self, double p, bool train) {
  check_probability("dropout_", p);
  if (p == 0 || !train || self.numel() == 0) return self;
  if (p == 1) return self.zero_();
  return self.mul_(dropout_noise(self, p));
}
std::tuple<Tensor, Tensor> native_dropout(const Tensor& input, double p,
                                          std::optional<bool> train) {
  check_probability("native_dropout", p);
  if (input.numel() == 0) return {input, lamella::empty_like(input, TensorOptions(kBool))};
  if (train && !*train) return {input.clone(), lamella::ones_like(input, TensorOptions(kBool))};
  Tensor mask = lamella::empty_like(input, TensorOptions(kBool));
  mask.bernoulli_(1 - p);
  double scale = p == 1 ? 0.0 : 1 / (1 - p);
  return {input.mul(mask).mul_(scale), mask};
}

// ---- Attention ----

namespace {
Tensor repeat_heads(const Tensor& tensor, int64_t heads) {
  int64_t have = tensor.size(-3);
  LAMELLA_CHECK(have > 0 && heads % have == 0,
                "scaled_dot_product_attention: expected the heads of 'query' to be a multiple of ",
                have, ", got ", heads);
  return have == heads ? tensor : tensor.repeat_interleave(heads / have, -3);
}
}  // namespace

std::tuple<Tensor, Tensor> _scaled_dot_product_attention_math(
    const Tensor& query, const Tensor& key, const Tensor& value,
    const std::optional<Tensor>& attn_mask, double dropout_p, bool is_causal,
    const std::optional<Tensor>& dropout_mask, std::optional<double> scale, bool enable_gqa) {
  Tensor k = enable_gqa ? repeat_heads(key, query.size(-3)) : key;
  Tensor v = enable_gqa ? repeat_heads(value, query.size(-3)) : value;
  double factor = scale.value_or(1.0 / std::sqrt(static_cast<double>(query.size(-1))));
  Tensor scores = lamella::matmul(query.mul(factor), k.transpose(-2, -1));
  if (is_causal) {
    LAMELLA_CHECK(!has(attn_mask), "scaled_dot_product_attention: expected no 'attn_mask' with ",
                  "'is_causal'");
    Tensor seen = lamella::ones({query.size(-2), k.size(-2)}, query.options().dtype(kBool)).tril();
    scores = scores.masked_fill(seen.logical_not(), Scalar(-HUGE_VAL));
  } else if (has(attn_mask)) {
    scores = attn_mask->scalar_type() == kBool
                 ? scores.masked_fill(attn_mask->logical_not(), Scalar(-HUGE_VAL))
                 : scores.add(*attn_mask);
  }
  // Queries whose keys are all masked get zeros, and no gradients that are NaN.
  Tensor nothing;
  if (has(attn_mask)) {
    nothing = scores.eq(Scalar(-HUGE_VAL)).all(-1, true);
    scores = scores.masked_fill(nothing, 0);
  }
  Tensor weights = lamella::softmax(scores, -1);
  if (nothing.defined()) weights = weights.masked_fill(nothing, 0);
  if (dropout_p > 0) {
    weights = has(dropout_mask)
                  ? weights.masked_fill(dropout_mask->logical_not(), 0).mul(1 / (1 - dropout_p))
                  : lamella::dropout(weights, dropout_p, true);
  }
  return {lamella::matmul(weights, v), weights};
}

Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const std::optional<Tensor>& attn_mask, double dropout_p,
                                    bool is_causal, std::optional<double> scale, bool enable_gqa) {
  const char* op = "scaled_dot_product_attention";
  LAMELLA_CHECK(query.dim() >= 2 && key.dim() >= 2 && value.dim() >= 2, op,
                ": expected 'query', 'key' and 'value' to have at least 2 dimensions, got ",
                query.sizes(), ", ", key.sizes(), " and ", value.sizes());
  LAMELLA_CHECK(
      query.scalar_type() == key.scalar_type() && query.scalar_type() == value.scalar_type(), op,
      ": expected 'query', 'key' and 'value' to be of one dtype, got ", query.scalar_type(), ", ",
      key.scalar_type(), " and ", value.scalar_type());
  LAMELLA_CHECK(key.size(-1) == query.size(-1), op, ": expected 'key' to be of shape [..., ",
                query.size(-1), "], got ", key.sizes());
  LAMELLA_CHECK(value.size(-2) == key.size(-2), op, ": expected 'value' to be of shape [..., ",
                key.size(-2), ", *], got ", value.sizes());
  LAMELLA_CHECK(!is_causal || !has(attn_mask), op, ": expected no 'attn_mask' with 'is_causal'");
  auto fit = [&](const Tensor& t) {
    return t.dim() == 4 && t.size(0) == query.size(0) && t.size(1) == key.size(1);
  };
  bool heads_fit =
      query.dim() == 4 && fit(key) && fit(value) && key.numel() != 0 &&
      (key.size(1) == query.size(1) || (enable_gqa && query.size(1) % key.size(1) == 0));
  // The kernels of devices "cuda" draw no random numbers.
  bool served = query.is_cpu() || (query.is_cuda() && dropout_p == 0 && query.size(-1) <= 256 &&
                                   value.size(-1) <= 256);
  // The fused kernel has no derivative for the mask.
  bool fused = served && heads_fit && query.numel() != 0 &&
               !(has(attn_mask) && attn_mask->requires_grad()) &&
               (query.scalar_type() == kFloat || query.scalar_type() == kBFloat16 ||
                query.scalar_type() == kHalf);
  if (fused) {
    std::optional<Tensor> noise;
    if (dropout_p > 0) {
      check_probability(op, dropout_p);
      // Laid out like the attention weights, so that dropout draws the same random numbers.
      const int64_t shape[4] = {query.size(0), query.size(1), query.size(2), key.size(2)};
      Tensor weights = query.select(-1, 0).unsqueeze(-1).expand(shape);
      noise = dropout_p == 1 ? lamella::zeros_like(weights)
                             : dropout_noise(weights, dropout_p, MemoryFormat::Contiguous);
    }
    return std::get<0>(lamella::_scaled_dot_product_flash_attention_for_cpu(
        query, key, value, dropout_p, is_causal, attn_mask, scale, noise));
  }
  return std::get<0>(lamella::_scaled_dot_product_attention_math(
      query, key, value, attn_mask, dropout_p, is_causal, std::nullopt, scale, enable_gqa));
}

// ---- Padding and similarity ----

namespace {
int64_t padded_size(const char* op, int64_t size, int64_t before, int64_t after) {
  return (CheckedSize(before, op) + after + size).value();
}
}  // namespace

Tensor constant_pad_nd(const Tensor& self, IntArrayRef pad, const Scalar& value) {
  LAMELLA_CHECK(pad.size() % 2 == 0 && static_cast<int64_t>(pad.size()) <= 2 * self.dim(),
                "constant_pad_nd: expected an even number of at most ", 2 * self.dim(),
                " entries in 'pad' for a tensor of ", self.sizes(), ", got ", pad);
  Dims shape(self.sizes());
  Tensor inside = self;
  size_t rank = shape.size();
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    size_t d = rank - 1 - i;
    int64_t before = pad[2 * i], after = pad[2 * i + 1], size = shape[d];
    shape[d] = padded_size("constant_pad_nd", size, before, after);
    // Negative padding cannot remove more elements at one side than there are.
    LAMELLA_CHECK(shape[d] >= 0 && before >= -size && after >= -size,
                  "constant_pad_nd: expected 'pad' to leave sizes of at least 0, got ", pad,
                  " for a tensor of ", self.sizes());
    // Negative padding removes elements.
    auto dim = static_cast<int64_t>(d);
    if (before < 0) inside = inside.narrow(dim, -before, inside.size(dim) + before);
    if (after < 0) inside = inside.narrow(dim, 0, inside.size(dim) + after);
  }
  Tensor out = lamella::empty(shape, self.options(), self.suggest_memory_format());
  out.fill_(value);
  Tensor window = out;
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    auto dim = static_cast<int64_t>(rank - 1 - i);
    int64_t before = pad[2 * i], after = pad[2 * i + 1];
    if (before > 0) window = window.narrow(dim, before, window.size(dim) - before);
    if (after > 0) window = window.narrow(dim, 0, window.size(dim) - after);
  }
  window.copy_(inside);
  return out;
}
Tensor _pad_circular(const Tensor& self, IntArrayRef pad) {
  const char* op = "_pad_circular";
  LAMELLA_CHECK(pad.size() % 2 == 0 && static_cast<int64_t>(pad.size()) + 4 >= 2 * self.dim() &&
                    static_cast<int64_t>(pad.size()) < 2 * self.dim(),
                op, ": expected two entries in 'pad' for each dimension behind the channels, got ",
                pad, " for a tensor of ", self.sizes());
  Tensor out = self;
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    int64_t dim = self.dim() - 1 - static_cast<int64_t>(i), size = self.size(dim);
    int64_t before = pad[2 * i], after = pad[2 * i + 1];
    LAMELLA_CHECK(before <= size && after <= size, op,
                  ": expected 'pad' not to wrap around more than once, got ", pad,
                  " for a tensor of ", self.sizes());
    LAMELLA_CHECK(padded_size(op, size, before, after) >= 0 && before >= -size && after >= -size,
                  op, ": expected 'pad' to leave sizes of at least 0, got ", pad,
                  " for a tensor of ", self.sizes());
    int64_t from = before < 0 ? -before : 0, to = size + (after < 0 ? after : 0);
    if (to - from != size) out = out.narrow(dim, from, to - from);
    std::vector<Tensor> parts;
    if (before > 0) parts.push_back(out.narrow(dim, to - from - before, before));
    parts.push_back(out);
    if (after > 0) parts.push_back(out.narrow(dim, 0, after));
    out = parts.size() == 1 ? parts[0] : lamella::cat(parts, dim);
  }
  return out.contiguous();
}
Tensor pad(const Tensor& self, IntArrayRef pad, std::string_view mode,
           std::optional<double> value) {
  if (mode == "constant") return lamella::constant_pad_nd(self, pad, value.value_or(0.0));
  LAMELLA_CHECK(!value.has_value() || *value == 0, "pad: expected no 'value' with mode '", mode,
                "', got ", *value);
  if (mode == "circular") return lamella::_pad_circular(self, pad);
  bool reflects = mode == "reflect";
  LAMELLA_CHECK_NOT_IMPLEMENTED(
      reflects || mode == "replicate",
      "pad: expected 'mode' to be constant, reflect, replicate or circular, got '", mode, "'");
  size_t spatial = pad.size() / 2;
  int64_t rank = self.dim();
  LAMELLA_CHECK_NOT_IMPLEMENTED(
      pad.size() % 2 == 0 && spatial >= 1 && spatial <= 3 &&
          (rank == static_cast<int64_t>(spatial) + 1 || rank == static_cast<int64_t>(spatial) + 2),
      "pad: expected two entries in 'pad' for each dimension behind the channels, got ", pad,
      " for a tensor of ", self.sizes());
  switch (spatial) {
    case 1:
      return reflects ? lamella::reflection_pad1d(self, pad)
                      : lamella::replication_pad1d(self, pad);
    case 2:
      return reflects ? lamella::reflection_pad2d(self, pad)
                      : lamella::replication_pad2d(self, pad);
    default:
      return reflects ? lamella::reflection_pad3d(self, pad)
                      : lamella::replication_pad3d(self, pad);
  }
}

Tensor cosine_similarity(const Tensor& x1, const Tensor& x2, int64_t dim, double eps) {
  ScalarType dtype = lamella::promote_types(x1.scalar_type(), x2.scalar_type());
  LAMELLA_CHECK(is_floating_point(dtype), "cosine_similarity: expected floating-point tensors, ",
                "got ", x1.scalar_type(), " and ", x2.scalar_type());
  auto unit = [&](const Tensor& x) {
    // The derivative of the norm is 0 at 0, where that of a square root is not finite.
    return x.div(lamella::linalg_vector_norm(x, 2, IntArrayRef(dim), true).clamp_min(eps));
  };
  broadcast_shapes(x1.sizes(), x2.sizes(), "cosine_similarity", "x2");
  // The dimension refers to the broadcast shape.
  std::vector<Tensor> both = lamella::broadcast_tensors({x1.to(dtype), x2.to(dtype)});
  return unit(both[0]).mul(unit(both[1])).sum(IntArrayRef(dim));
}

}  // namespace lamella::native
