// Fused attention on the CPU.
#include <algorithm>
#include <cmath>

#include "lamella/core/interrupt.h"
#include "lamella/kernels/cpu/simd/attention.h"
#include "lamella/kernels/machine_code.h"
#include "lamella/kernels/native.h"
#include "lamella/kernels/parallel.h"

namespace lamella::native {

namespace {
// Keys and values may have fewer heads, each of which serves a group of consecutive query heads.
void check_heads(const char* op, const Tensor& query, const Tensor& key, const Tensor& value) {
  LAMELLA_CHECK(query.dim() == 4, op, ": expected 'query' to have 4 dimensions, got ",
                query.sizes());
  auto fits = [&](const Tensor& t, int64_t heads, int64_t rows, int64_t width) {
    return t.dim() == 4 && t.sizes()[0] == query.sizes()[0] && t.sizes()[1] == heads &&
           (rows < 0 || t.sizes()[2] == rows) && (width < 0 || t.sizes()[3] == width) &&
           t.scalar_type() == query.scalar_type();
  };
  int64_t heads = query.sizes()[1];
  if (key.dim() == 4 && key.sizes()[1] > 0 && heads % key.sizes()[1] == 0) heads = key.sizes()[1];
  LAMELLA_CHECK(fits(key, heads, -1, query.sizes()[3]), op, ": expected 'key' to be ",
                query.scalar_type(), " of shape [", query.sizes()[0], ", ", query.sizes()[1],
                ", *, ", query.sizes()[3], "], got ", key.scalar_type(), " ", key.sizes());
  LAMELLA_CHECK(fits(value, heads, key.sizes()[2], -1), op, ": expected 'value' to be ",
                query.scalar_type(), " of shape [", query.sizes()[0], ", ", heads, ", ",
                key.sizes()[2], ", *], got ", value.scalar_type(), " ", value.sizes());
}
// The dropout factors, as dense rows in the kernels' dtype.
Tensor factors_of(const char* op, const std::optional<Tensor>& dropout_mask, double dropout_p,
                  IntArrayRef shape, ScalarType dtype) {
  bool given = dropout_mask && dropout_mask->defined();
  LAMELLA_CHECK(given || dropout_p == 0, op, ": expected 'dropout_p' to be 0 without a ",
                "'dropout_mask', got ", dropout_p);
  if (!given) return Tensor();
  LAMELLA_CHECK(is_expandable(dropout_mask->sizes(), shape), op,
                ": expected 'dropout_mask' to be broadcastable to ", shape, ", got ",
                dropout_mask->sizes());
  LAMELLA_CHECK(dropout_mask->is_floating_point(), op,
                ": expected 'dropout_mask' to be floating point, got ",
                dropout_mask->scalar_type());
  if (dropout_mask->is_meta()) return *dropout_mask;
  return dropout_mask->to(dtype).expand(shape).contiguous();
}
Tensor with_dense_rows(const Tensor& t) {
  return t.size(3) == 1 || t.stride(3) == 1 ? t : t.contiguous();
}
// The mask as values that are added to the scores; a bool mask becomes -infinity where it is false.
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

// The rows of head h of sample b.
AttentionRows rows_of(const Tensor& t, int64_t b, int64_t h) {
  IntArrayRef strides = t.strides();
  int64_t size = t.element_size();
  return {static_cast<const char*>(t.const_data_ptr()) + (b * strides[0] + h * strides[1]) * size,
          strides[2] * size};
}

// The operands in the layout and dtype that the kernels read.
struct Heads {
  Tensor q, k, v, mask, factors;
  double scale;
  bool causal;
  int64_t shared;  // query heads per key head

  Heads(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& additive,
        const Tensor& dropout, bool is_causal, double factor)
      : q(with_dense_rows(query)),
        k(with_dense_rows(key)),
        v(with_dense_rows(value)),
        mask(additive),
        factors(dropout),
        scale(factor),
        causal(is_causal),
        shared(q.sizes()[1] / std::max<int64_t>(k.sizes()[1], 1)) {}
  AttentionHead head(int64_t b, int64_t h) const {
    AttentionHead head{q.scalar_type(),
                       rows_of(q, b, h),
                       rows_of(k, b, h / shared),
                       rows_of(v, b, h / shared),
                       nullptr,
                       0,
                       0,
                       q.sizes()[2],
                       k.sizes()[2],
                       q.sizes()[3],
                       v.sizes()[3],
                       static_cast<float>(scale),
                       causal};
    if (mask.defined()) {
      head.mask = static_cast<const float*>(mask.const_data_ptr()) + b * mask.strides()[0] +
                  h * mask.strides()[1];
      head.mask_row = mask.strides()[2];
      head.mask_column = mask.strides()[3];
    }
    if (factors.defined()) {
      head.factors =
          factors.const_data_ptr<float>() + b * factors.strides()[0] + h * factors.strides()[1];
      head.factors_row = factors.strides()[2];
    }
    return head;
  }
};

// The same computation by operators, for float64, which the kernel does not support.
std::tuple<Tensor, Tensor> attention_in_steps(const Tensor& query, const Tensor& key,
                                              const Tensor& value, bool is_causal,
                                              const Tensor& mask, const Tensor& dropout,
                                              double factor) {
  auto for_heads = [&](const Tensor& t) {
    int64_t each = query.size(1) / std::max<int64_t>(t.size(1), 1);
    return each == 1 ? t : t.repeat_interleave(each, 1);
  };
  Tensor scores = lamella::matmul(query * Scalar(factor), for_heads(key).transpose(-2, -1));
  if (is_causal) {
    Tensor seen = lamella::ones({query.size(2), key.size(2)}, query.options().dtype(kBool)).tril();
    scores.masked_fill_(seen.logical_not(), Scalar(-HUGE_VAL));
  }
  if (mask.defined()) scores.add_(mask);
  Tensor logsumexp = lamella::logsumexp(scores, {-1});
  // A query whose keys are all masked gives zeros.
  Tensor none = logsumexp.eq(Scalar(-HUGE_VAL)).unsqueeze(-1);
  Tensor weights = (scores - logsumexp.unsqueeze(-1)).exp().masked_fill_(none, Scalar(0));
  if (dropout.defined()) weights.mul_(dropout);
  return {lamella::matmul(weights, for_heads(value)).transpose(1, 2).contiguous().transpose(1, 2),
          logsumexp};
}
}  // namespace

void code_attention(const CodeAttention& p, const CodeAttentionData& data) {
  auto dtype = static_cast<ScalarType>(p.dtype);
  auto size = static_cast<int64_t>(element_size(dtype));
  int64_t blocks = (p.rows + kAttentionRows - 1) / kAttentionRows;
  int64_t shared = p.heads / std::max<int64_t>(p.key_heads, 1);
  int64_t work = std::min(p.rows, kAttentionRows) * p.keys * (p.width + p.value_width) + 1;
  parallel_for(0, p.batch * p.heads * blocks, (1 << 18) / work + 1,
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   int64_t b = i / (p.heads * blocks), h = i / blocks % p.heads, block = i % blocks;
                   auto rows_of = [&](const void* at, const int64_t* strides, int64_t head) {
                     return AttentionRows{
                         static_cast<const char*>(at) + (b * strides[0] + head * strides[1]) * size,
                         strides[2] * size};
                   };
                   AttentionHead head{dtype,
                                      rows_of(data.q, p.q, h),
                                      rows_of(data.k, p.k, h / shared),
                                      rows_of(data.v, p.v, h / shared),
                                      nullptr,
                                      p.mask[2],
                                      p.mask[3],
                                      p.rows,
                                      p.keys,
                                      p.width,
                                      p.value_width,
                                      static_cast<float>(p.scale),
                                      p.causal != 0};
                   if (data.mask != nullptr) head.mask = data.mask + b * p.mask[0] + h * p.mask[1];
                   if (data.factors != nullptr)
                     head.factors = data.factors + b * p.factors[0] + h * p.factors[1];
                   head.factors_row = p.factors[2];
                   AttentionRows to = rows_of(data.out, p.out, h);
                   AttentionForward call{head, const_cast<char*>(to.data), to.row,
                                         data.logsumexp + (b * p.heads + h) * p.rows};
                   int64_t first = block * kAttentionRows;
                   count_steps(work / 8);
                   attention_on(kCPU, call, first, std::min(first + kAttentionRows, p.rows));
                 }
               });
}

std::tuple<Tensor, Tensor> _scaled_dot_product_flash_attention_for_cpu(
    const Tensor& query, const Tensor& key, const Tensor& value, double dropout_p, bool is_causal,
    const std::optional<Tensor>& attn_mask, std::optional<double> scale,
    const std::optional<Tensor>& dropout_mask) {
  const char* op = "_scaled_dot_product_flash_attention_for_cpu";
  check_heads(op, query, key, value);
  LAMELLA_CHECK(query.is_floating_point() && !is_float8(query.scalar_type()), op,
                ": expected 'query' to be floating point, got ", query.scalar_type());
  int64_t batch = query.sizes()[0], heads = query.sizes()[1], rows = query.sizes()[2],
          width = query.sizes()[3], keys = key.sizes()[2], value_width = value.sizes()[3];
  ScalarType sums = query.scalar_type() == kDouble ? kDouble : kFloat;
  // The result has the query's order of dimensions. If the query's heads are the second innermost
  // dimension, joining the heads of the result needs no copy.
  bool are_rows_inside = value_width != width || query.strides()[1] >= query.strides()[2];
  Tensor out =
      are_rows_inside
          ? new_tensor({batch, heads, rows, value_width}, query.scalar_type(), query.device())
          : new_tensor({batch, rows, heads, value_width}, query.scalar_type(), query.device())
                .transpose(1, 2);
  Tensor logsumexp = new_tensor({batch, heads, rows}, sums, query.device());
  bool has_mask = attn_mask && attn_mask->defined();
  const int64_t score_shape[4] = {batch, heads, rows, keys};
  if (has_mask) {
    LAMELLA_CHECK(is_expandable(attn_mask->sizes(), score_shape), op,
                  ": expected 'attn_mask' to be broadcastable to ", IntArrayRef(score_shape),
                  ", got ", attn_mask->sizes());
  }
  Tensor dropout = factors_of(op, dropout_mask, dropout_p, score_shape, sums);
  if (query.is_meta()) return {out, logsumexp};
  Tensor mask = has_mask ? additive_mask(*attn_mask, score_shape, sums) : Tensor();
  double given = scale.value_or(1.0 / std::sqrt(static_cast<double>(width)));
  if (sums == kDouble)
    return attention_in_steps(query, key, value, is_causal, mask, dropout, given);
  Tensor q = with_dense_rows(query), k = with_dense_rows(key), v = with_dense_rows(value);
  CodeAttention problem{static_cast<int64_t>(q.scalar_type()),
                        batch,
                        heads,
                        key.sizes()[1],
                        rows,
                        keys,
                        width,
                        value_width,
                        is_causal,
                        given,
                        {},
                        {},
                        {},
                        {},
                        {},
                        {}};
  auto strides = [](const Tensor& t, int64_t* to, size_t count) {
    for (size_t d = 0; d < count; ++d) to[d] = t.strides()[d];
  };
  strides(q, problem.q, 3);
  strides(k, problem.k, 3);
  strides(v, problem.v, 3);
  strides(out, problem.out, 3);
  if (mask.defined()) strides(mask, problem.mask, 4);
  if (dropout.defined()) strides(dropout, problem.factors, 4);
  auto floats = [](const Tensor& t) {
    return t.defined() ? static_cast<const float*>(t.const_data_ptr()) : nullptr;
  };
  code_attention(problem, {q.const_data_ptr(), k.const_data_ptr(), v.const_data_ptr(), floats(mask),
                           floats(dropout), out.data_ptr(), logsumexp.mutable_data_ptr<float>()});
  return {out, logsumexp};
}

std::tuple<Tensor, Tensor, Tensor> _scaled_dot_product_flash_attention_for_cpu_backward(
    const Tensor& grad_out, const Tensor& query, const Tensor& key, const Tensor& value,
    const Tensor& out, const Tensor& logsumexp, double dropout_p, bool is_causal,
    const std::optional<Tensor>& attn_mask, std::optional<double> scale,
    const std::optional<Tensor>& dropout_mask) {
  const char* op = "_scaled_dot_product_flash_attention_for_cpu_backward";
  check_heads(op, query, key, value);
  LAMELLA_CHECK_NOT_IMPLEMENTED(query.scalar_type() == kFloat || query.scalar_type() == kHalf ||
                                    query.scalar_type() == kBFloat16,
                                op, ": expected 'query' to be float32, float16 or bfloat16, got ",
                                query.scalar_type());
  int64_t batch = query.sizes()[0], heads = query.sizes()[1], rows = query.sizes()[2],
          width = query.sizes()[3], keys = key.sizes()[2], value_width = value.sizes()[3];
  const int64_t out_shape[4] = {batch, heads, rows, value_width};
  const int64_t score_shape[4] = {batch, heads, rows, keys};
  for (auto [name, t] : {std::pair("grad_out", &grad_out), std::pair("out", &out)}) {
    LAMELLA_CHECK(t->sizes().equals(out_shape) && t->scalar_type() == query.scalar_type(), op,
                  ": expected '", name, "' to be ", query.scalar_type(), " of shape ",
                  IntArrayRef(out_shape), ", got ", t->scalar_type(), " ", t->sizes());
  }
  LAMELLA_CHECK(logsumexp.sizes().equals(IntArrayRef(score_shape).slice(0, 3)) &&
                    logsumexp.scalar_type() == kFloat,
                op, ": expected 'logsumexp' to be float32 of shape ",
                IntArrayRef(score_shape).slice(0, 3), ", got ", logsumexp.scalar_type(), " ",
                logsumexp.sizes());
  bool has_mask = attn_mask && attn_mask->defined();
  LAMELLA_CHECK(!has_mask || is_expandable(attn_mask->sizes(), score_shape), op,
                ": expected 'attn_mask' to be broadcastable to ", IntArrayRef(score_shape),
                ", got ", attn_mask->sizes());
  Tensor dropout = factors_of(op, dropout_mask, dropout_p, score_shape, kFloat);
  auto made = [&](int64_t sets, int64_t count, int64_t size) {
    Tensor t = new_tensor({batch, count, sets, size},
                          query.is_meta() ? query.scalar_type() : kFloat, query.device());
    if (!query.is_meta()) t.zero_();
    return t.transpose(1, 2);
  };
  int64_t key_heads = key.sizes()[1];
  Tensor dq = made(heads, rows, width), dk = made(key_heads, keys, width),
         dv = made(key_heads, keys, value_width);
  if (query.is_meta()) return {dq, dk, dv};
  Tensor mask = has_mask ? additive_mask(*attn_mask, score_shape, kFloat) : Tensor();
  Heads all(query, key, value, mask, dropout, is_causal,
            scale.value_or(1.0 / std::sqrt(static_cast<double>(width))));
  Tensor o = with_dense_rows(out), g = with_dense_rows(grad_out), log = logsumexp.contiguous();
  // Heads that share their keys are summed one after the other.
  int64_t work = all.shared * rows * keys * (width + value_width) + 1;
  parallel_for(0, batch * key_heads, (1 << 18) / work + 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin * all.shared; i < end * all.shared; ++i) {
      int64_t b = i / heads, h = i % heads;
      auto to = [&](const Tensor& t, int64_t head) {
        return t.mutable_data_ptr<float>() + b * t.strides()[0] + head * t.strides()[1];
      };
      AttentionBackward call{all.head(b, h),
                             rows_of(o, b, h),
                             rows_of(g, b, h),
                             log.const_data_ptr<float>() + i * rows,
                             to(dq, h),
                             to(dk, h / all.shared),
                             to(dv, h / all.shared),
                             dq.strides()[2],
                             dk.strides()[2],
                             dv.strides()[2]};
      check_interrupt();
      attention_backward_on(kCPU, call);
    }
  });
  auto finished = [&](const Tensor& t) {
    return query.scalar_type() == kFloat ? t : t.to(query.scalar_type());
  };
  return {finished(dq), finished(dk), finished(dv)};
}

}  // namespace lamella::native
