// The modules of lamella::nn that look rows of a table up: Embedding and EmbeddingBag.
#pragma once
#include "lamella/nn/modules.h"

namespace lamella::nn {

// ---- Options -----------------------------------------------------------------------------------

// Longer rows than max_norm are rescaled before they are read.
#define LAMELLA_EMBEDDING_OPTIONS                      \
  LAMELLA_OPTION(std::optional<int64_t>, padding_idx); \
  LAMELLA_OPTION(std::optional<double>, max_norm);     \
  LAMELLA_OPTION(double, norm_type) = 2;               \
  LAMELLA_OPTION(bool, scale_grad_by_freq) = false;    \
  LAMELLA_OPTION(bool, sparse) = false
// The mode is kSum, kMean or kMax.
#define LAMELLA_EMBEDDING_BAG_OPTIONS \
  LAMELLA_EMBEDDING_OPTIONS;          \
  LAMELLA_OPTION(Word, mode) = kMean; \
  LAMELLA_OPTION(bool, include_last_offset) = false
#define LAMELLA_TABLE_OPTIONS(Name, OPTIONS)                                \
  struct Name##Options {                                                    \
    Name##Options(int64_t num_embeddings, int64_t embedding_dim)            \
        : num_embeddings_(num_embeddings), embedding_dim_(embedding_dim) {} \
    LAMELLA_OPTION(int64_t, num_embeddings);                                \
    LAMELLA_OPTION(int64_t, embedding_dim);                                 \
    LAMELLA_OPTION(Tensor, _weight);                                        \
    OPTIONS;                                                                \
  };                                                                        \
  struct Name##FromPretrainedOptions {                                      \
    LAMELLA_OPTION(bool, freeze) = true;                                    \
    OPTIONS;                                                                \
  }
LAMELLA_TABLE_OPTIONS(Embedding, LAMELLA_EMBEDDING_OPTIONS);
LAMELLA_TABLE_OPTIONS(EmbeddingBag, LAMELLA_EMBEDDING_BAG_OPTIONS);
#undef LAMELLA_TABLE_OPTIONS

namespace functional {
struct EmbeddingFuncOptions {
  LAMELLA_EMBEDDING_OPTIONS;
};
struct EmbeddingBagFuncOptions {
  LAMELLA_OPTION(Tensor, offsets);
  LAMELLA_OPTION(Tensor, per_sample_weights);
  LAMELLA_EMBEDDING_BAG_OPTIONS;
};
}  // namespace functional
#undef LAMELLA_EMBEDDING_BAG_OPTIONS
#undef LAMELLA_EMBEDDING_OPTIONS

namespace detail {
// Copies the options that all of these structs have.
template <class To, class From>
To with_options(To to, const From& from) {
  to.padding_idx(from.padding_idx()).max_norm(from.max_norm()).norm_type(from.norm_type());
  to.scale_grad_by_freq(from.scale_grad_by_freq()).sparse(from.sparse());
  if constexpr (requires { to.mode(); }) {
    to.mode(from.mode()).include_last_offset(from.include_last_offset());
  }
  return to;
}
}  // namespace detail

// ---- Functions ---------------------------------------------------------------------------------

namespace functional {

namespace detail {
// Scales the rows of `weight` that `input` indexes down to the norm max_norm, in place.
LAMELLA_LAZY void shorten(Tensor weight, const Tensor& input, std::optional<double> max_norm,
                          double norm_type) {
  if (!max_norm) return;
  NoGradGuard guard;
  Tensor rows = std::get<0>(lamella::_unique2(input));
  Tensor used = weight.index_select(0, rows);
  Tensor norms = lamella::norm(used, Scalar(norm_type), {1}, true);
  Tensor scaled = used * (*max_norm / (norms + 1e-7));
  weight.index_copy_(0, rows, lamella::where(norms > *max_norm, scaled, used));
}
}  // namespace detail
LAMELLA_LAZY Tensor embedding(const Tensor& input, const Tensor& weight,
                              const EmbeddingFuncOptions& options = {}) {
  detail::shorten(weight, input, options.max_norm(), options.norm_type());
  int64_t padding = options.padding_idx().value_or(-1);
  if (options.padding_idx() && padding < 0) padding += weight.size(0);
  return lamella::embedding(weight, input, padding, options.scale_grad_by_freq(), options.sparse());
}
// The sum, mean or maximum of the rows of `weight` that each bag indexes. A bag is a row of a
// matrix `input`, or the part of a vector `input` that begins at one of the offsets.
LAMELLA_LAZY Tensor embedding_bag(const Tensor& input, const Tensor& weight,
                                  const EmbeddingBagFuncOptions& options = {}) {
  const Word mode = options.mode();
  LAMELLA_CHECK_VALUE(mode == kSum || mode == kMean || mode == kMax,
                      "embedding_bag: expected 'mode' to be sum, mean or max, got ", mode);
  LAMELLA_CHECK_VALUE(!(mode == kMax) || !(options.sparse() || options.scale_grad_by_freq()),
                      "embedding_bag: expected 'sparse' and 'scale_grad_by_freq' to be false with "
                      "mode max");
  LAMELLA_CHECK_VALUE(input.dim() == 1 || input.dim() == 2,
                      "embedding_bag: expected 'input' to have 1 or 2 dimensions, got ",
                      input.dim());
  LAMELLA_CHECK_VALUE(
      options.offsets().defined() == (input.dim() == 1),
      "embedding_bag: expected 'offsets' for an 'input' of 1 dimension alone, which "
      "has ",
      input.dim());
  detail::shorten(weight, input, options.max_norm(), options.norm_type());
  Tensor words = input, starts = options.offsets(), shares = options.per_sample_weights();
  if (input.dim() == 2) {
    starts = lamella::arange(0, input.numel(), input.size(1), TensorOptions(kLong));
    words = input.reshape({-1});
    if (shares.defined()) shares = shares.reshape({-1});
  }
  using Four = std::tuple<Tensor, Tensor, Tensor, Tensor>;
  static const auto op =
      Dispatcher::singleton()
          .findSchemaOrThrow("aten::embedding_bag", "padding_idx")
          .typed<Four(const Tensor&, const Tensor&, const Tensor&, bool, int64_t, bool,
                      const std::optional<Tensor>&, bool, std::optional<int64_t>)>();
  return std::get<0>(op.call(weight, words, starts, options.scale_grad_by_freq(),
                             mode == kSum    ? 0
                             : mode == kMean ? 1
                                             : 2,
                             options.sparse(), detail::maybe(shares), options.include_last_offset(),
                             options.padding_idx()));
}

}  // namespace functional

// ---- Modules -----------------------------------------------------------------------------------

namespace detail {
// The given table, or uninitialized memory for one.
template <class Options>
Tensor embedding_table(const char* name, const Options& options) {
  std::vector<int64_t> shape{options.num_embeddings(), options.embedding_dim()};
  const Tensor& given = options._weight();
  LAMELLA_CHECK_VALUE(!given.defined() || given.sizes() == IntArrayRef(shape), name,
                      ": expected '_weight' of shape ", shape, ", got ", given.sizes());
  return given.defined() ? given : lamella::empty(shape);
}
LAMELLA_LAZY void draw_embedding(Tensor weight, std::optional<int64_t> padding_idx) {
  init::normal_(weight);
  if (!padding_idx) return;
  NoGradGuard guard;
  weight[*padding_idx].fill_(0);
}
// Prints the options that Embedding and EmbeddingBag have in common.
template <class Options>
void show_embedding(std::ostream& stream, const Options& options) {
  if (options.max_norm()) show(stream, ", max_norm=", *options.max_norm());
  if (options.norm_type() != 2) show(stream, ", norm_type=", options.norm_type());
  if (options.scale_grad_by_freq()) show(stream, ", scale_grad_by_freq=true");
  if (options.sparse()) show(stream, ", sparse=true");
}
// A layer over an existing table, which is frozen unless `freeze` is false.
template <class Layer, class Options, class Given>
Layer pretrained(const char* name, const Tensor& embeddings, const Given& options) {
  LAMELLA_CHECK_VALUE(embeddings.dim() == 2, name,
                      ": expected 'embeddings' to have 2 dimensions, got ", embeddings.dim());
  Layer made(
      with_options(Options(embeddings.size(0), embeddings.size(1))._weight(embeddings), options));
  made->weight.set_requires_grad(!options.freeze());
  return made;
}
}  // namespace detail

LAMELLA_LAZY class EmbeddingImplOf : public Cloneable<EmbeddingImplOf<lazy_>> {
 public:
  EmbeddingImplOf(int64_t num_embeddings, int64_t embedding_dim)
      : EmbeddingImplOf(EmbeddingOptions(num_embeddings, embedding_dim)) {}
  explicit EmbeddingImplOf(const EmbeddingOptions& given) : options(given) { reset(); }
  void reset() override {
    weight = this->register_parameter("weight", detail::embedding_table("Embedding", options));
    if (!options._weight().defined()) reset_parameters();
  }
  void reset_parameters() { detail::draw_embedding(weight, options.padding_idx()); }
  void pretty_print(std::ostream& stream) const override {
    detail::show(stream, "torch::nn::Embedding(num_embeddings=", options.num_embeddings(),
                 ", embedding_dim=", options.embedding_dim());
    if (options.padding_idx()) detail::show(stream, ", padding_idx=", *options.padding_idx());
    detail::show_embedding(stream, options);
    detail::show(stream, ")");
  }
  Tensor forward(const Tensor& indices) {
    return F::embedding(indices, weight, detail::with_options(F::EmbeddingFuncOptions(), options));
  }

  EmbeddingOptions options;
  Tensor weight;
};
LAMELLA_LAZY class EmbeddingOf : public ModuleHolder<EmbeddingImplOf<lazy_>> {
 public:
  using ModuleHolder<EmbeddingImplOf<lazy_>>::ModuleHolder;
  static EmbeddingOf from_pretrained(const Tensor& embeddings,
                                     const EmbeddingFromPretrainedOptions& options = {}) {
    return detail::pretrained<EmbeddingOf, EmbeddingOptions>("Embedding", embeddings, options);
  }
};
using EmbeddingImpl = EmbeddingImplOf<>;
using Embedding = EmbeddingOf<>;

LAMELLA_LAZY class EmbeddingBagImplOf : public Cloneable<EmbeddingBagImplOf<lazy_>> {
 public:
  EmbeddingBagImplOf(int64_t num_embeddings, int64_t embedding_dim)
      : EmbeddingBagImplOf(EmbeddingBagOptions(num_embeddings, embedding_dim)) {}
  explicit EmbeddingBagImplOf(const EmbeddingBagOptions& given) : options(given) { reset(); }
  void reset() override {
    weight = this->register_parameter("weight", detail::embedding_table("EmbeddingBag", options));
    if (!options._weight().defined()) reset_parameters();
  }
  void reset_parameters() { detail::draw_embedding(weight, options.padding_idx()); }
  void pretty_print(std::ostream& stream) const override {
    detail::show(stream, "torch::nn::EmbeddingBag(num_embeddings=", options.num_embeddings(),
                 ", embedding_dim=", options.embedding_dim());
    detail::show_embedding(stream, options);
    if (!(options.mode() == kMean)) detail::show(stream, ", mode=", options.mode());
    if (options.include_last_offset()) detail::show(stream, ", include_last_offset=true");
    if (options.padding_idx()) detail::show(stream, ", padding_idx=", *options.padding_idx());
    detail::show(stream, ")");
  }
  Tensor forward(const Tensor& input, const Tensor& offsets = {},
                 const Tensor& per_sample_weights = {}) {
    auto told =
        F::EmbeddingBagFuncOptions().offsets(offsets).per_sample_weights(per_sample_weights);
    return F::embedding_bag(input, weight, detail::with_options(told, options));
  }
  EmbeddingBagOptions options;
  Tensor weight;
};
LAMELLA_LAZY class EmbeddingBagOf : public ModuleHolder<EmbeddingBagImplOf<lazy_>> {
 public:
  using ModuleHolder<EmbeddingBagImplOf<lazy_>>::ModuleHolder;
  static EmbeddingBagOf from_pretrained(const Tensor& embeddings,
                                        const EmbeddingBagFromPretrainedOptions& options = {}) {
    return detail::pretrained<EmbeddingBagOf, EmbeddingBagOptions>("EmbeddingBag", embeddings,
                                                                   options);
  }
};
using EmbeddingBagImpl = EmbeddingBagImplOf<>;
using EmbeddingBag = EmbeddingBagOf<>;

}  // namespace lamella::nn
