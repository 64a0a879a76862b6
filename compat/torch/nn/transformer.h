// Stacks of the layers of attention.h: TransformerEncoder, TransformerDecoder, Transformer.
#pragma once
#include "lamella/nn/attention.h"

namespace lamella::nn {

namespace detail {
template <class Layer, class LayerOptions>
struct StackOptions {
  using LayerType = Layer;
  StackOptions(Layer layer, int64_t num_layers)
      : layer_(std::move(layer)), num_layers_(num_layers) {}
  StackOptions(const LayerOptions& layer, int64_t num_layers)
      : StackOptions(Layer(layer), num_layers) {}
  LAMELLA_OPTION(Layer, layer);
  LAMELLA_OPTION(int64_t, num_layers);
  LAMELLA_OPTION(AnyModule, norm);  // applied after the last layer
};

// A stack of copies of one layer.
template <class Derived, class Options>
class StackBase : public Cloneable<Derived> {
  LAMELLA_PART(Derived, ModuleList);
  LAMELLA_PART(Derived, AnyModule);

 public:
  explicit StackBase(const Options& given) : options(given) { reset(); }
  void reset() override {
    LAMELLA_CHECK_VALUE(options.num_layers() > 0,
                        "Transformer: expected 'num_layers' to be positive, got ",
                        options.num_layers());
    layers = ModuleList();
    this->register_module("layers", layers);
    for (int64_t i = 0; i < options.num_layers(); ++i) {
      layers->push_back(std::dynamic_pointer_cast<Layer>(options.layer()->clone()));
    }
    norm = options.norm();
    if (!norm.is_empty()) this->register_module("norm", norm.ptr());
  }
  void reset_parameters() {
    for (size_t i = 0; i < layers->size(); ++i) layers->template at<Layer>(i).reset_parameters();
  }

  Options options;
  ModuleList layers{nullptr};
  AnyModule norm;

 protected:
  template <class... A>
  Tensor through(Tensor x, const A&... others) {
    for (size_t i = 0; i < layers->size(); ++i) {
      x = layers->template at<Layer>(i).forward(x, others...);
    }
    return norm.is_empty() ? x : norm.forward(x);
  }

 private:
  using Layer = typename Options::LayerType::ContainedType;
};
}  // namespace detail

using TransformerEncoderOptions =
    detail::StackOptions<TransformerEncoderLayer, TransformerEncoderLayerOptions>;
using TransformerDecoderOptions =
    detail::StackOptions<TransformerDecoderLayer, TransformerDecoderLayerOptions>;

LAMELLA_LAZY class TransformerEncoderImplOf
    : public detail::StackBase<TransformerEncoderImplOf<lazy_>, TransformerEncoderOptions> {
  LAMELLA_PART(TransformerEncoderImplOf, TransformerEncoderLayer);
  LAMELLA_PART(TransformerEncoderImplOf, TransformerEncoderOptions);
  using Base = detail::StackBase<TransformerEncoderImplOf, TransformerEncoderOptions>;

 public:
  using Base::Base;
  TransformerEncoderImplOf(TransformerEncoderLayer layer, int64_t num_layers)
      : Base(TransformerEncoderOptions(std::move(layer), num_layers)) {}
  Tensor forward(const Tensor& src, const Tensor& src_mask = {},
                 const Tensor& src_key_padding_mask = {}) {
    return this->through(src, src_mask, src_key_padding_mask);
  }
};
LAMELLA_LAZY_MODULE(TransformerEncoder)

LAMELLA_LAZY class TransformerDecoderImplOf
    : public detail::StackBase<TransformerDecoderImplOf<lazy_>, TransformerDecoderOptions> {
  LAMELLA_PART(TransformerDecoderImplOf, TransformerDecoderLayer);
  LAMELLA_PART(TransformerDecoderImplOf, TransformerDecoderOptions);
  using Base = detail::StackBase<TransformerDecoderImplOf, TransformerDecoderOptions>;

 public:
  using Base::Base;
  TransformerDecoderImplOf(TransformerDecoderLayer layer, int64_t num_layers)
      : Base(TransformerDecoderOptions(std::move(layer), num_layers)) {}
  Tensor forward(const Tensor& tgt, const Tensor& memory, const Tensor& tgt_mask = {},
                 const Tensor& memory_mask = {}, const Tensor& tgt_key_padding_mask = {},
                 const Tensor& memory_key_padding_mask = {}) {
    return this->through(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask,
                         memory_key_padding_mask);
  }
};
LAMELLA_LAZY_MODULE(TransformerDecoder)

struct TransformerOptions {
  TransformerOptions() = default;
  TransformerOptions(int64_t d_model, int64_t nhead) : d_model_(d_model), nhead_(nhead) {}
  TransformerOptions(int64_t d_model, int64_t nhead, int64_t num_encoder_layers,
                     int64_t num_decoder_layers)
      : d_model_(d_model),
        nhead_(nhead),
        num_encoder_layers_(num_encoder_layers),
        num_decoder_layers_(num_decoder_layers) {}
  LAMELLA_OPTION(int64_t, d_model) = 512;
  LAMELLA_OPTION(int64_t, nhead) = 8;
  LAMELLA_OPTION(int64_t, num_encoder_layers) = 6;
  LAMELLA_OPTION(int64_t, num_decoder_layers) = 6;
  LAMELLA_OPTION(int64_t, dim_feedforward) = 2048;
  LAMELLA_OPTION(double, dropout) = 0.1;
  LAMELLA_OPTION(LayerActivation, activation) = kReLU;
  // Modules that stand for the encoder and the decoder, with their arguments of forward().
  LAMELLA_OPTION(AnyModule, custom_encoder);
  LAMELLA_OPTION(AnyModule, custom_decoder);
};

// An encoder of src, and a decoder of tgt that attends to the encoder's result.
LAMELLA_LAZY class TransformerImplOf : public Cloneable<TransformerImplOf<lazy_>> {
  LAMELLA_PART(TransformerImplOf, TransformerEncoder);
  LAMELLA_PART(TransformerImplOf, TransformerDecoder);
  LAMELLA_PART(TransformerImplOf, TransformerEncoderOptions);
  LAMELLA_PART(TransformerImplOf, TransformerDecoderOptions);
  LAMELLA_PART(TransformerImplOf, AnyModule);
  LAMELLA_PART(TransformerImplOf, LayerNorm);

 public:
  explicit TransformerImplOf(const TransformerOptions& given = {}) : options(given) { reset(); }
  TransformerImplOf(int64_t d_model, int64_t nhead)
      : TransformerImplOf(TransformerOptions(d_model, nhead)) {}
  void reset() override {
    auto layer = TransformerEncoderLayerOptions(options.d_model(), options.nhead())
                     .dim_feedforward(options.dim_feedforward())
                     .dropout(options.dropout())
                     .activation(options.activation());
    auto norm = [&] { return AnyModule(LayerNorm(std::vector<int64_t>{options.d_model()})); };
    encoder = options.custom_encoder();
    if (encoder.is_empty()) {
      encoder = AnyModule(TransformerEncoder(
          TransformerEncoderOptions(layer, options.num_encoder_layers()).norm(norm())));
    }
    this->register_module("encoder", encoder.ptr());
    decoder = options.custom_decoder();
    if (decoder.is_empty()) {
      decoder = AnyModule(
          TransformerDecoder(TransformerDecoderOptions(TransformerDecoderLayerOptions(layer),
                                                       options.num_decoder_layers())
                                 .norm(norm())));
    }
    this->register_module("decoder", decoder.ptr());
    reset_parameters();
  }
  void reset_parameters() {
    for (const Tensor& parameter : this->parameters()) {
      if (parameter.dim() > 1) init::xavier_uniform_(parameter);
    }
  }
  Tensor forward(const Tensor& src, const Tensor& tgt, const Tensor& src_mask = {},
                 const Tensor& tgt_mask = {}, const Tensor& memory_mask = {},
                 const Tensor& src_key_padding_mask = {}, const Tensor& tgt_key_padding_mask = {},
                 const Tensor& memory_key_padding_mask = {}) {
    LAMELLA_CHECK(src.dim() == 3 && tgt.dim() == 3 && src.size(1) == tgt.size(1) &&
                      src.size(2) == options.d_model() && tgt.size(2) == options.d_model(),
                  "Transformer: expected 'src' and 'tgt' to be [*, N, ", options.d_model(),
                  "], got ", src.sizes(), " and ", tgt.sizes());
    Tensor memory = encoder.forward(src, src_mask, src_key_padding_mask);
    return decoder.forward(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask,
                           memory_key_padding_mask);
  }
  // Added to the scores, it masks later steps out.
  static Tensor generate_square_subsequent_mask(int64_t size) {
    return lamella::full({size, size}, -std::numeric_limits<double>::infinity(),
                         TensorOptions(kFloat))
        .triu(1);
  }

  TransformerOptions options;
  AnyModule encoder, decoder;
};
LAMELLA_LAZY_MODULE(Transformer)

}  // namespace lamella::nn
