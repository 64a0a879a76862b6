// Fused attention by kernels of the device: Note [Attention in tiles] in kernels/attention.h.
#include <algorithm>
#include <cmath>

#include "lamella/cuda/call.h"
#include "lamella/cuda/driver.h"
#include "lamella/cuda/families.h"
#include "lamella/cuda/kernels/attention_parameters.h"

namespace lamella::cuda {
namespace {

AttentionOperand operand(const Tensor& t) {
  const IntArrayRef s = t.strides();
  return {address_of(t), s[0], s[1], s[2], s[3]};
}
// Whether rows begin at multiples of 16 bytes and have no gaps.
bool has_vectors(const Tensor& t) {
  uint64_t steps = address_of(t) | static_cast<uint64_t>(t.size(3)) * t.itemsize();
  for (int d = 0; d < 3; ++d) {
    if (t.size(d) != 1) steps |= static_cast<uint64_t>(t.stride(d)) * t.itemsize();
  }
  return steps % 16 == 0 && t.stride(3) == 1;
}

// What both operators have, with the places of their arguments; `mask` owns what it converts.
// False: no kernel computes it.
bool prepare(const Call& call, int query_at, int mask_at, AttentionParameters* p, Tensor* mask) {
  const Tensor q = call.tensor(query_at), k = call.tensor(query_at + 1);
  const Tensor v = call.tensor(query_at + 2);
  const ScalarType dtype = q.scalar_type();
  constexpr int64_t kMostRows = INT32_MAX - 1024;
  const bool is_served =
      (dtype == ScalarType::Float || dtype == ScalarType::Half || dtype == ScalarType::BFloat16) &&
      std::max(q.size(2), k.size(2)) < kMostRows && call.is_none(mask_at + 2) &&
      std::max(q.size(3), v.size(3)) <= kAttentionWidth;
  if (!is_served) return false;
  p->q = operand(q);
  p->k = operand(k);
  p->v = operand(v);
  p->batch = q.size(0);
  p->heads = q.size(1);
  p->key_heads = k.size(1);
  p->rows = static_cast<int32_t>(q.size(2));
  p->keys = static_cast<int32_t>(k.size(2));
  p->width = static_cast<int32_t>(q.size(3));
  p->value_width = static_cast<int32_t>(v.size(3));
  p->causal = call.flag(mask_at - 1) ? 1 : 0;
  p->scale =
      static_cast<float>(call.number(mask_at + 1, 1 / std::sqrt(static_cast<double>(p->width))));
  p->vectors = has_vectors(q) && has_vectors(k) && has_vectors(v) ? 1 : 0;
  if (call.is_none(mask_at)) return true;
  *mask = call.tensor(mask_at);
  p->mask_is_bool = mask->scalar_type() == ScalarType::Bool ? 1 : 0;
  if (p->mask_is_bool == 0) *mask = mask->to(ScalarType::Float);
  *mask = mask->expand({p->batch, p->heads, p->rows, p->keys});
  p->mask = operand(*mask);
  return true;
}
// Launches a kernel for `rows` rows in each of `lines` heads.
bool launch_tiles(const Call& call, const char* name, bool backward, int64_t rows, int64_t lines,
                  const AttentionParameters& p) {
  const int widest = std::max(p.width, p.value_width);
  const int width = widest <= 64 ? 64 : widest <= 128 ? 128 : 256;
  const auto bytes = static_cast<int>(call.output().itemsize());
  const std::string suffix = str(suffix_of_type(call.output().scalar_type()), "_", width);
  const AttentionTile tile = attention_tile(bytes, width, backward);
  const int64_t parts = backward && width == 256 ? 2 : 1;
  const int64_t blocks = (rows + tile.rows - 1) / tile.rows * lines * parts;
  if (blocks == 0) return true;
  Shape shape;
  shape.grid[0] = static_cast<unsigned>(std::min<int64_t>(blocks, INT32_MAX));
  shape.block[0] = static_cast<unsigned>(tile.threads);
  shape.shared_bytes = static_cast<unsigned>(attention_bytes(bytes, width, backward));
  return launch_named(call.device(), name, suffix.c_str(), &p, shape);
}

bool forward_body(Call& call) {
  AttentionParameters p{};
  Tensor mask;
  if (!prepare(call, 0, 5, &p, &mask)) return false;
  p.out = operand(call.output(0));
  p.logsumexp = address_of(call.output(1));
  return launch_tiles(call, "attention", false, p.rows, p.batch * p.heads, p);
}
bool backward_body(Call& call) {
  AttentionParameters p{};
  Tensor mask;
  if (!prepare(call, 1, 8, &p, &mask)) return false;
  const Tensor grad = call.tensor(0), logsumexp = call.tensor(5).contiguous();
  const Tensor delta = lamella::empty_like(logsumexp);
  p.grad = operand(grad);
  p.vectors = p.vectors != 0 && has_vectors(grad) ? 1 : 0;
  p.out = operand(call.tensor(4));
  p.dq = operand(call.output(0));
  p.dk = operand(call.output(1));
  p.dv = operand(call.output(2));
  p.logsumexp = address_of(logsumexp);
  p.delta = address_of(delta);
  return launch_tiles(call, "attention_queries", true, p.rows, p.batch * p.heads, p) &&
         launch_tiles(call, "attention_keys", true, p.keys, p.batch * p.key_heads, p);
}

}  // namespace

void register_attention(Library& aten) {
  register_calls<&forward_body>(aten, "_scaled_dot_product_flash_attention_for_cpu");
  register_calls<&backward_body>(aten, "_scaled_dot_product_flash_attention_for_cpu_backward");
}

}  // namespace lamella::cuda
