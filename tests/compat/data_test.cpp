// Data sets, loaders, files of optimizers, nodes of the graph and initial values under PyTorch's
// names.
#include <c10/util/complex.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/functions/basic_ops.h>
#include <torch/detail/static.h>
#include <torch/torch.h>

#include <numeric>
#include <sstream>

namespace {
namespace data = torch::data;

// Three chunks: the numbers from 0, from 10 and from 15.
struct Chunks : data::datasets::ChunkDataReader<int> {
  using BatchType = ChunkType;
  BatchType read_chunk(size_t i) override {
    const std::vector<size_t> sizes = {10, 5, 20};
    if (fails && i == 1) throw std::runtime_error("no chunk 1");
    BatchType chunk(sizes[i]);
    std::iota(chunk.begin(), chunk.end(), i == 0 ? 0 : i == 1 ? 10 : 15);
    return chunk;
  }
  size_t chunk_count() override { return 3; }
  void reset() override {}
  bool fails = false;
};
using Ordered = data::samplers::SequentialSampler;
using ChunkSet = data::datasets::ChunkDataset<Chunks, Ordered, Ordered>;

TEST(DataSets, OfChunksGiveEachExampleOnce) {
  for (size_t threads : {1, 3}) {
    for (size_t workers : {0, 2}) {
      auto set = data::datasets::make_shared_dataset<ChunkSet>(
          Chunks(), Ordered(0), Ordered(0), data::datasets::ChunkDatasetOptions(threads, 8, 10));
      auto loader = data::make_data_loader(set, data::DataLoaderOptions(8).workers(workers));
      for (int epoch = 0; epoch < 2; ++epoch) {
        std::vector<int> all;
        for (auto& batch : *loader) all.insert(all.end(), batch.begin(), batch.end());
        std::vector<int> expected(35);
        std::iota(expected.begin(), expected.end(), 0);
        if (threads > 1 || workers > 0) std::sort(all.begin(), all.end());
        EXPECT_EQ(all, expected);
      }
    }
  }
}

TEST(DataSets, OfChunksGoOnWhereTheyWereSavedAndReportErrors) {
  data::datasets::ChunkDatasetOptions options(1, 10, 20);
  Ordered position(3);
  position.next(2);
  std::stringstream file;
  torch::save(position, file);
  auto set =
      data::datasets::make_shared_dataset<ChunkSet>(Chunks(), Ordered(3), Ordered(0), options);
  torch::load(*set, file);
  auto loader = data::make_data_loader(set, 10);
  std::vector<int> starts;
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (auto& batch : *loader) starts.push_back(batch[0]);
  }
  EXPECT_EQ(starts, (std::vector<int>{15, 25, 0, 10, 20, 30}));
  EXPECT_EQ(set->chunk_sampler().index(), 3);

  Chunks failing;
  failing.fails = true;
  ChunkSet broken(failing, Ordered(0), Ordered(0), options);
  broken.reset();
  EXPECT_EQ(broken.get_batch()->size(), 10);
  EXPECT_THROW(broken.get_batch(), data::WorkerException);
  EXPECT_THROW(broken.get_batch(3), c10::Error);
  EXPECT_THROW(data::datasets::ChunkDatasetOptions(1, 10, 5), c10::Error);
}

TEST(DataSets, ChunksAreMixed) {
  auto set =
      ChunkSet(Chunks(), Ordered(0), Ordered(0), data::datasets::ChunkDatasetOptions(1, 15, 100, 2),
               [](std::vector<int>& examples) { std::reverse(examples.begin(), examples.end()); });
  set.reset();
  EXPECT_EQ(set.get_batch()->front(), 14);  // chunks 0 and 1 together, backwards
  EXPECT_EQ(set.get_batch()->front(), 34);
  EXPECT_EQ(set.get_batch()->size(), 5);
  EXPECT_FALSE(set.get_batch());
}

struct Numbers : data::datasets::Dataset<Numbers, int> {
  int get(size_t i) override { return static_cast<int>(i); }
  std::optional<size_t> size() const override { return 20; }
};

TEST(Loaders, IteratorsShareThePosition) {
  auto loader = data::make_data_loader<Ordered>(Numbers(), 10);
  EXPECT_EQ(loader->options().batch_size, 10);
  auto first = loader->begin(), second = first;
  EXPECT_EQ(first, second);
  EXPECT_EQ((*first)[0], 0);
  ++first;
  EXPECT_EQ((*second)[0], 10);
  ++second;
  EXPECT_EQ(first, loader->end());
  EXPECT_THROW(++first, c10::Error);
  EXPECT_THROW(*second, c10::Error);
  EXPECT_NE(loader->begin(), loader->begin());
}

TEST(Loaders, QueuesAndShuttlesKeepOrder) {
  data::detail::Queue<int> queue;
  queue.push(1);
  queue.push(2);
  EXPECT_EQ(queue.pop(), 1);
  EXPECT_EQ(queue.clear(), 1);
  EXPECT_THROW(queue.pop(std::chrono::milliseconds(1)), c10::Error);
  data::detail::DataShuttle<int, int> shuttle;
  EXPECT_FALSE(shuttle.pop_result());
  shuttle.push_job(5);
  EXPECT_EQ(shuttle.in_flight_jobs(), 1);
  shuttle.push_result(shuttle.pop_job() * 2);
  EXPECT_EQ(*shuttle.pop_result(), 10);
  struct Numbered {
    size_t sequence_number;
  };
  data::detail::sequencers::OrderedSequencer<Numbered> sequencer(3);
  std::vector<size_t> given = {2, 0, 1};
  auto produce = [&]() -> std::optional<Numbered> {
    if (given.empty()) return std::nullopt;
    Numbered next{given.front()};
    given.erase(given.begin());
    return next;
  };
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(sequencer.next(produce)->sequence_number, i);
  EXPECT_FALSE(sequencer.next(produce));
}

TEST(Samplers, AreSavedAndRepeatTheFirstExamples) {
  data::samplers::RandomSampler drawn(10), other(10);
  drawn.next(3);
  std::stringstream file;
  torch::save(drawn, file);
  torch::load(other, file);
  EXPECT_EQ(other.index(), 3);
  EXPECT_EQ(drawn.next(7), other.next(7));

  std::vector<size_t> all;
  for (size_t rank = 0; rank < 3; ++rank) {
    data::samplers::DistributedRandomSampler share(10, 3, rank);
    while (auto next = share.next(2)) all.insert(all.end(), next->begin(), next->end());
  }
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, (std::vector<size_t>{0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9}));

  data::samplers::StreamSampler stream(7);
  EXPECT_EQ(stream.next(5)->size(), 5);
  EXPECT_EQ(size_t(*stream.next(5)), 2);
  EXPECT_FALSE(stream.next(5));
}

// Fits y = 2x - 1 by two steps, or by one, a file and one.
double fitted(bool by_file) {
  auto x = torch::linspace(-1, 1, 8, torch::kFloat64);
  auto w = torch::tensor({0.0, 0.5}, torch::kFloat64).requires_grad_();
  auto options = torch::optim::LBFGSOptions(0.5).max_iter(6);
  torch::optim::LBFGS first({w}, options), second({w}, torch::optim::LBFGSOptions());
  auto closure = [&] {
    w.mutable_grad() = torch::Tensor();
    auto loss = (x.mul(w[0]).add(w[1]).sin() - x).square().sum();
    loss.backward();
    return loss;
  };
  first.step(closure);
  if (!by_file) return first.step(closure).item<double>() + first.step(closure).item<double>();
  std::stringstream file;
  torch::save(first, file);
  torch::load(second, file);
  using State = torch::optim::LBFGSParamState;
  const auto& saved = static_cast<State&>(*first.state().at(w.unsafeGetTensorImpl()));
  const auto& read = static_cast<State&>(*second.state().at(w.unsafeGetTensorImpl()));
  EXPECT_GT(saved.n_iter(), 2);
  EXPECT_GT(saved.func_evals(), 2);
  EXPECT_GT(saved.old_dirs().size(), 0);
  EXPECT_TRUE(saved == read);
  return second.step(closure).item<double>() + second.step(closure).item<double>();
}

TEST(Optimizers, LBFGSGoesOnFromAFile) { EXPECT_EQ(fitted(true), fitted(false)); }

// Writes a list of tensors as files of PyTorch before 1.5 have them.
void write_list(torch::serialize::OutputArchive& to, const std::string& key,
                const std::vector<torch::Tensor>& list) {
  to.write(key + "/size", torch::tensor(static_cast<int64_t>(list.size())));
  for (size_t i = 0; i < list.size(); ++i) to.write(key + "/" + std::to_string(i), list[i], true);
}
TEST(Optimizers, ReadFilesOfPyTorchBefore15) {
  torch::Tensor a = torch::ones({2}), b = torch::ones({3});
  torch::serialize::OutputArchive archive;
  write_list(archive, "step_buffers", {torch::tensor(7)});
  write_list(archive, "exp_average_buffers", {torch::full({2}, 0.5)});
  write_list(archive, "exp_average_sq_buffers", {torch::full({2}, 0.25)});
  write_list(archive, "max_exp_average_sq_buffers", {});
  std::stringstream file;
  archive.save_to(file);
  torch::optim::Adam adam({a, b}, torch::optim::AdamOptions(0.1));
  torch::load(adam, file);
  ASSERT_EQ(adam.state().size(), 1u);
  using State = torch::optim::AdamParamState;
  const auto& state = static_cast<const State&>(*adam.state().at(a.unsafeGetTensorImpl()));
  EXPECT_EQ(state.step(), 7);
  EXPECT_TRUE(state.exp_avg().equal(torch::full({2}, 0.5)));
  EXPECT_TRUE(state.exp_avg_sq().equal(torch::full({2}, 0.25)));
  EXPECT_FALSE(state.max_exp_avg_sq().defined());

  torch::serialize::OutputArchive momenta;
  write_list(momenta, "momentum_buffers", {torch::full({2}, 3.0), torch::full({3}, 4.0)});
  std::stringstream other;
  momenta.save_to(other);
  torch::optim::SGD sgd({a, b}, torch::optim::SGDOptions(0.1).momentum(0.9));
  torch::load(sgd, other);
  b.mutable_grad() = torch::ones({3});
  sgd.step();  // the momentum becomes 0.9 * 4 + 1
  EXPECT_TRUE(b.allclose(torch::full({3}, 1 - 0.1 * 4.6)));
}
TEST(Files, ErrorsHaveThePathOfWhatIsMissing) {
  struct Outer : torch::nn::Module {
    explicit Outer(const torch::nn::Sequential& inner) { register_module("outer", inner); }
  };
  auto saved = std::make_shared<Outer>(torch::nn::Sequential(torch::nn::ReLU()));
  auto other = std::make_shared<Outer>(torch::nn::Sequential(torch::nn::Linear(1, 1)));
  std::stringstream file;
  torch::save(saved, file);
  try {
    torch::load(other, file);
    FAIL();
  } catch (const c10::Error& error) {
    EXPECT_STREQ(error.what(), "load: expected a tensor 'outer.0.weight', got none");
  }
}

TEST(Files, KeepConjugatesAndNegatives) {
  auto z = torch::tensor(std::vector<c10::complex<double>>{{1, 2}, {3, -4}});
  for (const auto& saved : {z.conj(), torch::imag(z.conj()), z}) {
    std::stringstream file;
    torch::Tensor read;
    torch::save(saved, file);
    torch::load(read, file);
    EXPECT_TRUE(read.equal(saved.resolve_conj().resolve_neg()));
  }
}

TEST(Tensors, HaveTheDtypesOfTheirNumbers) {
  EXPECT_EQ(at::tensor({1, 2}).scalar_type(), at::kInt);
  EXPECT_EQ(at::tensor(1.5).scalar_type(), at::kDouble);
  EXPECT_EQ(at::tensor(std::vector<float>{1}, at::kComplexFloat).scalar_type(), at::kComplexFloat);
  EXPECT_EQ(torch::tensor({1, 2}).scalar_type(), torch::kLong);
  EXPECT_EQ(torch::tensor({{1.5}, {2.5}}).scalar_type(), torch::kFloat);
  EXPECT_EQ(torch::tensor(std::vector<uint8_t>{1}).scalar_type(), torch::kByte);
  torch::set_default_dtype(caffe2::TypeMeta::Make<double>());
  EXPECT_EQ(torch::tensor({1.5, 2.5}).scalar_type(), torch::kDouble);
  torch::set_default_dtype(caffe2::TypeMeta::Make<float>());
}

// Adds a bias, by default none.
struct Shift : torch::nn::Module {
  torch::Tensor forward(torch::Tensor x, torch::Tensor bias = {}) {
    return bias.defined() ? x + bias : x;
  }
};

TEST(Modules, HaveDefaultArgumentsInAnyModule) {
  torch::nn::AnyModule any(std::make_shared<Shift>());
  auto one = torch::ones({2});
  EXPECT_TRUE(any.forward(one).equal(one));
  EXPECT_TRUE(any.forward(one, one).equal(2 * one));
  EXPECT_THROW(any.forward(), c10::Error);
  torch::nn::Sequential bag(torch::nn::Identity(),
                            torch::nn::EmbeddingBag::from_pretrained(torch::ones({2, 3})));
  EXPECT_TRUE(bag->forward(torch::zeros({1, 2}, torch::kLong)).equal(torch::ones({1, 3})));
}

TEST(Modules, CheckOptionsAndTakeSingleExamples) {
  auto options = torch::nn::Conv2dOptions(1, 1, 3).padding(torch::kSame).stride(2);
  EXPECT_THROW(torch::nn::Conv2d{options}, c10::Error);
  EXPECT_EQ(c10::str(torch::nn::AdaptiveAvgPool2d(
                torch::nn::AdaptiveAvgPool2dOptions({5, std::nullopt}))),
            "torch::nn::AdaptiveAvgPool2d(output_size=[5, None])");
  torch::nn::AdaptiveLogSoftmaxWithLoss loss(
      torch::nn::AdaptiveLogSoftmaxWithLossOptions(4, 6, {2, 4}).div_value(2));
  auto x = torch::randn({1, 4});
  auto y = torch::tensor({5});
  EXPECT_TRUE(loss->forward(x[0], y[0]).output.allclose(loss->forward(x, y).output[0]));
}

std::string chain(const std::shared_ptr<torch::autograd::Node>& node) {
  if (!node) return "None";
  std::string text = node->name() + "(";
  for (auto& edge : node->next_edges()) text += chain(edge.function);
  return text + ")";
}

TEST(Graph, NodesHaveEdges) {
  auto x = torch::ones({2}, torch::requires_grad());
  auto y = (x * torch::ones({2})).neg();
  EXPECT_EQ(chain(y.grad_fn()), "NegBackward0(MulBackward0(AccumulateGrad()None))");
  auto edge = y.grad_fn()->next_edge(0);
  EXPECT_TRUE(edge.is_valid());
  EXPECT_EQ(edge.input_nr, 0);
  EXPECT_FALSE(y.grad_fn()->next_edge(7).is_valid());
  EXPECT_FALSE(y.retains_grad());
  y.retain_grad();
  EXPECT_TRUE(y.retains_grad());
  EXPECT_FALSE(x.retains_grad());
}

TEST(Graph, UndefinedGradientsStopAndOthersAreSummed) {
  auto x = torch::ones({}, torch::requires_grad());
  torch::autograd::UndefinedGrad().apply({x})[0].backward();
  EXPECT_FALSE(x.grad().defined());
  using torch::autograd::InputMetadata;
  std::vector<std::optional<InputMetadata>> wanted = {
      InputMetadata(torch::ones({1, 3}, torch::kFloat64)), std::nullopt};
  torch::autograd::variable_list grads = {torch::ones({2, 3}), torch::Tensor()};
  auto words = [](const std::string& text) { return "mul: " + text; };
  torch::autograd::validate_outputs(wanted, grads, words);
  EXPECT_TRUE(grads[0].equal(torch::full({1, 3}, 2, torch::kFloat64)));
  grads[0] = torch::ones({5});
  EXPECT_THROW(torch::autograd::validate_outputs(wanted, grads, words), c10::Error);
}

TEST(InitialValues, AreOrthogonalOrSparse) {
  for (auto sizes : {std::vector<int64_t>{3, 5}, {5, 3}, {4, 2, 3}}) {
    auto weight =
        torch::nn::init::orthogonal_(torch::empty(sizes, torch::kFloat64), 2.0).flatten(1);
    if (weight.size(0) > weight.size(1)) weight = weight.t();
    EXPECT_TRUE(weight.mm(weight.t())
                    .allclose(4 * torch::eye(weight.size(0), torch::dtype(torch::kFloat64))));
  }
  auto thin = torch::nn::init::sparse_(torch::empty({10, 4}), 0.35);
  EXPECT_TRUE(thin.eq(0).sum(0).eq(4).all().item<bool>());
}

TEST(Numbers, OfListsAreShownAndOfComplexOnesMeasured) {
  std::ostringstream text;
  text << torch::detail::TensorDataContainer({{1, 2}, {3, 4}})
       << torch::detail::TensorDataContainer(1.5);
  EXPECT_EQ(text.str(), "{{1, 2}, {3, 4}}1.5");
  EXPECT_THROW(torch::detail::TensorDataContainer(1.5).tensor(), c10::Error);
  EXPECT_EQ(std::abs(c10::complex<double>(3, -4)), 5);
  EXPECT_EQ(std::norm(c10::complex<float>(3, -4)), 25);
}

}  // namespace

// Code adds names of its own to the namespace of modules.
namespace torch::nn {
struct Doubled : Module {
  Tensor forward(Tensor x) { return 2 * x; }
};
}  // namespace torch::nn
static_assert(torch::detail::is_module<torch::nn::Doubled>::value);
static_assert(
    std::is_same_v<torch::detail::return_type_of_forward_t<torch::nn::Doubled, torch::Tensor>,
                   torch::Tensor>);
