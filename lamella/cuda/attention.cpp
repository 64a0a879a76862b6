// Fused attention by kernels of the device: Note [Attention in tiles] in kernels/attention.h.
#include <cmath>

#include "lamella/cuda/call.h"
#include "lamella/cuda/driver.h"
#include "lamella/cuda/kernels/attention_parameters.h"
#include "lamella/cuda/launch.h"
#include "lamella/cuda/movement.h"

namespace lamella::cuda {
namespace {

constexpr ScalarType kFloat = ScalarType::Float;

AttentionOperand operand(const Tensor& t) {
  const IntArrayRef s = t.strides();
  return {reinterpret_cast<uint64_t>(t.data_ptr()), s[0], s[1], s[2], s[3]};
}
// Whether the rows of all heads begin at multiples of 16 bytes and have no gaps.
bool has_vectors(const Tensor& t) {
  const int64_t bytes = static_cast<int64_t>(t.itemsize());
  auto fits = [&](int d) { return t.sizes()[d] == 1 || t.strides()[d] * bytes % 16 == 0; };
  return reinterpret_cast<uint64_t>(t.data_ptr()) % 16 == 0 && fits(0) && fits(1) && fits(2) &&
         t.sizes()[3] * bytes % 16 == 0 && t.strides()[3] == 1;
}

// The operands of a call, and tensors that were made for it.
struct Problem {
  AttentionParameters p{};
  Tensor mask, factors;
  int64_t device, bytes;
  const char* suffix;

  // False: no kernel computes it.
  bool prepare(const Call& call, int query_at, int causal_at, int mask_at) {
    const Tensor q = call.tensor(query_at), k = call.tensor(query_at + 1),
                 v = call.tensor(query_at + 2);
    const ScalarType dtype = q.scalar_type();
    const bool is_served =
        dtype == kFloat || dtype == ScalarType::Half || dtype == ScalarType::BFloat16;
    constexpr int64_t kMost = INT32_MAX - 1024;
    if (!is_served || q.size(2) > kMost || k.size(2) > kMost || q.size(3) > kAttentionWidth ||
        v.size(3) > kAttentionWidth) {
      return false;
    }
    device = call.device();
    bytes = static_cast<int64_t>(q.itemsize());
    suffix = suffix_of_type(dtype);
    p.q = operand(q);
    p.k = operand(k);
    p.v = operand(v);
    p.batch = q.size(0);
    p.heads = q.size(1);
    p.key_heads = k.size(1);
    p.rows = static_cast<int32_t>(q.size(2));
    p.keys = static_cast<int32_t>(k.size(2));
    p.width = static_cast<int32_t>(q.size(3));
    p.value_width = static_cast<int32_t>(v.size(3));
    p.causal = call.flag(causal_at) ? 1 : 0;
    p.scale =
        static_cast<float>(call.number(mask_at + 1, 1.0 / std::sqrt(static_cast<double>(p.width))));
    p.vectors = has_vectors(q) && has_vectors(k) && has_vectors(v) ? 1 : 0;
    const int64_t scores[4] = {p.batch, p.heads, p.rows, p.keys};
    if (!call.is_none(mask_at)) {
      mask = call.tensor(mask_at);
      p.mask_is_bool = mask.scalar_type() == ScalarType::Bool ? 1 : 0;
      if (p.mask_is_bool == 0) mask = mask.to(kFloat);
      mask = mask.expand(scores);
      p.mask = operand(mask);
    }
    if (!call.is_none(mask_at + 2)) {
      factors = call.tensor(mask_at + 2).to(kFloat).expand(scores);
      p.factors = operand(factors);
    }
    return true;
  }
  // Launches the kernel of a name for `rows` rows in each of `lines` heads.
  bool launch_tiles(const char* name, bool backward, int64_t rows, int64_t lines) const {
    const int widest = p.width > p.value_width ? p.width : p.value_width;
    const int width = widest <= 64 ? 64 : widest <= 128 ? 128 : 256;
    void* kernel = find_kernel(static_cast<int>(device), name, str(suffix, "_", width).c_str());
    const AttentionTile tile = attention_tile(static_cast<int>(bytes), width, backward);
    const int64_t parts = backward && width > 128 ? 2 : 1;
    return launch_blocks(kernel, name, (rows + tile.rows - 1) / tile.rows * lines * parts,
                         tile.threads, attention_bytes(static_cast<int>(bytes), width, backward));
  }
  bool launch_blocks(void* kernel, const char* name, int64_t blocks, int threads,
                     int shared) const {
    if (kernel == nullptr) return false;
    if (blocks == 0) return true;
    Shape shape;
    shape.grid[0] = static_cast<unsigned>(blocks < INT32_MAX ? blocks : INT32_MAX);
    shape.block[0] = static_cast<unsigned>(threads);
    shape.shared_bytes = static_cast<unsigned>(shared);
    launch(static_cast<int>(device), kernel, name, &p, shape);
    return true;
  }
};

bool forward_body(Call& call) {
  Problem problem;
  if (!problem.prepare(call, 0, 4, 5)) return false;
  problem.p.out = operand(call.output(0));
  problem.p.logsumexp = reinterpret_cast<uint64_t>(call.output(1).data_ptr());
  return problem.launch_tiles("attention", false, problem.p.rows,
                              problem.p.batch * problem.p.heads);
}

bool backward_body(Call& call) {
  Problem problem;
  if (!problem.prepare(call, 1, 7, 8)) return false;
  AttentionParameters& p = problem.p;
  const Tensor grad = call.tensor(0), logsumexp = call.tensor(5).contiguous();
  const Tensor delta = lamella::empty_like(logsumexp);
  p.grad = operand(grad);
  p.out = operand(call.tensor(4));
  p.dq = operand(call.output(0));
  p.dk = operand(call.output(1));
  p.dv = operand(call.output(2));
  p.logsumexp = reinterpret_cast<uint64_t>(logsumexp.data_ptr());
  p.delta = reinterpret_cast<uint64_t>(delta.data_ptr());
  p.vectors = p.vectors != 0 && has_vectors(grad) ? 1 : 0;
  const int64_t lines = p.batch * p.heads, each = 4;
  void* kernel = find_kernel(call.device(), "attention_delta", problem.suffix);
  return problem.launch_blocks(kernel, "attention_delta", (lines * p.rows + each - 1) / each, 128,
                               0) &&
         problem.launch_tiles("attention_queries", true, p.rows, lines) &&
         problem.launch_tiles("attention_keys", true, p.keys, p.batch * p.key_heads);
}

}  // namespace

void register_attention(Library& aten) {
  register_calls<&forward_body>(aten, "_scaled_dot_product_flash_attention_for_cpu");
  register_calls<&backward_body>(aten, "_scaled_dot_product_flash_attention_for_cpu_backward");
}

}  // namespace lamella::cuda
