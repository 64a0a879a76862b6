// Modules, functions of modules and optimizers, and the names around dtypes, lists and pointers.
#include <torch/torch.h>

#include <sstream>

namespace {
namespace F = torch::nn::functional;
namespace nn = torch::nn;

struct NetImpl : nn::Module {
  explicit NetImpl(int64_t classes)
      : conv(nn::Conv2dOptions(2, 4, 3).stride(2).padding(1).bias(false)),
        norm(4),
        fc(register_module("fc", nn::Linear(64, classes))) {
    register_module("conv", conv);
    register_module("norm", norm);
    scale = register_parameter("scale", torch::full({1}, 1.5));
    register_buffer("shift", torch::full({1}, 0.25));
  }
  torch::Tensor forward(torch::Tensor x) {
    x = F::leaky_relu(norm(conv(x)), F::LeakyReLUFuncOptions().negative_slope(0.2));
    return fc->forward(x.flatten(1)) * scale + named_buffers()["shift"];
  }
  nn::Conv2d conv;
  nn::BatchNorm2d norm;
  nn::Linear fc;
  torch::Tensor scale;
};
TORCH_MODULE(Net);

// Losses of a few steps, then all parameters and buffers.
std::vector<at::Tensor> train(int64_t seed, std::string optimizer) {
  torch::manual_seed(seed);
  Net net(5);
  std::unique_ptr<torch::optim::Optimizer> steps;
  if (optimizer == "sgd") {
    steps = std::make_unique<torch::optim::SGD>(
        net->parameters(),
        torch::optim::SGDOptions(0.1).momentum(0.9).weight_decay(0.01).nesterov(true));
  } else if (optimizer == "adamw") {
    steps = std::make_unique<torch::optim::AdamW>(
        net->parameters(), torch::optim::AdamWOptions(1e-2).weight_decay(0.1));
  } else {
    steps = std::make_unique<torch::optim::Adam>(
        net->parameters(),
        torch::optim::AdamOptions(1e-2).betas(std::make_tuple(0.8, 0.99)).amsgrad(true));
  }
  auto x = torch::randn({3, 2, 8, 8});
  auto target = torch::tensor({1, 4, 0}, torch::kLong);
  std::vector<at::Tensor> results;
  for (int i = 0; i < 4; ++i) {
    steps->zero_grad();
    auto loss = F::cross_entropy(net(x), target, F::CrossEntropyFuncOptions().label_smoothing(0.1));
    loss.backward();
    nn::utils::clip_grad_norm_(net->parameters(), 0.5);
    steps->step();
    results.push_back(loss.detach());
    for (auto& group : steps->param_groups()) group.options().set_lr(group.options().get_lr() / 2);
  }
  net->eval();
  results.push_back(net(x).detach());
  for (const auto& p : net->named_parameters()) results.push_back(p.value().detach());
  for (const auto& b : net->buffers()) results.push_back(b);
  return results;
}

std::vector<at::Tensor> layers(int64_t seed) {
  torch::manual_seed(seed);
  nn::Sequential one(nn::Linear(nn::LinearOptions(6, 8).bias(false)),
                     nn::LayerNorm(std::vector<int64_t>{8}), nn::GELU(), nn::Dropout(0.5),
                     nn::Functional(torch::softplus, 2, 20));
  one->push_back("last", nn::ELU(nn::ELUOptions().alpha(0.5)));
  one->eval();
  nn::Embedding table(nn::EmbeddingOptions(7, 6).padding_idx(2));
  auto tokens = torch::tensor({{1, 2, 3}, {6, 0, 2}}, torch::kLong);
  std::vector<at::Tensor> results{one->forward(table(tokens)).detach()};
  nn::Sequential images(
      nn::ConvTranspose2d(nn::ConvTranspose2dOptions(2, 4, {3, 2}).stride(2).output_padding(1)),
      nn::GroupNorm(2, 4), nn::ReLU6(), nn::MaxPool2d(nn::MaxPool2dOptions(2).stride(1)),
      nn::AdaptiveAvgPool2d(nn::AdaptiveAvgPool2dOptions({3, 2})),
      nn::Conv2d(nn::Conv2dOptions(4, 3, 3).padding(1).padding_mode(torch::kCircular)),
      nn::Dropout2d(0.0), nn::Flatten());
  results.push_back(images->forward(torch::randn({2, 2, 5, 4})).detach());
  images->to(torch::kFloat64);
  results.push_back(images->forward(torch::ones({1, 2, 5, 4}, torch::kFloat64)).detach());
  results.push_back(nn::Conv1d(3, 2, 2)(torch::randn({1, 3, 5})).detach());
  auto weight = torch::empty({4, 3, 2});
  results.push_back(nn::init::kaiming_normal_(weight, 0, torch::kFanOut, torch::kReLU).clone());
  results.push_back(nn::init::xavier_uniform_(weight, 2.0).clone());
  auto twin = std::dynamic_pointer_cast<nn::LinearImpl>(nn::Linear(2, 2)->clone());
  results.push_back(twin->weight.detach());
  return results;
}

std::vector<at::Tensor> functions(const at::Tensor& x, const at::Tensor& y) {
  auto grid = torch::stack({x[0], y[0]}, -1).unsqueeze(0);
  auto image = x.unsqueeze(0);
  return {
      F::pad(image, F::PadFuncOptions({1, 2, 0, 1}).mode(torch::kReflect)),
      F::pad(image, F::PadFuncOptions({1, 2}).value(0.5)),
      F::interpolate(image, F::InterpolateFuncOptions()
                                .size(std::vector<int64_t>{7, 3})
                                .mode(torch::kBilinear)
                                .align_corners(true)),
      F::interpolate(image, F::InterpolateFuncOptions().scale_factor(std::vector<double>{2, 1.5})),
      F::interpolate(
          image, F::InterpolateFuncOptions().size(std::vector<int64_t>{2, 2}).mode(torch::kArea)),
      F::interpolate(image, F::InterpolateFuncOptions()
                                .size(std::vector<int64_t>{6, 9})
                                .mode(torch::kBicubic)
                                .align_corners(false)),
      F::grid_sample(image, grid,
                     F::GridSampleFuncOptions()
                         .mode(torch::kBilinear)
                         .padding_mode(torch::kBorder)
                         .align_corners(false)),
      F::affine_grid(x.flatten().slice(0, 0, 6).reshape({1, 2, 3}), {1, 1, 2, 3}, true),
      F::unfold(image, F::UnfoldFuncOptions({2, 2}).stride(1)),
      F::normalize(x, F::NormalizeFuncOptions().p(1).dim(0)),
      F::cosine_similarity(x, y, F::CosineSimilarityFuncOptions().dim(2)),
      F::mse_loss(x, y, F::MSELossFuncOptions(torch::kSum)),
      F::smooth_l1_loss(x, y, F::SmoothL1LossFuncOptions(torch::kNone)),
      F::kl_div(x, y.abs(), F::KLDivFuncOptions(torch::kBatchMean)),
      F::binary_cross_entropy_with_logits(x, y.sigmoid()),
      F::softmax(x, F::SoftmaxFuncOptions(1)),
      F::log_softmax(x, 0),
      F::avg_pool2d(x, F::AvgPool2dFuncOptions(2).stride(1).padding(1).count_include_pad(false)),
      F::gelu(x, F::GELUFuncOptions().approximate("tanh")),
      F::one_hot(torch::tensor({0, 2}, torch::kLong), 4),
      F::layer_norm(x, F::LayerNormFuncOptions({x.size(2)})),
      F::instance_norm(image),
  };
}

struct Node : c10::intrusive_ptr_target {
  explicit Node(int64_t value) : value(value) {}
  int64_t value;
};

// What is said of dtypes, lists that share entries, and pointers that do not own.
std::string names(const at::Tensor& x) {
  std::ostringstream out;
  out << x.dtype() << " " << x.dtype().itemsize() << " " << x.dtype().name() << " "
      << x.dtype().Match<float>() << x.dtype().isScalarType(torch::kFloat)
      << (x.dtype() == torch::kFloat) << (x.dtype() == x.options().dtype())
      << (x.dtype().id() == caffe2::TypeMeta::Make<double>().id()) << " "
      << c10::typeMetaToScalarType(x.dtype()) << " " << torch::zeros({2}, x.dtype()).dtype() << " "
      << torch::ones({2}).to(x.dtype()).dtype() << " "
      << torch::ones({2}, torch::dtype(x.dtype())).scalar_type() << " "
      << c10::scalarTypeToTypeMeta(torch::kLong).name() << "\n";
  out << c10::is_complex<c10::complex<float>>::value << c10::is_complex<float>::value
      << at::is_complex(x) << torch::is_floating_point(x) << "\n";
  c10::List<int64_t> list({1, 2});
  auto same = list, other = list.copy();
  same.push_back(3);
  other.push_back(4);
  c10::Dict<std::string, int64_t> dict;
  auto twin = dict;
  twin.insert("a", 1);
  auto apart = dict.copy();
  apart.insert("b", 2);
  out << list.size() << list.is(same) << list.is(other) << other.get(2) << dict.size()
      << dict.contains("a") << dict.contains("b") << dict.is(twin) << "\n";
  auto node = c10::make_intrusive<Node>(5);
  c10::weak_intrusive_ptr<Node> weak(node);
  out << weak.expired() << weak.use_count() << weak.lock()->value;
  node.reset();
  out << weak.expired() << weak.lock().defined() << "\n";
  out << at::globalContext().deterministicAlgorithms() << torch::hasLAPACK()
      << torch::cuda::is_available() << "\n";
  nn::Sequential named({{"first", nn::Linear(1, 2)}, {"second", nn::Identity()}});
  for (auto& module : named->named_modules("net")) out << module.key() << ",";
  for (auto& p : named->named_parameters()) out << p.key() << ",";
  named->apply([&](nn::Module& module) {
    if (auto* linear = module.as<nn::Linear>()) nn::init::constant_(linear->weight, 0.5);
  });
  nn::Linear empty{nullptr};
  nn::ModuleList list_of(nn::Linear(2, 1), nn::ReLU());
  out << named->at<nn::LinearImpl>(0).weight.sum().item<float>() << empty.is_empty()
      << list_of->size() << (list_of->ptr(1)->as<nn::Linear>() == nullptr);
  return out.str();
}

TORCH_LIBRARY(compat_networks, m) {
  m.def("train(int seed, str optimizer) -> Tensor[]", &train);
  m.def("layers(int seed) -> Tensor[]", &layers);
  m.def("functions(Tensor x, Tensor y) -> Tensor[]", &functions);
  m.def("names(Tensor x) -> str", &names);
}
}  // namespace
