// The modules that networks.cpp and sequences.cpp leave out, the printed form of all modules, and
// the optimizers and schedulers besides Adam.
#include <torch/torch.h>

#include <iostream>
#include <sstream>

namespace {
namespace F = torch::nn::functional;
namespace nn = torch::nn;
using Tensors = std::vector<at::Tensor>;
using Modules = torch::OrderedDict<std::string, std::shared_ptr<nn::Module>>;

struct BlockImpl : nn::Module {
  BlockImpl() : inner(register_module("inner", nn::Linear(2, 3))) {
    register_module("list", nn::ModuleList(nn::ReLU(), nn::ELU(nn::ELUOptions().alpha(0.5))));
  }
  nn::Linear inner;
};
TORCH_MODULE(Block);

struct ShownImpl : nn::Cloneable<ShownImpl> {
  void reset() override {}
  void pretty_print(std::ostream& stream) const override { stream << "Shown(by itself)"; }
};
TORCH_MODULE(Shown);

std::string printed() {
  std::ostringstream out;
  auto show = [&](auto... modules) { ((out << modules << "\n"), ...); };
  show(nn::Linear(2, 3), nn::Linear(nn::LinearOptions(2, 3).bias(false)), nn::Identity(),
       nn::Bilinear(2, 3, 4), nn::Flatten(), nn::Unflatten(nn::UnflattenOptions(1, {2, 3})),
       nn::Embedding(4, 5), nn::Embedding(nn::EmbeddingOptions(4, 5).padding_idx(1)),
       nn::EmbeddingBag(nn::EmbeddingBagOptions(4, 5).mode(torch::kSum)), Shown());
  show(nn::Conv1d(2, 4, 3),
       nn::Conv2d(nn::Conv2dOptions(2, 4, {3, 1}).stride(2).padding({1, 0}).dilation(2).groups(2)),
       nn::Conv3d(nn::Conv3dOptions(1, 2, 3).bias(false).padding(1).padding_mode(torch::kCircular)),
       nn::ConvTranspose2d(nn::ConvTranspose2dOptions(2, 4, 3).stride(2).output_padding(1)));
  show(nn::BatchNorm2d(3), nn::BatchNorm1d(nn::BatchNorm1dOptions(3).affine(false).momentum(0.25)),
       nn::InstanceNorm1d(3), nn::LayerNorm(nn::LayerNormOptions({2, 3}).eps(1e-6)),
       nn::GroupNorm(2, 4), nn::LocalResponseNorm(2), nn::CrossMapLRN2d(3));
  show(nn::Dropout(0.25), nn::Dropout2d(), nn::AlphaDropout(0.1), nn::FeatureAlphaDropout());
  show(nn::ReLU(), nn::ReLU(nn::ReLUOptions(true)), nn::ReLU6(), nn::SELU(), nn::ELU(), nn::CELU(),
       nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(0.2)), nn::GELU(), nn::GLU(), nn::SiLU(),
       nn::Mish(), nn::Softplus(), nn::Softsign(), nn::Tanh(), nn::Tanhshrink(), nn::Sigmoid(),
       nn::LogSigmoid(), nn::Hardtanh(), nn::Hardshrink(), nn::Softshrink(0.25), nn::PReLU(),
       nn::PReLU(nn::PReLUOptions().num_parameters(3)), nn::RReLU(), nn::Softmax(1), nn::Softmin(0),
       nn::LogSoftmax(1), nn::Softmax2d(), nn::Threshold(0.5, 20));
  show(nn::MaxPool2d(2), nn::MaxPool1d(nn::MaxPool1dOptions(3).stride(2).ceil_mode(true)),
       nn::AvgPool2d(nn::AvgPool2dOptions({2, 3}).padding(1)), nn::AdaptiveAvgPool2d(3),
       nn::AdaptiveMaxPool3d(nn::AdaptiveMaxPool3dOptions({1, 2, 3})), nn::MaxUnpool2d(2),
       nn::FractionalMaxPool2d(nn::FractionalMaxPool2dOptions(2).output_size(3)),
       nn::LPPool1d(2, 3), nn::LPPool2d(nn::LPPool2dOptions(1, 2).ceil_mode(true)));
  show(nn::ReflectionPad1d(2), nn::ReplicationPad2d(nn::ReplicationPad2dOptions({1, 2, 3, 4})),
       nn::ZeroPad2d(1), nn::ConstantPad3d(1, 0.5), nn::PixelShuffle(2), nn::PixelUnshuffle(3),
       nn::Upsample(nn::UpsampleOptions().scale_factor(std::vector<double>{2.5})),
       nn::Upsample(nn::UpsampleOptions()
                        .size(std::vector<int64_t>{4, 5})
                        .mode(torch::kBilinear)
                        .align_corners(true)),
       nn::Fold(nn::FoldOptions({4, 5}, 2)), nn::Unfold(nn::UnfoldOptions({2, 3}).padding(1)),
       nn::CosineSimilarity(), nn::PairwiseDistance(nn::PairwiseDistanceOptions().keepdim(true)));
  show(nn::L1Loss(), nn::MSELoss(), nn::BCELoss(), nn::BCEWithLogitsLoss(), nn::NLLLoss(),
       nn::CrossEntropyLoss(), nn::KLDivLoss(),
       nn::HingeEmbeddingLoss(nn::HingeEmbeddingLossOptions().margin(2)), nn::MultiMarginLoss(),
       nn::CosineEmbeddingLoss(), nn::MultiLabelMarginLoss(), nn::SoftMarginLoss(),
       nn::MultiLabelSoftMarginLoss(), nn::TripletMarginLoss(), nn::TripletMarginWithDistanceLoss(),
       nn::CTCLoss(), nn::PoissonNLLLoss(), nn::MarginRankingLoss());
  show(nn::RNN(2, 3), nn::LSTM(nn::LSTMOptions(2, 3).num_layers(2).bidirectional(true)),
       nn::GRU(nn::GRUOptions(2, 3).bias(false).batch_first(true).dropout(0.5)), nn::RNNCell(2, 3),
       nn::LSTMCell(nn::LSTMCellOptions(2, 3).bias(false)), nn::GRUCell(2, 3),
       nn::RNNCell(nn::RNNCellOptions(2, 3).nonlinearity(torch::kReLU)),
       nn::MultiheadAttention(4, 2));
  nn::ParameterList list(torch::ones({2}), torch::zeros({1, 3}));
  nn::ParameterDict dict;
  dict->insert("w", torch::ones({2, 2}));
  show(nn::Sequential(nn::Linear(1, 2), nn::Dropout(), nn::Functional(torch::relu)),
       nn::Sequential({{"first", nn::Linear(1, 2)}, {"act", nn::Tanh()}}), nn::ModuleList(),
       Block(), list, dict, nn::ModuleDict(Modules{{"a", nn::ReLU().ptr()}}));
  for (double low : {-1.0, 1.0, 2.0}) {
    try {
      show(nn::Hardtanh(nn::HardtanhOptions().min_val(low).max_val(1)));
    } catch (const c10::Error&) {
      out << "no bounds\n";
    }
  }
  out << *Block() << Block()->name().substr(Block()->name().rfind(':') + 1) << " "
      << nn::Linear(1, 2)->name() << " " << nn::Tanh()->name();
  return out.str();
}

Tensors losses(const at::Tensor& x, const at::Tensor& y) {
  auto signs = y.sign();
  auto labels = torch::tensor({0, 2, 1, 2}, torch::kLong);
  auto many = torch::tensor({{1, 0, -1}, {2, -1, 0}, {0, 1, 2}, {-1, 1, 0}}, torch::kLong);
  auto weight = torch::tensor({0.5, 1.0, 2.0}).to(x.dtype());
  auto log_probs = torch::log_softmax(torch::stack({x, y, x * y, x + y, x - y}), 2);
  auto targets = torch::tensor({{1, 2}, {2, 1}, {1, 1}, {2, 2}}, torch::kLong);
  auto lengths = torch::tensor({5, 4, 5, 5}, torch::kLong), two = torch::full({4}, 2, torch::kLong);
  return {
      F::hinge_embedding_loss(x, signs, F::HingeEmbeddingLossFuncOptions().margin(0.5)),
      F::multi_margin_loss(x, labels, F::MultiMarginLossFuncOptions().margin(0.7).weight(weight)),
      nn::MultiMarginLoss(nn::MultiMarginLossOptions().p(2).reduction(torch::kNone))(x, labels),
      F::cosine_embedding_loss(x, y, signs.select(1, 0),
                               F::CosineEmbeddingLossFuncOptions().margin(0.1)),
      F::multilabel_margin_loss(x, many, torch::kSum),
      F::soft_margin_loss(x, signs, torch::kMean),
      F::multilabel_soft_margin_loss(
          x, signs.clamp_min(0),
          F::MultilabelSoftMarginLossFuncOptions().weight(weight).reduction(torch::kNone)),
      F::triplet_margin_loss(x, y, y.flip(0),
                             F::TripletMarginLossFuncOptions().margin(0.4).p(1).swap(true)),
      F::triplet_margin_with_distance_loss(
          x, y, y.flip(0),
          F::TripletMarginWithDistanceLossFuncOptions()
              .distance_function(
                  [](const at::Tensor& a, const at::Tensor& b) { return (a - b).abs().amax(-1); })
              .reduction(torch::kSum)),
      nn::TripletMarginWithDistanceLoss()(x, y, y.flip(0)),
      F::ctc_loss(log_probs, targets, lengths, two, F::CTCLossFuncOptions().zero_infinity(true)),
      nn::CTCLoss(nn::CTCLossOptions().reduction(torch::kSum))(log_probs, targets, lengths, two),
      F::poisson_nll_loss(x, y.abs(), F::PoissonNLLLossFuncOptions().full(true)),
      nn::PoissonNLLLoss(nn::PoissonNLLLossOptions().log_input(false))(x.abs(), y.abs() * 3),
      F::margin_ranking_loss(x, y, signs, F::MarginRankingLossFuncOptions().margin(0.2)),
      nn::MarginRankingLoss()(x, y, signs),
      F::pdist(x),
      nn::CosineSimilarity()(x, y),
      nn::PairwiseDistance()(x, y),
      nn::HingeEmbeddingLoss()(x, signs),
      nn::CosineEmbeddingLoss()(x, y, signs.select(1, 1)),
      nn::SoftMarginLoss()(x, signs),
      nn::MultiLabelMarginLoss()(x, many),
      nn::MultiLabelSoftMarginLoss()(x, signs.clamp_min(0)),
      nn::TripletMarginLoss()(x, y, y.flip(0)),
  };
}

Tensors activations(const at::Tensor& x) {
  torch::manual_seed(4);
  nn::RReLU random;
  auto drawn = random(x);
  auto hot = F::gumbel_softmax(x, F::GumbelSoftmaxFuncOptions().hard(true).dim(1));
  random->eval();
  nn::PReLU leak(nn::PReLUOptions().num_parameters(3).init(0.1));
  nn::AlphaDropout alpha(0.5);
  nn::FeatureAlphaDropout feature(0.5);
  auto a = alpha(x), b = feature(x.view({1, 4, 3})), c = F::alpha_dropout(x);
  auto y = x.clone();
  F::threshold(y, F::ThresholdFuncOptions(0.1, 20).inplace(true));
  return {drawn,
          hot,
          random(x),
          leak(x),
          a,
          b,
          c,
          y,
          F::rrelu(x, F::RReLUFuncOptions().lower(0.1).upper(0.2)),
          F::hardshrink(x),
          nn::Hardshrink(nn::HardshrinkOptions(0.3))(x),
          F::softshrink(x, 0.2),
          nn::Softshrink()(x),
          nn::Tanhshrink()(x),
          nn::Softmin(1)(x),
          F::softmin(x, F::SoftminFuncOptions(0)),
          nn::Softmax2d()(x.view({1, 2, 2, 3})),
          nn::Threshold(-0.2, 7)(x)};
}

Tensors windows(const at::Tensor& x) {  // [1, 2, 6, 6]
  auto [most, where] = F::max_pool2d_with_indices(x, F::MaxPool2dFuncOptions(2));
  auto line = x.flatten(2);
  auto cube = x.unsqueeze(2).expand({1, 2, 6, 6, 6}) * torch::arange(6).view({6, 1, 1});
  auto [line_most, line_where] = nn::MaxPool1d(3)->forward_with_indices(line);
  auto [cube_most, cube_where] = F::max_pool3d_with_indices(cube, F::MaxPool3dFuncOptions(2));
  auto [fit, fit_where] =
      F::adaptive_max_pool2d_with_indices(x, F::AdaptiveMaxPool2dFuncOptions(3));
  auto samples = torch::full({1, 2, 2}, 0.3);
  nn::FractionalMaxPool2d part(
      nn::FractionalMaxPool2dOptions(2).output_ratio(0.5)._random_samples(samples));
  auto kept = F::MaxUnpool2dFuncOptions(2).output_size(std::vector<int64_t>{1, 2, 6, 6});
  return {
      most,
      where,
      line_most,
      line_where,
      cube_most,
      cube_where,
      fit,
      fit_where,
      nn::MaxUnpool2d(2)(most, where),
      F::max_unpool2d(most, where, kept),
      nn::MaxUnpool1d(3)(line_most, line_where),
      nn::MaxUnpool3d(2)(cube_most, cube_where),
      part(x),
      std::get<1>(part->forward_with_indices(x)),
      F::lp_pool1d(line.abs(), F::LPPool1dFuncOptions(2, 3).stride(2)),
      F::lp_pool2d(x.abs(), F::LPPool2dFuncOptions(3, {2, 3})),
      nn::LPPool2d(2, 2)(x),
      F::local_response_norm(x, F::LocalResponseNormFuncOptions(2)),
      nn::LocalResponseNorm(nn::LocalResponseNormOptions(3).alpha(0.1).k(2))(x),
      nn::CrossMapLRN2d(nn::CrossMapLRN2dOptions(3).alpha(0.1))(x),
      nn::ReflectionPad1d(2)(line),
      nn::ReflectionPad2d(nn::ReflectionPad2dOptions({1, 2, 0, 1}))(x),
      nn::ReplicationPad2d(1)(x),
      nn::ReplicationPad3d(1)(cube),
      nn::ZeroPad2d(nn::ZeroPad2dOptions({1, -1, 0, 2}))(x),
      nn::ConstantPad1d(2, 0.5)(line),
      nn::ConstantPad2d(1, -3)(x),
      nn::PixelUnshuffle(2)(x),
      nn::PixelShuffle(2)(nn::PixelUnshuffle(2)(x)),
      nn::Upsample(nn::UpsampleOptions()
                       .scale_factor(std::vector<double>{1.5, 2})
                       .mode(torch::kBilinear)
                       .align_corners(false))(x),
      nn::Fold(nn::FoldOptions({6, 6}, 2).stride(2))(nn::Unfold(nn::UnfoldOptions(2).stride(2))(x)),
      nn::Unflatten(nn::UnflattenOptions(2, {4, 9}))(line),
  };
}

Tensors layers(int64_t seed) {
  torch::manual_seed(seed);
  nn::Bilinear both(nn::BilinearOptions(2, 3, 4));
  Tensors results{both(torch::ones({5, 2}), torch::full({5, 3}, 0.5)).detach()};
  nn::InstanceNorm2d each(nn::InstanceNorm2dOptions(2).affine(true).track_running_stats(true));
  auto images = torch::randn({2, 2, 3, 4});
  results.push_back(each(images).detach());
  each->eval();
  results.push_back(each(images).detach());
  for (auto& buffer : each->buffers()) results.push_back(buffer);
  auto words = torch::tensor({1, 2, 4, 5, 4, 3, 2, 9}, torch::kLong);
  auto starts = torch::tensor({0, 3, 3, 6}, torch::kLong);
  for (auto mode : {0, 1, 2}) {
    nn::EmbeddingBagOptions options(10, 3);
    if (mode == 1) options.mode(torch::kSum);
    if (mode == 2) options.mode(torch::kMax).padding_idx(4);
    nn::EmbeddingBag bag(options);
    results.push_back(bag(words, starts).detach());
    results.push_back(bag(words.view({2, 4})).detach());
  }
  auto table = torch::arange(12, torch::kFloat).view({4, 3});
  auto kept =
      nn::Embedding::from_pretrained(table, nn::EmbeddingFromPretrainedOptions().freeze(false));
  results.push_back(kept(torch::tensor({3, 0}, torch::kLong)).detach());
  results.push_back(torch::tensor(static_cast<double>(kept->weight.requires_grad())));
  auto sums = nn::EmbeddingBag::from_pretrained(
      table, nn::EmbeddingBagFromPretrainedOptions().mode(torch::kSum));
  auto shares = torch::tensor({0.5, 2.0, 1.0, -1.0}).view({2, 2});
  results.push_back(
      sums(torch::tensor({{3, 0}, {1, 1}}, torch::kLong), at::Tensor(), shares).detach());
  nn::Embedding bounded(nn::EmbeddingOptions(4, 3).max_norm(1.5).norm_type(1));
  results.push_back(bounded(torch::tensor({3, 0}, torch::kLong)).detach());
  results.push_back(bounded->weight.detach());
  nn::AdaptiveLogSoftmaxWithLoss adaptive(
      nn::AdaptiveLogSoftmaxWithLossOptions(8, 12, {4, 8}).div_value(2.0).head_bias(true));
  auto input = torch::randn({6, 8});
  auto scored = adaptive(input, torch::tensor({0, 5, 11, 3, 8, 4}, torch::kLong));
  results.push_back(scored.output.detach());
  results.push_back(torch::tensor(scored.loss));
  results.push_back(adaptive->log_prob(input).detach());
  results.push_back(adaptive->predict(input));
  nn::ModuleDict dict(Modules{{"a", nn::Linear(2, 2).ptr()}, {"b", nn::ReLU().ptr()}});
  dict->update(Modules{{"c", nn::Tanh().ptr()}});
  results.push_back(torch::tensor(static_cast<double>(dict->size()) + dict->contains("b")));
  results.push_back((*dict)["a"]->as<nn::Linear>()->forward(torch::ones({1, 2})).detach());
  dict->pop("a");
  nn::ParameterDict weights;
  weights->insert("w", torch::ones({2}));
  nn::ParameterList list(torch::ones({2}), torch::zeros({3}));
  list->append(torch::full({1}, 4.0));
  double total = static_cast<double>(list->size() + weights->size() + dict->size());
  for (const auto& item : *list) total += item.value().sum().item<double>();
  results.push_back(torch::tensor(total + (*weights)["w"].sum().item<double>()));
  auto vector = nn::utils::parameters_to_vector(both->parameters()).detach();
  results.push_back(vector);
  nn::utils::vector_to_parameters(vector * 2, both->parameters());
  results.push_back(both->bias.detach());
  return results;
}

// Parameters and losses of some steps on one problem.
Tensors optimize(std::string kind) {
  auto x = torch::linspace(-1, 1, 12, torch::kDouble).view({6, 2});
  auto w = torch::tensor({0.5, -1.0}, torch::kDouble).requires_grad_();
  auto b = torch::tensor({2.0}, torch::kDouble).requires_grad_();
  auto target = (x.select(1, 0) * 3 - x.select(1, 1)).exp();
  std::unique_ptr<torch::optim::Optimizer> steps;
  Tensors params{w, b};
  if (kind == "adagrad") {
    steps = std::make_unique<torch::optim::Adagrad>(params, torch::optim::AdagradOptions(0.1)
                                                                .lr_decay(0.01)
                                                                .weight_decay(0.1)
                                                                .initial_accumulator_value(0.5));
  } else if (kind == "rmsprop") {
    steps = std::make_unique<torch::optim::RMSprop>(params, torch::optim::RMSpropOptions(0.05));
  } else if (kind == "rmsprop_all") {
    steps = std::make_unique<torch::optim::RMSprop>(
        params,
        torch::optim::RMSpropOptions(0.05).momentum(0.9).centered(true).weight_decay(0.1).alpha(
            0.9));
  } else {
    torch::optim::LBFGSOptions options(0.5);
    options.max_iter(4).history_size(3);
    if (kind == "lbfgs_wolfe") options.line_search_fn("strong_wolfe");
    steps = std::make_unique<torch::optim::LBFGS>(params, options);
  }
  torch::optim::StepLR decay(*steps, 2, 0.5);
  torch::optim::ReduceLROnPlateauScheduler plateau(
      *steps, torch::optim::ReduceLROnPlateauScheduler::min, 0.5, 1);
  Tensors results;
  for (int i = 0; i < 6; ++i) {
    auto loss = steps->step([&] {
      steps->zero_grad();
      auto value = torch::mse_loss(torch::mv(x, w) + b, target);
      value.backward();
      return value;
    });
    if (i < 3) {
      decay.step();
    } else {
      plateau.step(i == 4 ? 1.f : 100.f);
    }
    results.push_back(loss.detach());
    results.push_back(torch::tensor(steps->param_groups()[0].options().get_lr()));
    results.push_back(torch::cat({w, b}).detach());
  }
  std::stringstream file;
  if (kind == "adagrad" || kind == "rmsprop_all") {
    torch::save(*steps, file);
    torch::load(*steps, file);
    steps->step();
    results.push_back(torch::cat({w, b}).detach());
  }
  return results;
}

TORCH_LIBRARY(compat_modules, m) {
  m.def("printed() -> str", &printed);
  m.def("losses(Tensor x, Tensor y) -> Tensor[]", &losses);
  m.def("activations(Tensor x) -> Tensor[]", &activations);
  m.def("windows(Tensor x) -> Tensor[]", &windows);
  m.def("layers(int seed) -> Tensor[]", &layers);
  m.def("optimize(str kind) -> Tensor[]", &optimize);
}
}  // namespace
