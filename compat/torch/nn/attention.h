// MultiheadAttention and the encoder and decoder layers built on it. For equal seeds, the initial
// parameters equal PyTorch's.
#pragma once
#include <functional>

#include "lamella/nn/modules.h"

namespace lamella::nn {

struct MultiheadAttentionOptions {
  MultiheadAttentionOptions(int64_t embed_dim, int64_t num_heads)
      : embed_dim_(embed_dim), num_heads_(num_heads), kdim_(embed_dim), vdim_(embed_dim) {}
  LAMELLA_OPTION(int64_t, embed_dim);
  LAMELLA_OPTION(int64_t, num_heads);
  LAMELLA_OPTION(double, dropout) = 0;
  LAMELLA_OPTION(bool, bias) = true;
  LAMELLA_OPTION(bool, add_bias_kv) = false;    // appends one learned key and value
  LAMELLA_OPTION(bool, add_zero_attn) = false;  // appends one key and value of zeros
  LAMELLA_OPTION(int64_t, kdim);
  LAMELLA_OPTION(int64_t, vdim);
};

namespace functional {
struct MultiheadAttentionForwardFuncOptions {
  MultiheadAttentionForwardFuncOptions(int64_t embed_dim_to_check, int64_t num_heads,
                                       Tensor in_proj_weight, Tensor in_proj_bias, Tensor bias_k,
                                       Tensor bias_v, bool add_zero_attn, double dropout_p,
                                       Tensor out_proj_weight, Tensor out_proj_bias)
      : embed_dim_to_check_(embed_dim_to_check),
        num_heads_(num_heads),
        in_proj_weight_(std::move(in_proj_weight)),
        in_proj_bias_(std::move(in_proj_bias)),
        bias_k_(std::move(bias_k)),
        bias_v_(std::move(bias_v)),
        add_zero_attn_(add_zero_attn),
        dropout_p_(dropout_p),
        out_proj_weight_(std::move(out_proj_weight)),
        out_proj_bias_(std::move(out_proj_bias)) {}
  LAMELLA_OPTION(int64_t, embed_dim_to_check);
  LAMELLA_OPTION(int64_t, num_heads);
  LAMELLA_OPTION(Tensor, in_proj_weight);
  LAMELLA_OPTION(Tensor, in_proj_bias);
  LAMELLA_OPTION(Tensor, bias_k);
  LAMELLA_OPTION(Tensor, bias_v);
  LAMELLA_OPTION(bool, add_zero_attn);
  LAMELLA_OPTION(double, dropout_p);
  LAMELLA_OPTION(Tensor, out_proj_weight);
  LAMELLA_OPTION(Tensor, out_proj_bias);
  LAMELLA_OPTION(bool, training) = true;
  LAMELLA_OPTION(Tensor, key_padding_mask);
  LAMELLA_OPTION(bool, need_weights) = true;
  LAMELLA_OPTION(Tensor, attn_mask);
  LAMELLA_OPTION(bool, use_separate_proj_weight) = false;  // follows from the weights given
  LAMELLA_OPTION(Tensor, q_proj_weight);
  LAMELLA_OPTION(Tensor, k_proj_weight);
  LAMELLA_OPTION(Tensor, v_proj_weight);
  LAMELLA_OPTION(Tensor, static_k);
  LAMELLA_OPTION(Tensor, static_v);
  LAMELLA_OPTION(bool, average_attn_weights) = true;
};
namespace detail {
inline bool is_attention_mask(const Tensor& mask) {
  return mask.scalar_type() == kBool || mask.scalar_type() == kByte;
}
}  // namespace detail
// MultiheadAttention's forward() with the weights as options.
LAMELLA_LAZY std::tuple<Tensor, Tensor> multi_head_attention_forward(
    const Tensor& query, const Tensor& key, const Tensor& value,
    const MultiheadAttentionForwardFuncOptions& options) {
  constexpr double out = -__builtin_inf();
  const Tensor &in_proj_weight = options.in_proj_weight(), &in_proj_bias = options.in_proj_bias();
  const Tensor &bias_k = options.bias_k(), &bias_v = options.bias_v();
  const Tensor &attn_mask = options.attn_mask(), &key_padding_mask = options.key_padding_mask();
  const int64_t size = options.embed_dim_to_check(), heads = options.num_heads(),
                width = size / heads;
  LAMELLA_CHECK(query.dim() == 3 && query.size(2) == size,
                "MultiheadAttention: expected 'query' to be [T, N, ", size, "], got ",
                query.sizes());
  LAMELLA_CHECK(key.dim() == 3 && value.dim() == 3 && key.size(0) == value.size(0) &&
                    key.size(1) == query.size(1) && value.size(1) == query.size(1),
                "MultiheadAttention: expected 'key' and 'value' to be [S, ", query.size(1),
                ", *], got ", key.sizes(), " and ", value.sizes());
  const int64_t length = query.size(0), count = query.size(1);
  auto project = [&](const Tensor& input, int64_t part, const Tensor& own) {
    Tensor weight = own.defined() ? own : in_proj_weight.narrow(0, part * size, size);
    Tensor bias = in_proj_bias.defined() ? in_proj_bias.narrow(0, part * size, size) : Tensor();
    return linear(input, weight, bias);
  };
  Tensor q =
      project(query, 0, options.q_proj_weight()) * (1 / std::sqrt(static_cast<double>(width)));
  Tensor k = project(key, 1, options.k_proj_weight()),
         v = project(value, 2, options.v_proj_weight());
  int64_t more = 0;  // keys appended behind those that the masks cover
  if (bias_k.defined()) {
    k = lamella::cat({k, bias_k.expand({1, count, size})});
    v = lamella::cat({v, bias_v.expand({1, count, size})});
    ++more;
  }
  auto split = [&](const Tensor& all) {
    return all.reshape({all.size(0), count * heads, width}).transpose(0, 1);
  };
  auto widened = [&](const Tensor& mask) {
    return more == 0 ? mask : lamella::constant_pad_nd(mask, {0, more}, 0);
  };
  // Keys and values that the caller has split already: [N * num_heads, S, width].
  Tensor key_rows = options.static_k().defined() ? options.static_k() : split(k);
  Tensor value_rows = options.static_v().defined() ? options.static_v() : split(v);
  if (options.add_zero_attn()) {
    Tensor zeros = lamella::zeros({count * heads, 1, width}, k.options());
    key_rows = lamella::cat({key_rows, zeros}, 1);
    value_rows = lamella::cat({value_rows, zeros}, 1);
    ++more;
  }
  const int64_t keys = key_rows.size(1);
  Tensor scores = split(q).bmm(key_rows.transpose(1, 2));
  if (attn_mask.defined()) {
    Tensor mask = widened(attn_mask);
    LAMELLA_CHECK((mask.dim() == 2 && mask.sizes() == IntArrayRef({length, keys})) ||
                      mask.sizes() == scores.sizes(),
                  "MultiheadAttention: expected 'attn_mask' to be [", length, ", ", keys - more,
                  "] or [", count * heads, ", ", length, ", ", keys - more, "], got ",
                  attn_mask.sizes());
    scores =
        detail::is_attention_mask(mask) ? scores.masked_fill(mask.to(kBool), out) : scores + mask;
  }
  if (key_padding_mask.defined()) {
    LAMELLA_CHECK(key_padding_mask.sizes() == IntArrayRef({count, key.size(0)}),
                  "MultiheadAttention: expected 'key_padding_mask' to be [", count, ", ",
                  key.size(0), "], got ", key_padding_mask.sizes());
    Tensor mask = widened(key_padding_mask).unsqueeze(1).unsqueeze(2);
    Tensor each = scores.view({count, heads, length, keys});
    each = detail::is_attention_mask(mask) ? each.masked_fill(mask.to(kBool), out) : each + mask;
    scores = each.view({count * heads, length, keys});
  }
  Tensor weights = lamella::softmax(scores, -1);
  weights = lamella::dropout(weights, options.dropout_p(), options.training());
  Tensor output = weights.bmm(value_rows).transpose(0, 1).reshape({length, count, size});
  output = linear(output, options.out_proj_weight(), options.out_proj_bias());
  if (!options.need_weights()) return {output, Tensor()};
  weights = weights.view({count, heads, length, keys});
  return {output, options.average_attn_weights() ? weights.mean(1) : weights};
}
}  // namespace functional

// A. Vaswani et al., Attention Is All You Need, 2017.
LAMELLA_LAZY class MultiheadAttentionImplOf : public Cloneable<MultiheadAttentionImplOf<lazy_>> {
  LAMELLA_PART(MultiheadAttentionImplOf, Linear);

 public:
  MultiheadAttentionImplOf(int64_t embed_dim, int64_t num_heads)
      : MultiheadAttentionImplOf(MultiheadAttentionOptions(embed_dim, num_heads)) {}
  explicit MultiheadAttentionImplOf(const MultiheadAttentionOptions& given)
      : Cloneable<MultiheadAttentionImplOf<lazy_>>("torch::nn::MultiheadAttention"),
        options(given) {
    reset();
  }
  void reset() override {
    const int64_t size = options.embed_dim();
    LAMELLA_CHECK_VALUE(options.num_heads() > 0 && size % options.num_heads() == 0,
                        "MultiheadAttention: expected 'embed_dim' to be a multiple of 'num_heads', "
                        "got ",
                        size, " and ", options.num_heads());
    const bool same = options.kdim() == size && options.vdim() == size;
    _qkv_same_embed_dim = same;
    auto make = [&](const char* name, bool there, std::vector<int64_t> shape) {
      return this->register_parameter(name, there ? lamella::empty(shape) : Tensor(), there);
    };
    in_proj_weight = make("in_proj_weight", same, {3 * size, size});
    q_proj_weight = make("q_proj_weight", !same, {size, size});
    k_proj_weight = make("k_proj_weight", !same, {size, options.kdim()});
    v_proj_weight = make("v_proj_weight", !same, {size, options.vdim()});
    in_proj_bias = make("in_proj_bias", options.bias(), {3 * size});
    out_proj = Linear(LinearOptions(size, size).bias(options.bias()));
    this->register_module("out_proj", out_proj);
    bias_k = make("bias_k", options.add_bias_kv(), {1, 1, size});
    bias_v = make("bias_v", options.add_bias_kv(), {1, 1, size});
    _reset_parameters();
  }
  void _reset_parameters() {
    for (const Tensor& weight : {in_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight}) {
      if (weight.defined()) init::xavier_uniform_(weight);
    }
    if (in_proj_bias.defined()) {
      init::zeros_(in_proj_bias);
      init::zeros_(out_proj->bias);
    }
    for (const Tensor& bias : {bias_k, bias_v}) {
      if (bias.defined()) init::xavier_normal_(bias);
    }
  }
  // A boolean mask means the same as in Python; PyTorch's C++ adds it as ones instead. query: [T,
  // N, embed_dim], key: [S, N, kdim], value: [S, N, vdim]. key_padding_mask: bool [N, S], true for
  // keys that are ignored. attn_mask: [T, S] or [N * num_heads, T, S], either added to the scores
  // or bool, true for pairs that are masked out. Returns [T, N, embed_dim], and the weights: [N, T,
  // S], or [N, num_heads, T, S] if they are not averaged, or undefined if they are not needed.
  std::tuple<Tensor, Tensor> forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                     const Tensor& key_padding_mask = {}, bool need_weights = true,
                                     const Tensor& attn_mask = {},
                                     bool average_attn_weights = true) {
    F::MultiheadAttentionForwardFuncOptions given(
        options.embed_dim(), options.num_heads(), in_proj_weight, in_proj_bias, bias_k, bias_v,
        options.add_zero_attn(), options.dropout(), out_proj->weight, out_proj->bias);
    given.training(this->is_training()).key_padding_mask(key_padding_mask);
    given.need_weights(need_weights).attn_mask(attn_mask);
    given.q_proj_weight(q_proj_weight).k_proj_weight(k_proj_weight).v_proj_weight(v_proj_weight);
    given.average_attn_weights(average_attn_weights);
    return F::multi_head_attention_forward(query, key, value, given);
  }

  MultiheadAttentionOptions options;
  Tensor in_proj_weight, in_proj_bias, bias_k, bias_v, q_proj_weight, k_proj_weight, v_proj_weight;
  Linear out_proj{nullptr};
  // Whether keys and values have the size of queries.
  bool _qkv_same_embed_dim = true;
};
LAMELLA_LAZY_MODULE(MultiheadAttention)

// kReLU, kGELU, or a function.
class LayerActivation {
 public:
  LayerActivation(Word word) : word_(word) {}  // NOLINT: implicit
  template <class F>
    requires std::is_invocable_r_v<Tensor, F, const Tensor&>
  LayerActivation(F function) : function_(std::move(function)) {}  // NOLINT
  template <int = 0>
  Tensor operator()(const Tensor& input) const {
    if (function_) return function_(input);
    if (word_ == kGELU) return F::gelu(input);
    LAMELLA_CHECK_VALUE(word_ == kReLU,
                        "Transformer: expected 'activation' to be relu, gelu or a "
                        "function, got ",
                        word_);
    return F::relu(input);
  }

 private:
  Word word_ = kReLU;
  std::function<Tensor(const Tensor&)> function_;
};

struct TransformerEncoderLayerOptions {
  TransformerEncoderLayerOptions(int64_t d_model, int64_t nhead)
      : d_model_(d_model), nhead_(nhead) {}
  LAMELLA_OPTION(int64_t, d_model);
  LAMELLA_OPTION(int64_t, nhead);
  LAMELLA_OPTION(int64_t, dim_feedforward) = 2048;
  LAMELLA_OPTION(double, dropout) = 0.1;
  LAMELLA_OPTION(LayerActivation, activation) = kReLU;
};
struct TransformerDecoderLayerOptions : TransformerEncoderLayerOptions {
  using TransformerEncoderLayerOptions::TransformerEncoderLayerOptions;
  TransformerDecoderLayerOptions(const TransformerEncoderLayerOptions& other)  // NOLINT: implicit
      : TransformerEncoderLayerOptions(other) {}
};

// The common base of both layers: self-attention and two linear layers, with dropout and norms.
template <class Derived, class Options>
class TransformerLayerBase : public Cloneable<Derived> {
  LAMELLA_PART(Derived, MultiheadAttention);
  LAMELLA_PART(Derived, Linear);
  LAMELLA_PART(Derived, LayerNorm);
  LAMELLA_PART(Derived, Dropout);
  static constexpr bool kAttendsTwice = std::is_same_v<Options, TransformerDecoderLayerOptions>;
  static constexpr size_t kBlocks = kAttendsTwice ? 3 : 2;

 public:
  TransformerLayerBase(int64_t d_model, int64_t nhead)
      : TransformerLayerBase(Options(d_model, nhead)) {}
  explicit TransformerLayerBase(const Options& given) : options(given) { reset(); }
  void reset() override {
    self_attn = attention("self_attn");
    if constexpr (kAttendsTwice) multihead_attn = attention("multihead_attn");
    linear1 = this->make("linear1", Linear(options.d_model(), options.dim_feedforward()));
    dropout = this->make("dropout", Dropout(options.dropout()));
    linear2 = this->make("linear2", Linear(options.dim_feedforward(), options.d_model()));
    for (size_t i = 0; i < kBlocks; ++i) {
      norm(i) = this->make("norm" + std::to_string(i + 1),
                           LayerNorm(std::vector<int64_t>{options.d_model()}));
    }
    for (size_t i = 0; i < kBlocks; ++i) {
      dropout_of(i) = this->make("dropout" + std::to_string(i + 1), Dropout(options.dropout()));
    }
  }
  void reset_parameters() {
    self_attn->_reset_parameters();
    if constexpr (kAttendsTwice) multihead_attn->_reset_parameters();
    linear1->reset_parameters();
    linear2->reset_parameters();
    for (size_t i = 0; i < kBlocks; ++i) norm(i)->reset_parameters();
  }

  Options options;
  MultiheadAttention self_attn{nullptr};
  MultiheadAttention multihead_attn{nullptr};  // decoder only: attends to the memory
  Linear linear1{nullptr}, linear2{nullptr};
  LayerNorm norm1{nullptr}, norm2{nullptr}, norm3{nullptr};  // norm3: decoder only
  Dropout dropout{nullptr}, dropout1{nullptr}, dropout2{nullptr}, dropout3{nullptr};

 protected:
  template <class Holder>
  Holder make(const std::string& name, Holder module) {
    this->register_module(name, module);
    return module;
  }
  MultiheadAttention attention(const char* name) {
    return make(name,
                MultiheadAttention(MultiheadAttentionOptions(options.d_model(), options.nhead())
                                       .dropout(options.dropout())));
  }
  // The residual connection x + dropout(made), followed by norm i.
  Tensor joined(const Tensor& x, const Tensor& made, size_t i) {
    return norm(i)(x + dropout_of(i)(made));
  }
  LayerNorm& norm(size_t i) { return i == 0 ? norm1 : i == 1 ? norm2 : norm3; }
  Dropout& dropout_of(size_t i) { return i == 0 ? dropout1 : i == 1 ? dropout2 : dropout3; }
  Tensor fed(const Tensor& x) { return linear2(dropout(options.activation()(linear1(x)))); }
};

LAMELLA_LAZY class TransformerEncoderLayerImplOf
    : public TransformerLayerBase<TransformerEncoderLayerImplOf<lazy_>,
                                  TransformerEncoderLayerOptions> {
  using Base = TransformerLayerBase<TransformerEncoderLayerImplOf, TransformerEncoderLayerOptions>;

 public:
  using Base::Base;
  // src: [T, N, d_model]; the masks are as for MultiheadAttention.
  Tensor forward(const Tensor& src, const Tensor& src_mask = {},
                 const Tensor& src_key_padding_mask = {}) {
    Tensor attended =
        std::get<0>(this->self_attn(src, src, src, src_key_padding_mask, false, src_mask));
    Tensor x = this->joined(src, attended, 0);
    return this->joined(x, this->fed(x), 1);
  }
};
LAMELLA_LAZY_MODULE(TransformerEncoderLayer)

LAMELLA_LAZY class TransformerDecoderLayerImplOf
    : public TransformerLayerBase<TransformerDecoderLayerImplOf<lazy_>,
                                  TransformerDecoderLayerOptions> {
  using Base = TransformerLayerBase<TransformerDecoderLayerImplOf, TransformerDecoderLayerOptions>;

 public:
  using Base::Base;
  // tgt: [T, N, d_model], memory: [S, N, d_model].
  Tensor forward(Tensor tgt, const Tensor& memory, const Tensor& tgt_mask = {},
                 const Tensor& memory_mask = {}, const Tensor& tgt_key_padding_mask = {},
                 const Tensor& memory_key_padding_mask = {}) {
    Tensor attended =
        std::get<0>(this->self_attn(tgt, tgt, tgt, tgt_key_padding_mask, false, tgt_mask));
    Tensor x = this->joined(tgt, attended, 0);
    attended = std::get<0>(
        this->multihead_attn(x, memory, memory, memory_key_padding_mask, false, memory_mask));
    x = this->joined(x, attended, 1);
    return this->joined(x, this->fed(x), 2);
  }
};
LAMELLA_LAZY_MODULE(TransformerDecoderLayer)

}  // namespace lamella::nn
