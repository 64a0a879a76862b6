// Rules for convolutions, embeddings and attention.
#include "lamella/core/checked_size.h"
#include "lamella/layers/vmap/rules_common.h"

namespace lamella::vmap {
namespace {

// ---- Convolution ------------------------------------------------------------------------------
//
// If all examples share the weight, the batch is joined with the samples. If each has its own, the
// batch is joined with the channels, and `batch` times as many groups keep the examples apart.

// [batch, N, C, ...] -> [batch * N, C, ...]
Tensor join_samples(const Tensor& x) { return x.flatten(0, 1); }
Tensor part_samples(const BatchedCall& call, const Tensor& x) {
  int64_t batch = call.batch_size();
  return x.unflatten(0, {batch, batch == 0 ? x.size(0) : x.size(0) / batch});
}
// [batch, N, C, ...] -> [N, batch * C, ...]
Tensor join_channels(const Tensor& x) { return x.transpose(0, 1).flatten(1, 2); }
Tensor part_channels(const BatchedCall& call, const Tensor& x) {
  int64_t batch = call.batch_size();
  return x.unflatten(1, {batch, batch == 0 ? x.size(1) : x.size(1) / batch}).transpose(0, 1);
}
// batch * count, checked for overflow.
int64_t for_all(const BatchedCall& call, int64_t count) {
  return (CheckedSize(count, call.plan().name.c_str()) * call.batch_size()).value();
}
// [batch, C, ...] -> [batch * C, ...]
Tensor join_parameters(const Tensor& x) { return x.flatten(0, 1); }

Tensor convolution(BatchedCall& call, In input, In weight, In bias, IntArrayRef stride,
                   IntArrayRef padding, IntArrayRef dilation, bool transposed,
                   IntArrayRef output_padding, int64_t groups) {
  Tensor result;
  if (!weight.batched) {
    Tensor x = input.batched ? join_samples(input.value) : input.value;
    std::optional<Tensor> common = bias.batched ? std::nullopt : or_none(bias.value);
    result = lamella::convolution(x, weight.value, common, stride, padding, dilation, transposed,
                                  output_padding, groups);
    result = input.batched ? part_samples(call, result) : front(call, {result, false});
    if (!bias.batched) return result;
  } else {
    result = lamella::convolution(join_channels(front(call, input)), join_parameters(weight.value),
                                  std::nullopt, stride, padding, dilation, transposed,
                                  output_padding, for_all(call, groups));
    result = part_channels(call, result);
  }
  if (!bias.defined()) return result;
  Sizes shape(static_cast<size_t>(result.dim()), 1);
  shape[2] = bias.size(0);
  shape[0] = bias.batched ? call.batch_size() : 1;
  return result.add(bias.value.reshape(shape));
}

std::tuple<Tensor, Tensor, Tensor> convolution_backward(BatchedCall& call, In grad_output, In input,
                                                        In weight, OptionalIntArrayRef,
                                                        IntArrayRef stride, IntArrayRef padding,
                                                        IntArrayRef dilation, bool transposed,
                                                        IntArrayRef output_padding, int64_t groups,
                                                        std::array<bool, 3> output_mask) {
  Tensor grad = front(call, grad_output), x = front(call, input);
  Tensor grad_input, grad_weight, grad_bias;
  if (output_mask[2]) {
    Sizes over{1};
    for (int64_t d = 3; d < grad.dim(); ++d) over.push_back(d);
    grad_bias = grad.sum(IntArrayRef(over));
  }
  bool by_groups = weight.batched || output_mask[1];
  if (output_mask[0] && !by_groups) {
    grad_input = std::get<0>(lamella::convolution_backward(
        join_samples(grad), join_samples(x), weight.value, std::nullopt, stride, padding, dilation,
        transposed, output_padding, groups, {true, false, false}));
    grad_input = part_samples(call, grad_input);
  } else if (output_mask[0] || output_mask[1]) {
    auto [gx, gw, gb] = lamella::convolution_backward(
        join_channels(grad), join_channels(x), join_parameters(front(call, weight)), std::nullopt,
        stride, padding, dilation, transposed, output_padding, for_all(call, groups),
        {output_mask[0], output_mask[1], false});
    if (output_mask[0]) grad_input = part_channels(call, gx);
    if (output_mask[1]) grad_weight = part_samples(call, gw);
  }
  return {grad_input, grad_weight, grad_bias};
}

// ---- Embedding --------------------------------------------------------------------------------
//
// The tables of all examples are joined into one, and each example's indices are offset by the
// first row of its own table.

Tensor in_joined_table(const BatchedCall& call, const Tensor& indices, int64_t rows) {
  Sizes shape(static_cast<size_t>(indices.dim()), 1);
  shape[0] = call.batch_size();
  Tensor starts = lamella::arange(call.batch_size(), TensorOptions(kLong).device(indices.device()));
  return indices.to(kLong).add(starts.mul(rows).view(shape));
}

Tensor embedding(BatchedCall& call, In weight, In indices, int64_t padding_idx,
                 bool scale_grad_by_freq, bool sparse) {
  LAMELLA_CHECK(weight.rank() == 2, "embedding: expected 'weight' to have 2 dimensions, got ",
                weight.sizes());
  // scale_grad_by_freq counts the uses of a row within an example, so no table is shared then.
  if (!weight.batched && !scale_grad_by_freq) {
    return lamella::embedding(weight.value, indices.value, padding_idx, false, sparse);
  }
  Tensor given = front(call, indices);
  Tensor picked = lamella::embedding(join_parameters(front(call, weight)),
                                     in_joined_table(call, given, weight.size(0)), -1,
                                     scale_grad_by_freq, sparse);
  if (padding_idx < 0) return picked;
  // The row for padding gets no gradient.
  return lamella::where(given.eq(padding_idx).unsqueeze(-1), picked.detach(), picked);
}

Tensor embedding_dense_backward(BatchedCall& call, In grad_output, In indices, int64_t num_weights,
                                int64_t padding_idx, bool scale_grad_by_freq) {
  Tensor given = front(call, indices), grad = front(call, grad_output);
  if (padding_idx >= 0) grad = grad.masked_fill(given.eq(padding_idx).unsqueeze(-1), 0);
  Tensor result =
      lamella::embedding_dense_backward(grad, in_joined_table(call, given, num_weights),
                                        for_all(call, num_weights), -1, scale_grad_by_freq);
  return result.view({call.batch_size(), num_weights, result.size(1)});
}

// ---- Attention --------------------------------------------------------------------------------

// An attention or dropout mask, expanded to the joined samples if it is batched or of rank 4.
Tensor joined_mask(BatchedCall& call, In query, In attn_mask) {
  if (!attn_mask.batched && !(attn_mask.defined() && attn_mask.rank() == 4)) return attn_mask.value;
  Tensor whole = front(call, attn_mask, 4);
  return join_samples(whole.expand(
      {call.batch_size(), query.size(0), whole.size(2), whole.size(3), whole.size(4)}));
}

std::tuple<Tensor, Tensor> flash_attention(BatchedCall& call, In query, In key, In value,
                                           double dropout_p, bool is_causal, In attn_mask,
                                           std::optional<double> scale, In dropout_mask) {
  LAMELLA_CHECK(query.rank() == 4 && key.rank() == 4 && value.rank() == 4,
                "_scaled_dot_product_flash_attention_for_cpu: expected 'query', 'key' and 'value' ",
                "to have 4 dimensions, got ", query.sizes(), ", ", key.sizes(), " and ",
                value.sizes());
  auto [out, logsumexp] = lamella::_scaled_dot_product_flash_attention_for_cpu(
      join_samples(front(call, query)), join_samples(front(call, key)),
      join_samples(front(call, value)), dropout_p, is_causal,
      or_none(joined_mask(call, query, attn_mask)), scale,
      or_none(joined_mask(call, query, dropout_mask)));
  return {part_samples(call, out), part_samples(call, logsumexp)};
}
std::tuple<Tensor, Tensor, Tensor> flash_attention_backward(
    BatchedCall& call, In grad_out, In query, In key, In value, In out, In logsumexp,
    double dropout_p, bool is_causal, In attn_mask, std::optional<double> scale, In dropout_mask) {
  LAMELLA_CHECK(
      query.rank() == 4 && key.rank() == 4 && value.rank() == 4,
      "_scaled_dot_product_flash_attention_for_cpu_backward: expected 'query', 'key' and ",
      "'value' to have 4 dimensions, got ", query.sizes(), ", ", key.sizes(), " and ",
      value.sizes());
  auto joined = [&](In tensor) { return join_samples(front(call, tensor)); };
  auto [dq, dk, dv] = lamella::_scaled_dot_product_flash_attention_for_cpu_backward(
      joined(grad_out), joined(query), joined(key), joined(value), joined(out), joined(logsumexp),
      dropout_p, is_causal, or_none(joined_mask(call, query, attn_mask)), scale,
      or_none(joined_mask(call, query, dropout_mask)));
  return {part_samples(call, dq), part_samples(call, dk), part_samples(call, dv)};
}

Tensor multinomial(BatchedCall& call, In self, int64_t num_samples, bool replacement,
                   std::optional<Generator> generator) {
  LAMELLA_CHECK(self.rank() == 1 || self.rank() == 2,
                "multinomial: expected 'self' to have 1 or 2 dimensions, got ", self.sizes());
  if (self.rank() < 2)
    return lamella::multinomial(front(call, self), num_samples, replacement, generator);
  return part_samples(call, lamella::multinomial(join_samples(front(call, self)), num_samples,
                                                 replacement, generator));
}

constexpr NamedRule kRules[] = {
    {"convolution", &typed<&convolution>},
    {"convolution_backward", &typed<&convolution_backward>},
    {"embedding", &typed<&embedding>},
    {"embedding_dense_backward", &typed<&embedding_dense_backward>},
    {"flash_attention", &typed<&flash_attention>},
    {"flash_attention_backward", &typed<&flash_attention_backward>},
    {"multinomial", &typed<&multinomial>},
};

}  // namespace

NamedRules nn_rules() { return kRules; }

}  // namespace lamella::vmap
