// Recurrent modules, packed sequences, attention, data sets and their loaders, files.
#include <torch/torch.h>

#include <cmath>
#include <sstream>

namespace {
namespace data = torch::data;
namespace nn = torch::nn;
namespace rnn = torch::nn::utils::rnn;
using torch::Tensor;

void add_gradients(std::vector<Tensor>& all, nn::Module& module) {
  for (auto& item : module.named_parameters()) all.push_back(item.value().grad());
}

std::vector<Tensor> layers(int64_t seed) {
  torch::manual_seed(seed);
  Tensor x = torch::randn({5, 3, 4});
  std::vector<Tensor> all;
  nn::LSTM lstm(nn::LSTMOptions(4, 6).num_layers(2).bidirectional(true));
  auto [output, state] = lstm->forward(x);
  all.insert(all.end(), {output, std::get<0>(state), std::get<1>(state)});
  (output.pow(2).sum() + std::get<1>(state).sum()).backward();
  add_gradients(all, *lstm);
  all.push_back(std::get<0>(lstm->forward(x, state)));

  nn::LSTM projected(nn::LSTMOptions(4, 6).proj_size(2).batch_first(true));
  auto [short_output, short_state] = projected(x);
  all.insert(all.end(), {short_output, std::get<0>(short_state), std::get<1>(short_state)});

  nn::GRU gru(nn::GRUOptions(4, 5).bias(false).batch_first(true));
  auto [gru_output, gru_state] = gru(x);
  all.insert(all.end(), {gru_output, gru_state});
  gru_output.sum().backward();
  add_gradients(all, *gru);
  auto twin = std::dynamic_pointer_cast<nn::GRUImpl>(gru->clone());
  all.push_back(std::get<0>(twin->forward(x)));

  nn::RNN plain(nn::RNNOptions(4, 5).nonlinearity(torch::kReLU).num_layers(2).dropout(0.5));
  plain->eval();
  all.push_back(std::get<0>(plain(x)));

  nn::LSTMCell lstm_cell(4, 3);
  auto [h, c] = lstm_cell(x[0]);
  auto [next_h, next_c] = lstm_cell(x[1], std::make_tuple(h, c));
  all.insert(all.end(), {next_h, next_c});
  nn::GRUCell gru_cell(4, 3);
  all.push_back(gru_cell(x[0], gru_cell(x[1])));
  nn::RNNCell cell(nn::RNNCellOptions(4, 3).nonlinearity(torch::kReLU).bias(false));
  all.push_back(cell(x[0]));

  auto packed = rnn::pack_padded_sequence(x, torch::tensor({2, 5, 4}), false, false);
  all.insert(all.end(), {packed.data(), packed.batch_sizes(), packed.sorted_indices()});
  auto [rows, last] = lstm->forward_with_packed_input(packed);
  auto [padded, lengths] = rnn::pad_packed_sequence(rows, true, -1.0, 6);
  all.insert(all.end(), {padded, lengths, std::get<0>(last)});
  all.push_back(rnn::pad_sequence({x[0], x.select(1, 0)}, true, 9));
  return all;
}

std::vector<Tensor> attention(int64_t seed) {
  torch::manual_seed(seed);
  Tensor q = torch::randn({3, 2, 8}), k = torch::randn({5, 2, 8}), narrow = torch::randn({5, 2, 6});
  std::vector<Tensor> all;
  auto add = [&](const std::tuple<Tensor, Tensor>& pair) {
    all.insert(all.end(), {std::get<0>(pair), std::get<1>(pair)});
  };
  nn::MultiheadAttention plain(8, 2);
  add(plain(q, k, k));
  Tensor padding = torch::zeros({2, 5}, torch::kBool);
  padding[1][4] = true;
  Tensor mask = torch::full({3, 5}, -INFINITY).triu(3);
  add(plain(q, k, k, padding, true, mask, false));
  nn::MultiheadAttention mixed(
      nn::MultiheadAttentionOptions(8, 4).kdim(6).vdim(6).add_bias_kv(true).add_zero_attn(true));
  add(mixed(q, narrow, narrow, padding, true, torch::randn({3, 5})));
  all[4].sum().backward();
  add_gradients(all, *mixed);

  nn::TransformerEncoder encoder(
      nn::TransformerEncoderOptions(
          nn::TransformerEncoderLayerOptions(8, 2).dim_feedforward(16).activation(torch::kGELU), 2)
          .norm(nn::AnyModule(nn::LayerNorm(nn::LayerNormOptions({8})))));
  encoder->eval();
  all.push_back(encoder->forward(k, torch::zeros({5, 5}), padding));
  nn::TransformerDecoder decoder(nn::TransformerDecoderOptions(
      nn::TransformerDecoderLayerOptions(8, 2).dim_feedforward(16).dropout(0), 2));
  all.push_back(decoder->forward(q, k, torch::full({3, 3}, -INFINITY).triu(1), {}, {}, padding));
  nn::Transformer both(nn::TransformerOptions(8, 2, 2, 1).dim_feedforward(16));
  both->eval();
  Tensor causal = nn::TransformerImpl::generate_square_subsequent_mask(3);
  all.push_back(both->forward(k, q, {}, causal));
  auto twin = std::dynamic_pointer_cast<nn::TransformerImpl>(both->clone());
  all.push_back(twin->forward(k, q, {}, causal));
  all.push_back(torch::tensor(static_cast<int64_t>(both->named_parameters().size())));
  return all;
}

struct Squares : data::datasets::Dataset<Squares> {
  explicit Squares(size_t count) : count(count) {}
  data::Example<> get(size_t i) override {
    if (i == 95) throw std::runtime_error("example 95");
    auto x = static_cast<double>(i);
    return {torch::full({2, 1, 1}, x), torch::full({1}, x * x)};
  }
  torch::optional<size_t> size() const override { return count; }
  size_t count;
};
// Gives batches of growing numbers until there have been seven.
struct Stream : data::datasets::StreamDataset<Stream, std::vector<int64_t>> {
  std::vector<int64_t> get_batch(size_t size) override {
    std::vector<int64_t> batch;
    for (size_t i = 0; i < size; ++i) batch.push_back(next++);
    return batch;
  }
  torch::optional<size_t> size() const override { return torch::nullopt; }
  int64_t next = 0;
};

std::vector<Tensor> batches(int64_t seed, int64_t workers) {
  torch::manual_seed(seed);
  std::vector<Tensor> all;
  auto options = data::DataLoaderOptions(4).workers(static_cast<size_t>(workers));
  auto random =
      data::make_data_loader(Squares(10)
                                 .map(data::transforms::Normalize<>({0.5, 1.5}, {2.0, 4.0}))
                                 .map(data::transforms::Stack<>()),
                             options);
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (auto& batch : *random) all.insert(all.end(), {batch.data, batch.target});
  }
  auto in_order = data::make_data_loader<data::samplers::SequentialSampler>(
      Squares(10)
          .map(data::transforms::Lambda<data::Example<>>([](data::Example<> example) {
            example.target = -example.target;
            return example;
          }))
          .map(data::transforms::Stack<>()),
      options.drop_last(true));
  for (auto& batch : *in_order) all.push_back(batch.target);
  auto rows = data::make_data_loader<data::samplers::SequentialSampler>(
      data::datasets::TensorDataset(torch::arange(6).view({3, 2}))
          .map(data::transforms::Stack<data::TensorExample>()),
      2);
  for (auto& batch : *rows) all.push_back(batch.data);
  auto stream = data::make_data_loader(Stream(), data::samplers::StreamSampler(7), 3);
  for (auto& batch : *stream) all.push_back(torch::tensor(batch));
  // What a worker throws arrives in the order of the batches.
  auto failing = data::make_data_loader<data::samplers::SequentialSampler>(
      Squares(100).map(data::transforms::Stack<>()), options.batch_size(10));
  int64_t before = 0;
  try {
    for (auto& batch : *failing) before += batch.data.size(0);
  } catch (const std::exception& error) {
    before += std::string(error.what()).find("example 95") != std::string::npos ? 1000 : 0;
  }
  data::samplers::DistributedSequentialSampler share(10, 3, 2);
  share.reset();
  const std::vector<size_t> mine = share.next(100).value();
  for (size_t i : mine) all.push_back(torch::tensor(static_cast<int64_t>(i)));
  all.push_back(torch::tensor(before));
  return all;
}

// A network with its two optimizers, which files keep between steps.
struct Training {
  explicit Training(int64_t seed)
      : net((torch::manual_seed(seed), nn::Conv2d(1, 2, 3)), nn::BatchNorm2d(2), nn::ReLU(),
            nn::Functional(torch::relu), nn::Flatten(), nn::Linear(72, 3)),
        adam(net->parameters(),
             torch::optim::AdamOptions(0.001).betas(std::make_tuple(0.8, 0.95)).amsgrad(seed != 0)),
        sgd(net->parameters(), torch::optim::SGDOptions(0.001).momentum(seed != 0 ? 0.5 : 0.1)) {}
  Tensor step() {
    Tensor x = torch::linspace(-1, 1, 256).view({4, 1, 8, 8});
    adam.zero_grad();
    Tensor loss = net->forward(torch::cos(x * 9)).pow(2).sum();
    loss.backward();
    adam.step();
    sgd.step();
    return loss.detach();
  }
  nn::Sequential net;
  torch::optim::Adam adam;
  torch::optim::SGD sgd;
};

// The losses of three steps after what is written.
std::vector<Tensor> write_files(std::string folder) {
  Training training(7);
  for (int i = 0; i < 2; ++i) training.step();
  torch::save(training.net, folder + "/net.pt");
  torch::save(training.adam, folder + "/adam.pt");
  torch::save(training.sgd, folder + "/sgd.pt");
  torch::save(torch::arange(6).view({2, 3}).t().to(torch::kHalf), folder + "/tensor.pt");
  torch::save(std::vector<Tensor>{torch::arange(3), torch::tensor(true),
                                  torch::zeros({0, 2}, torch::kComplexDouble)},
              folder + "/list.pt");
  return {training.step(), training.step(), training.step()};
}
std::vector<Tensor> read_files(std::string folder) {
  Training training(0);
  torch::load(training.net, folder + "/net.pt");
  torch::load(training.adam, folder + "/adam.pt");
  torch::load(training.sgd, folder + "/sgd.pt");
  std::stringstream stream;
  torch::save(training.net, stream);
  Training other(3);
  torch::load(other.net, stream);
  std::vector<Tensor> all{training.step(), training.step(), training.step()};
  Tensor tensor;
  torch::load(tensor, folder + "/tensor.pt");
  std::vector<Tensor> list;
  torch::load(list, folder + "/list.pt");
  all.push_back(tensor);
  all.insert(all.end(), list.begin(), list.end());
  all.push_back(other.net->parameters()[1]);
  return all;
}

// All parameters behind each other, from a file of torch.save() in Python, which only Lamella
// reads.
Tensor read_state(std::string file) {
  Training training(0);
  torch::load(training.net, file);
  std::vector<Tensor> all;
  for (const Tensor& parameter : training.net->parameters()) all.push_back(parameter.flatten());
  return torch::cat(all).detach();
}

TORCH_LIBRARY(compat_sequences, m) {
  m.def("write_files(str folder) -> Tensor[]", &write_files);
  m.def("read_files(str folder) -> Tensor[]", &read_files);
  m.def("read_state(str file) -> Tensor", &read_state);
  m.def("layers(int seed) -> Tensor[]", &layers);
  m.def("attention(int seed) -> Tensor[]", &attention);
  m.def("batches(int seed, int workers) -> Tensor[]", &batches);
}
}  // namespace
