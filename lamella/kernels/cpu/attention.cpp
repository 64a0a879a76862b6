// Fused attention on the CPU.
#include <cmath>

#include "lamella/kernels/cpu/simd/attention.h"
#include "lamella/kernels/native.h"
#include "lamella/kernels/parallel.h"

namespace lamella::native {

LAMELLA_DEFINE_DISPATCH(attention_stub);

namespace {
void check_heads(const char* op, const Tensor& query, const Tensor& key, const Tensor& value) {
  auto fits = [&](const Tensor& t, int64_t rows, int64_t width) {
    return t.dim() == 4 && t.sizes()[0] == query.sizes()[0] && t.sizes()[1] == query.sizes()[1] &&
           (rows < 0 || t.sizes()[2] == rows) && (width < 0 || t.sizes()[3] == width) &&
           t.scalar_type() == query.scalar_type();
  };
  LAMELLA_CHECK(query.dim() == 4, op, ": expected 'query' to have 4 dimensions, got ",
                query.sizes());
  LAMELLA_CHECK(fits(key, -1, query.sizes()[3]), op, ": expected 'key' to be ", query.scalar_type(),
                " of shape [", query.sizes()[0], ", ", query.sizes()[1], ", *, ", query.sizes()[3],
                "], got ", key.scalar_type(), " ", key.sizes());
  LAMELLA_CHECK(fits(value, key.sizes()[2], -1), op, ": expected 'value' to be ",
                query.scalar_type(), " of shape [", query.sizes()[0], ", ", query.sizes()[1], ", ",
                key.sizes()[2], ", *], got ", value.scalar_type(), " ", value.sizes());
}
Tensor with_dense_rows(const Tensor& t) {
  Tensor wide = t.scalar_type() == kFloat ? t : t.to(kFloat);
  return wide.size(3) == 1 || wide.stride(3) == 1 ? wide : wide.contiguous();
}
// Numbers to add to the scores; a bool mask takes scores out where it is false.
Tensor additive_mask(const Tensor& mask, IntArrayRef shape, ScalarType dtype) {
  Tensor added = mask;
  if (mask.scalar_type() == kBool) {
    added = lamella::zeros(mask.sizes(), TensorOptions(dtype));
    added.masked_fill_(mask.logical_not(), Scalar(-HUGE_VAL));
  } else if (mask.scalar_type() != dtype) {
    added = mask.to(dtype);
  }
  return added.expand(shape);
}

// What the kernel computes, step by step: for float64, which it does not take.
std::tuple<Tensor, Tensor> attention_in_steps(const Tensor& query, const Tensor& key,
                                              const Tensor& value, bool is_causal,
                                              const Tensor& mask, double factor) {
  Tensor scores = lamella::matmul(query * Scalar(factor), key.transpose(-2, -1));
  if (is_causal) {
    Tensor seen = lamella::ones({query.size(2), key.size(2)}, query.options().dtype(kBool)).tril();
    scores.masked_fill_(seen.logical_not(), Scalar(-HUGE_VAL));
  }
  if (mask.defined()) scores.add_(mask);
  Tensor logsumexp = lamella::logsumexp(scores, {-1});
  // A row that sees no key gives zeros.
  Tensor none = logsumexp.eq(Scalar(-HUGE_VAL)).unsqueeze(-1);
  Tensor weights = (scores - logsumexp.unsqueeze(-1)).exp().masked_fill_(none, Scalar(0));
  return {lamella::matmul(weights, value).transpose(1, 2).contiguous().transpose(1, 2), logsumexp};
}
}  // namespace

std::tuple<Tensor, Tensor> _scaled_dot_product_flash_attention_for_cpu(
    const Tensor& query, const Tensor& key, const Tensor& value, double dropout_p, bool is_causal,
    const std::optional<Tensor>& attn_mask, std::optional<double> scale) {
  const char* op = "_scaled_dot_product_flash_attention_for_cpu";
  check_heads(op, query, key, value);
  LAMELLA_CHECK(query.is_floating_point(), op, ": expected 'query' to be floating point, got ",
                query.scalar_type());
  LAMELLA_CHECK(dropout_p == 0, op, ": expected 'dropout_p' to be 0, got ", dropout_p);
  int64_t batch = query.sizes()[0], heads = query.sizes()[1], rows = query.sizes()[2],
          width = query.sizes()[3], keys = key.sizes()[2], value_width = value.sizes()[3];
  // Heads stand innermost but one, so that joining them afterwards needs no copy.
  ScalarType sums = query.scalar_type() == kDouble ? kDouble : kFloat;
  Tensor out = new_tensor({batch, rows, heads, value_width}, sums, query.device()).transpose(1, 2);
  Tensor logsumexp = new_tensor({batch, heads, rows}, sums, query.device());
  bool has_mask = attn_mask && attn_mask->defined();
  const int64_t score_shape[4] = {batch, heads, rows, keys};
  if (has_mask) {
    LAMELLA_CHECK(is_expandable(attn_mask->sizes(), score_shape), op,
                  ": expected 'attn_mask' to be broadcastable to ", IntArrayRef(score_shape),
                  ", got ", attn_mask->sizes());
  }
  if (query.is_meta()) {
    return {query.scalar_type() == sums ? out : out.to(query.scalar_type()), logsumexp};
  }
  Tensor mask = has_mask ? additive_mask(*attn_mask, score_shape, sums) : Tensor();
  double given = scale.value_or(1.0 / std::sqrt(static_cast<double>(width)));
  if (sums == kDouble) return attention_in_steps(query, key, value, is_causal, mask, given);
  Tensor q = with_dense_rows(query), k = with_dense_rows(key), v = with_dense_rows(value);
  auto factor = static_cast<float>(given);
  int64_t blocks = (rows + kAttentionRows - 1) / kAttentionRows;
  int64_t work = kAttentionRows * keys * (width + value_width) + 1;
  parallel_for(0, batch * heads * blocks, (1 << 18) / work + 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t b = i / (heads * blocks), h = i / blocks % heads, block = i % blocks;
      auto at = [&](const Tensor& t) {
        return static_cast<float*>(t.data_ptr()) + b * t.strides()[0] + h * t.strides()[1];
      };
      AttentionHead head{at(q),
                         at(k),
                         at(v),
                         at(out),
                         logsumexp.mutable_data_ptr<float>() + (b * heads + h) * rows,
                         has_mask ? at(mask) : nullptr,
                         q.strides()[2],
                         k.strides()[2],
                         v.strides()[2],
                         out.strides()[2],
                         has_mask ? mask.strides()[2] : 0,
                         has_mask ? mask.strides()[3] : 0,
                         keys,
                         width,
                         value_width,
                         factor,
                         is_causal};
      int64_t first = block * kAttentionRows;
      int64_t last = first + kAttentionRows < rows ? first + kAttentionRows : rows;
      attention_stub(kCPU, head, first, last);
    }
  });
  return {query.scalar_type() == kFloat ? out : out.to(query.scalar_type()), logsumexp};
}

}  // namespace lamella::native
