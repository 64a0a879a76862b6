// Lists, dictionaries, pointers, modules in containers, warnings and settings under PyTorch's
// names.
#include <ATen/core/IListRef.h>
#include <c10/util/BFloat16-math.h>
#include <c10/util/Lazy.h>
#include <c10/util/Logging.h>
#include <c10/util/ThreadLocal.h>
#include <c10/util/accumulate.h>
#include <c10/util/error.h>
#include <c10/util/floating_point_utils.h>
#include <c10/util/order_preserving_flat_hash_map.h>
#include <c10/util/tempfile.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>
#include <variant>

namespace {

TEST(Lists, EntriesAreWrittenThroughAndExchanged) {
  c10::List<std::string> list({"a", "b", "c"});
  list[0] = list[2];
  swap(list[1], list[2]);
  swap(*list.begin(), *(list.begin() + 2));
  EXPECT_EQ(list.vec(), (std::vector<std::string>{"b", "c", "c"}));
  EXPECT_EQ(list.extract(0), "b");
  EXPECT_EQ(list.get(0), "");
  EXPECT_EQ(static_cast<std::string>(*list.emplace(list.end(), 2, 'x')), "xx");
  EXPECT_THROW(list.get(4), std::out_of_range);
  c10::List<std::string> moved(std::move(list));
  EXPECT_EQ(list.size(), 4);  // NOLINT: moving shares the entries
  EXPECT_TRUE(moved.is(list));
}
TEST(Lists, ConstantOnesGiveReferencesToTexts) {
  const c10::List<std::optional<std::string>> list({"one", std::nullopt});
  std::optional<std::reference_wrapper<const std::string>> text = list[0];
  EXPECT_EQ(&text->get(), &*list.vec()[0]);
  EXPECT_FALSE(list[1].has_value());
  const c10::List<std::string> texts({"one"});
  EXPECT_EQ(&texts[0], &texts.vec()[0]);
}
// The sum of the first entries, or -1 for each that is missing.
template <class List>
double sum_of_firsts(const List& list) {
  double sum = 0;
  for (const auto entry : list)
    sum += at::OptionalTensorRef(entry) ? entry->template item<double>() : -1;
  return sum;
}
double sum_of_all(at::ITensorListRef list) {
  double sum = 0;
  for (const at::Tensor& tensor : list) sum += tensor.sum().item<double>();
  return sum;
}
TEST(Lists, OfTensorsAreReadInWhicheverClass) {
  const std::vector<at::Tensor> tensors{at::ones({2}), at::full({3}, 2)};
  const c10::List<at::Tensor> boxed(tensors);
  EXPECT_EQ(sum_of_all(tensors), 8);
  EXPECT_EQ(sum_of_all(boxed), 8);
  EXPECT_EQ(sum_of_all(tensors[1]), 6);
  EXPECT_EQ(sum_of_all({tensors[0], tensors[0]}), 4);
  at::ITensorListRef list(boxed);
  EXPECT_TRUE(list.isBoxed() && !list.empty() && list.front().is_same(tensors[0]));
  const at::MaterializedITensorListRef whole = list.materialize();
  EXPECT_EQ(sum_of_all(whole), 8);
  EXPECT_TRUE(at::ITensorListRef(whole).isMaterialized());
  EXPECT_TRUE((*--list.end()).is_same(tensors[1]));
  EXPECT_THROW(at::ITensorListRef().size(), c10::Error);
  EXPECT_THROW(*at::ITensorListRefIterator(), c10::Error);
  const c10::List<std::optional<at::Tensor>> some({at::full({}, 5), std::nullopt});
  const at::IOptTensorListRef optional(some);
  EXPECT_EQ(sum_of_firsts(optional), 4);
  EXPECT_EQ(sum_of_firsts(optional.materialize()), 4);
}
TEST(Containers, SmallVectorsInsertWhatTheyHold) {
  c10::SmallVector<std::string, 2> list{"a", "b", "c"};
  auto at = list.insert(list.begin() + 1, 2, list[2]);
  EXPECT_EQ(at - list.begin(), 1);
  EXPECT_EQ(list, (std::vector<std::string>{"a", "c", "c", "b", "c"}));
  const std::string more[] = {"x", "y", "z"};
  list.insert(list.end() - 1, more, more + 3);
  EXPECT_EQ(list, (std::vector<std::string>{"a", "c", "c", "b", "x", "y", "z", "c"}));
  c10::SmallVectorImpl<std::string>& base = list;
  const std::string* first = base.data();
  c10::SmallVector<std::string, 4> moved(std::move(base));
  EXPECT_EQ(moved.data(), first);
}
TEST(Containers, OrderedMapsInsertEraseAndCompare) {
  using Map = ska_ordered::order_preserving_flat_hash_map<std::string, int>;
  const std::vector<std::pair<std::string, int>> entries{{"b", 1}, {"a", 2}, {"b", 3}, {"c", 4}};
  Map map(16);
  map.insert(entries.begin(), entries.end());
  EXPECT_EQ(map, (Map{{"c", 4}, {"b", 1}, {"a", 2}}));
  EXPECT_NE(map, (Map{{"c", 4}, {"b", 3}, {"a", 2}}));
  auto next = map.erase(map.begin(), std::next(map.begin(), 2));
  EXPECT_EQ(next->first, "c");
  EXPECT_EQ(map.size(), 1);
  EXPECT_EQ(map.equal_range("c").first->second, 4);
  EXPECT_TRUE(map.equal_range("a").first == map.end());
}
C10_DEFINE_TLS_static(std::string, text_of_thread);
TEST(Containers, AVariableOfEachThread) {
  *text_of_thread = "here";
  std::thread([] {
    EXPECT_EQ(text_of_thread.get(), "");
    text_of_thread->assign("there");
  }).join();
  EXPECT_EQ(*text_of_thread, "here");
}
TEST(Lists, AreTypedAndGeneric) {
  auto generic = c10::impl::toList(c10::List<int64_t>({1, 2}));
  EXPECT_EQ(c10::impl::toTypedList<int64_t>(generic).vec(), (std::vector<int64_t>{1, 2}));
  EXPECT_THROW(c10::impl::toTypedList<std::string>(generic), c10::Error);
  c10::Dict<std::string, double> dict;
  dict.insert("x", 1.5);
  c10::IValue value(dict);
  auto back = c10::impl::toTypedDict<std::string, double>(value.toGenericDict());
  EXPECT_EQ(back, dict);
  back.insert_or_assign("x", 2);
  EXPECT_FALSE(back == dict);
  EXPECT_THROW(dict.at("y"), std::out_of_range);
  c10::Dict<at::Tensor, int64_t> by_tensor;
  at::Tensor a = at::zeros({2}), b = at::zeros({2});
  by_tensor.insert(a, 1);
  by_tensor.insert(b, 2);
  EXPECT_EQ(by_tensor.at(b), 2);
}

struct Counted : c10::intrusive_ptr_target {
  explicit Counted(int* ended) : ended(ended) {}
  ~Counted() override { ++*ended; }
  int* ended;
};
struct Derived : Counted {
  using Counted::Counted;
};
TEST(Pointers, WeakOnesAndBareOnesCountReferences) {
  int ended = 0;
  auto strong = c10::make_intrusive<Derived>(&ended);
  c10::weak_intrusive_ptr<Derived> weak(strong);
  c10::weak_intrusive_ptr<Counted> base = weak;
  EXPECT_EQ(strong.use_count(), 1);
  EXPECT_EQ(weak.weak_use_count(), 3);
  Counted* bare = base.release();
  base = c10::weak_intrusive_ptr<Counted>::reclaim(bare);
  c10::intrusive_ptr<Counted> other = c10::make_intrusive<Counted>(&ended);
  c10::raw::intrusive_ptr::incref(other.get());
  EXPECT_EQ(c10::raw::intrusive_ptr::use_count(other.get()), 2);
  c10::raw::intrusive_ptr::decref(other.get());
  other = std::move(strong);
  EXPECT_FALSE(strong.defined());  // NOLINT: a pointer that was moved from is null
  EXPECT_EQ(ended, 1);
  EXPECT_EQ(base.lock(), other);
  other.reset();
  EXPECT_TRUE(weak.expired());
  weak.reset();
  EXPECT_EQ(ended, 1);
  base.reset();
  EXPECT_EQ(ended, 2);
}

struct Join : torch::nn::Module {
  std::string forward(std::string a, int b = 2) { return a + std::to_string(b); }

 protected:
  FORWARD_HAS_DEFAULT_ARGS({1, torch::nn::AnyValue(2)})
};
struct Length : torch::nn::Module {
  size_t forward(const std::string& text) { return text.size(); }
};
TEST(Modules, AreCalledWhateverTheirTypes) {
  torch::nn::AnyModule join(Join{});
  EXPECT_EQ(join.forward<std::string>(std::string("a"), 5), "a5");
  EXPECT_EQ(join.forward<std::string>(std::string("a")), "a2");
  EXPECT_THROW(join.forward<std::string>(1), c10::Error);
  EXPECT_THROW(join.forward<int>(std::string("a")), c10::Error);
  EXPECT_EQ(join.type_info(), typeid(Join));
  torch::nn::Sequential both(Join{}, Length{});
  EXPECT_EQ(both->forward<size_t>(std::string("abc")), 4);
  EXPECT_EQ(both[1], both->ptr(1));
  join = std::make_shared<Length>();
  EXPECT_EQ(join.forward<size_t>(std::string("abcd")), 4);
}
TEST(Modules, ContainersAreIndexedExtendedAndCloned) {
  torch::nn::ModuleList list(torch::nn::Linear(1, 2), torch::nn::Linear(2, 3));
  list->insert(1, torch::nn::ReLU());
  EXPECT_EQ(list->size(), 3);
  EXPECT_NE(list[1]->as<torch::nn::ReLU>(), nullptr);
  EXPECT_EQ(list->at<torch::nn::LinearImpl>(2).options.out_features(), 3);
  EXPECT_THROW(list->at<torch::nn::ReLUImpl>(0), c10::Error);
  torch::nn::Sequential net(torch::nn::Linear(2, 2), torch::nn::BatchNorm1d(2));
  net->to(at::kDouble);
  auto twin = std::dynamic_pointer_cast<torch::nn::SequentialImpl>(net->clone());
  ASSERT_EQ(twin->size(), 2);
  at::Tensor x = at::rand({3, 2}, at::kDouble);
  twin->eval();
  net->eval();
  EXPECT_TRUE(at::equal(twin->forward(x), net->forward(x)));
  EXPECT_FALSE(twin->parameters()[0].is_alias_of(net->parameters()[0]));
  std::vector<std::string> order;
  net->apply([&](const std::string& path, torch::nn::Module&) { order.push_back(path); }, "net");
  EXPECT_EQ(order, (std::vector<std::string>{"net", "net.0", "net.1"}));
  torch::ExpandingArray<3> each(4);
  EXPECT_EQ((*each)[2] + static_cast<int64_t>(each->size()), 7);
  torch::OrderedDict<std::string, int> dict;
  dict.insert("a", 1);
  EXPECT_THROW(dict.insert("a", 2), c10::Error);
}

struct Kept : c10::WarningHandler {
  void process(const c10::Warning& warning) override { text = warning.msg(); }
  std::string text;
};
TEST(Modules, TransformersTakeEncodersOfTheCaller) {
  torch::nn::TransformerEncoder encoder(
      torch::nn::TransformerEncoderOptions(torch::nn::TransformerEncoderLayerOptions(4, 2), 1));
  auto options =
      torch::nn::TransformerOptions(4, 2, 3, 1).custom_encoder(torch::nn::AnyModule(encoder));
  torch::nn::Transformer model(options);
  model->eval();
  EXPECT_EQ(model->encoder.ptr(), encoder.ptr());
  EXPECT_EQ(model->named_children()["encoder"], encoder.ptr());
  at::Tensor src = torch::rand({3, 2, 4}), tgt = torch::rand({2, 2, 4});
  at::Tensor memory = encoder->forward(src);
  EXPECT_TRUE(model(src, tgt).equal(
      model->decoder.forward(tgt, memory, at::Tensor(), at::Tensor(), at::Tensor(), at::Tensor())));
  EXPECT_EQ(torch::nn::Transformer::Impl::generate_square_subsequent_mask(3).size(1), 3);
}
TEST(Modules, RecurrentLayersHaveTheOptionsThatAllOfThemHave) {
  torch::nn::LSTM lstm(torch::nn::LSTMOptions(3, 5).proj_size(2).bidirectional(true));
  EXPECT_EQ(lstm->options_base.proj_size(), 2);
  EXPECT_TRUE(lstm->options_base.bidirectional());
  torch::nn::GRU gru(3, 5);
  EXPECT_EQ(gru->options_base.proj_size(), 0);
  EXPECT_EQ(gru->options_base.hidden_size(), 5);
}

TEST(Modules, EntropiesTakeTargetsThatDifferByDimensionsOfOne) {
  at::Tensor p = torch::tensor({0.25f, 0.5f}).view({2, 1}).requires_grad_();
  at::Tensor target = torch::tensor({1.0f, 0.0f});
  at::Tensor loss = torch::binary_cross_entropy(p, target);
  EXPECT_NEAR(loss.item<double>(), (std::log(4) + std::log(2)) / 2, 1e-6);
  loss.backward();
  EXPECT_TRUE(torch::allclose(p.grad(), torch::tensor({-2.0f, 1.0f}).view({2, 1})));
  EXPECT_THROW(torch::binary_cross_entropy(p, torch::ones({3})), c10::Error);
}

// The state of `optimizer` for a parameter of two ones, after a step with the gradient {2, 4}.
template <class State>
State& stepped(torch::optim::Optimizer& optimizer) {
  at::Tensor& parameter = optimizer.param_groups()[0].params()[0];
  parameter.mutable_grad() = torch::tensor({2.0f, 4.0f});
  optimizer.step();
  return static_cast<State&>(*optimizer.state().at(parameter.unsafeGetTensorImpl()));
}
TEST(Optimizers, HaveTheirStatesByName) {
  std::vector<at::Tensor> parameters{torch::ones({2}).requires_grad_()};
  auto is = [](const at::Tensor& x, float a, float b) {
    return torch::allclose(x, torch::tensor({a, b}));
  };
  torch::optim::SGD sgd(parameters, torch::optim::SGDOptions(0.1).momentum(0.9));
  EXPECT_TRUE(is(stepped<torch::optim::SGDParamState>(sgd).momentum_buffer(), 2, 4));
  torch::optim::Adagrad adagrad(parameters);
  auto& sums = stepped<torch::optim::AdagradParamState>(adagrad);
  EXPECT_TRUE(is(sums.sum(), 4, 16));
  EXPECT_EQ(sums.step(), 1);
  sums.step(sums.step() + 4);
  EXPECT_EQ(sums.step(), 5);
  torch::optim::RMSprop rmsprop(parameters, torch::optim::RMSpropOptions().centered(true));
  auto& means = stepped<torch::optim::RMSpropParamState>(rmsprop);
  EXPECT_TRUE(is(means.square_avg(), 0.04f, 0.16f));
  EXPECT_TRUE(is(means.grad_avg(), 0.02f, 0.04f));
  EXPECT_FALSE(means.momentum_buffer().defined());
  torch::optim::Adam adam(parameters);
  auto& moments = stepped<torch::optim::AdamParamState>(adam);
  EXPECT_TRUE(is(moments.exp_avg(), 0.2f, 0.4f));
  EXPECT_TRUE(is(moments.exp_avg_sq(), 0.004f, 0.016f));
  auto copy = moments.clone();
  EXPECT_TRUE(static_cast<torch::optim::AdamParamState&>(*copy) == moments);
  stepped<torch::optim::AdamParamState>(adam);
  EXPECT_FALSE(static_cast<torch::optim::AdamParamState&>(*copy) == moments);
  EXPECT_TRUE(torch::optim::AdamOptions(0.1) == torch::optim::AdamOptions(0.1));
  EXPECT_FALSE(torch::optim::AdamOptions(0.1) == torch::optim::AdamOptions(0.1).amsgrad(true));
}

// An optimizer of the caller's: each step moves against the sum of all gradients so far.
struct SumOptions : torch::optim::OptimizerCloneableOptions<SumOptions> {
  SumOptions(double lr = 1) : lr_(lr) {}
  TORCH_ARG(double, lr);
};
struct SumState : torch::optim::OptimizerCloneableParamState<SumState> {
  TORCH_ARG(at::Tensor, total);
};
struct SumOptimizer : torch::optim::Optimizer {
  explicit SumOptimizer(std::vector<at::Tensor> params, SumOptions options = {})
      : Optimizer({torch::optim::OptimizerParamGroup(std::move(params))},
                  std::make_unique<SumOptions>(options)) {}
  at::Tensor step(LossClosure = nullptr) override {
    torch::NoGradGuard guard;
    for (auto& group : param_groups_) {
      for (auto& param : group.params()) {
        auto& found = state_[param.unsafeGetTensorImpl()];
        if (!found) {
          found = std::make_unique<SumState>();
          static_cast<SumState&>(*found).total(torch::zeros_like(param));
        }
        auto& total = static_cast<SumState&>(*found).total();
        total.add_(param.grad());
        param.sub_(total * group.options().get_lr());
      }
    }
    return {};
  }
};
TEST(Optimizers, KeepStatesOfTheCallersClasses) {
  SumOptimizer optimizer({}, SumOptions(0.5));
  at::Tensor parameter = torch::ones({2}).requires_grad_();
  optimizer.add_parameters({parameter});
  stepped<SumState>(optimizer);
  auto& state = stepped<SumState>(optimizer);
  EXPECT_TRUE(state.total().equal(torch::tensor({4.0f, 8.0f})));
  EXPECT_TRUE(parameter.equal(torch::tensor({-2.0f, -5.0f})));
  static_cast<SumOptions&>(optimizer.defaults()).lr(2);
  EXPECT_EQ(optimizer.defaults().get_lr(), 2);
}

TEST(Settings, WarningsGoToTheHandlerAndDtypesToFactories) {
  Kept kept;
  {
    c10::WarningUtils::WarningHandlerGuard guard(&kept);
    TORCH_WARN("number ", 3);
  }
  EXPECT_EQ(kept.text, "number 3");
  EXPECT_EQ(c10::WarningUtils::get_warning_handler(), nullptr);
  EXPECT_EQ(torch::get_default_dtype(), at::kFloat);
  torch::set_default_dtype(caffe2::TypeMeta::Make<double>());
  EXPECT_EQ(torch::ones({1}).scalar_type(), at::kDouble);
  torch::set_default_dtype(caffe2::TypeMeta::Make<float>());
  EXPECT_THROW(torch::set_default_dtype(caffe2::TypeMeta::Make<int>()), c10::Error);
  EXPECT_TRUE(torch::ones({2}).to({at::kCPU, 0}).is_cpu());
}
TEST(Settings, NumbersAndTexts) {
  const uint64_t most = std::numeric_limits<uint64_t>::max();
  EXPECT_FALSE(c10::Scalar(-1).equal(most));
  EXPECT_TRUE(c10::Scalar(7).equal(uint64_t{7}));
  EXPECT_EQ(c10::Scalar(int64_t{65535}).toUInt16(), 65535);
  EXPECT_EQ(c10::Join(", ", std::vector<int>{1, 2, 3}), "1, 2, 3");
  std::string text = "aXbX";
  EXPECT_EQ(c10::ReplaceAll(text, "X", "--"), 2);
  EXPECT_EQ(text, "a--b--");
  EXPECT_EQ(c10::str(torch::indexing::Slice(1, 2, 3)), "1:2:3");
  std::string name;
  {
    auto file = c10::make_tempfile();
    name = file.name;
    EXPECT_EQ(access(name.c_str(), F_OK), 0);
  }
  EXPECT_NE(access(name.c_str(), F_OK), 0);
}
TEST(Settings, NumbersOfElementsAndBits) {
  const std::vector<int> sizes{1, 2, 3, 4, 5};
  EXPECT_EQ(c10::numelements_from_dim(2, sizes), 60);
  EXPECT_EQ(c10::numelements_from_dim(9, sizes), 1);
  EXPECT_EQ(c10::numelements_to_dim(3, sizes), 6);
  EXPECT_EQ(c10::numelements_between_dim(4, 2, sizes), 12);
  EXPECT_THROW(c10::numelements_to_dim(6, sizes), c10::Error);
  EXPECT_THROW(c10::numelements_between_dim(4, 10, sizes), c10::Error);
  EXPECT_EQ(c10::detail::fp32_to_bits(-2.0f), 0xC0000000U);
  EXPECT_EQ(c10::detail::fp32_from_bits(0x3F800000U), 1.0f);
  EXPECT_EQ(c10::detail::fp16_ieee_from_fp32_value(1.5f), 0x3E00);
  EXPECT_EQ(c10::detail::fp16_ieee_to_fp32_value(0xC000), -2.0f);
  EXPECT_EQ(c10::detail::bits_from_f32(c10::detail::f32_from_bits(0x4049)), 0x4049);
  EXPECT_EQ(c10::detail::round_to_nearest_even(1.0f + 1.0f / 256), 0x3F80);
  EXPECT_EQ(c10::detail::round_to_nearest_even(1.0f + 3.0f / 256), 0x3F82);
  EXPECT_EQ(std::nextafter(c10::BFloat16(1.0f), c10::BFloat16(2.0f)), 1.0f + 1.0f / 128);
  EXPECT_EQ(std::nextafter(c10::BFloat16(-1.0f), c10::BFloat16(0.0f)), -1.0f + 1.0f / 256);
  EXPECT_LT(std::nextafter(c10::BFloat16(0.0f), c10::BFloat16(-1.0f)), 0.0f);
  EXPECT_EQ(c10::utils::str_error(ENOENT), strerror(ENOENT));
}

// Lamella's text of the error that a call throws, and the one with PyTorch's words.
std::pair<std::string, std::string> texts_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const c10::Error& error) {
    return {error.what(), error.what_without_backtrace()};
  }
  return {"nothing was thrown", ""};
}
struct Sum : torch::nn::Module {
  torch::Tensor forward(torch::Tensor a, int64_t b, int64_t c) { return a + b + c; }

 protected:
  FORWARD_HAS_DEFAULT_ARGS({1, torch::nn::AnyValue(int64_t{1})},
                           {2, torch::nn::AnyValue(int64_t{2})})
};
TEST(Errors, HavePyTorchsWordsBehindTheirText) {
  torch::OrderedDict<std::string, int> dict("Penguin");
  auto [text, words] = texts_of([&] { dict["tux"]; });
  EXPECT_EQ(text, "nn: expected one of the names, got Penguin 'tux'");
  EXPECT_EQ(words, text + "\nPenguin 'tux' is not defined");

  // {0} and {1} stand for parts of the text, in another order; the text before it has $0.
  const torch::nn::AnyModule sum(std::make_shared<Sum>());
  auto any = texts_of([&] { sum.forward(); });
  EXPECT_TRUE(any.first.ends_with("Sum: forward: expected 1 to 3 arguments, got 0")) << any.first;
  EXPECT_TRUE(
      any.second.ends_with("Sum's forward() method expects at least 1 argument(s) and at "
                           "most 3 argument(s), but received 0."))
      << any.second;
  any = texts_of([&] { sum.forward(torch::ones({}), 2.5); });
  EXPECT_TRUE(
      any.second.ends_with("\nExpected argument #1 to be of type long, but received value "
                           "of type double"))
      << any.second;

  // An error of an operator, and one without other words.
  torch::Tensor leaf = torch::ones({2}, torch::requires_grad());
  EXPECT_NE(texts_of([&] {
              leaf.add_(1);
            }).second.find("a leaf Variable that requires grad is being used in an in-place"),
            std::string::npos);
  auto plain = texts_of([&] { leaf.view({3}); });
  EXPECT_EQ(plain.first, plain.second);
}
TEST(Errors, OfCaffesChecks) {
  int calls = 0;
  const auto text = [&](auto&& check) {
    try {
      check();
    } catch (const c10::Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(text([&] { CAFFE_ENFORCE(calls == 0, "calls: ", ++calls); }), "");
  EXPECT_EQ(text([&] { CAFFE_ENFORCE_EQ(calls, 0, ++calls); }), "");
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(text([&] { CAFFE_ENFORCE(calls == 1); }), "expected calls == 1");
  EXPECT_EQ(text([&] { CAFFE_ENFORCE_GT(++calls, 2, "calls: ", calls); }),
            "expected ++calls > 2, got 1 vs 2. calls: 1");
  EXPECT_EQ(text([] { CAFFE_THROW("number ", 3); }), "number 3");
  c10::IndexError error("index");
  error.add_context("in a loop");
  EXPECT_STREQ(error.what(), "index\n  in a loop");
}
TEST(Settings, LazyValuesAreComputedOnce) {
  struct Counted : c10::OptimisticLazyValue<int> {
    int compute() const override { return ++calls; }
    mutable int calls = 0;
  };
  const Counted value;
  EXPECT_EQ(value.get() + value.get(), 2);
  c10::OptimisticLazy<std::string> first;
  EXPECT_EQ(first.ensure([] { return "a"; }), "a");
  c10::OptimisticLazy<std::string> copy(first), moved(std::move(first));
  EXPECT_EQ(copy.ensure([] { return "b"; }) + moved.ensure([] { return "b"; }), "aa");
  copy.reset();
  EXPECT_EQ(copy.ensure([] { return "b"; }), "b");
}
TEST(Errors, OfNamesSayWhatTheNamesAreOf) {
  struct Named : torch::nn::Module {
    using Module::register_buffer, Module::register_parameter;
  };
  auto module = std::make_shared<Named>();
  module->register_buffer("a", torch::ones({1}));
  EXPECT_EQ(texts_of([&] { module->register_parameter("a", torch::ones({1})); }).first,
            "Module: expected a new name, got Parameter 'a' again");
  EXPECT_EQ(texts_of([&] { module->register_buffer("x.y", torch::ones({1})); }).first,
            "Module: expected a name without a dot, got Buffer 'x.y'");
  EXPECT_EQ(texts_of([&] { module->replace_module("m", module); }).first,
            "nn: expected one of the names, got Submodule 'm'");
  EXPECT_EQ(texts_of([] { Named().modules(); }).first,
            "Module: modules: expected a module that a shared pointer holds; pass "
            "include_self=false for the modules inside alone");
  EXPECT_TRUE(Named().modules(false).empty());
}
TEST(Containers, UpdateTakesNewKeysOrKnownParameters) {
  torch::OrderedDict<std::string, int> first{{"a", 1}}, second{{"b", 2}};
  second.update(first);
  EXPECT_EQ(second["a"], 1);
  EXPECT_THROW(second.update(first), c10::Error);
  torch::nn::ParameterDict known(
      torch::OrderedDict<std::string, torch::Tensor>{{"a", torch::ones({1})}});
  torch::nn::ParameterDict other(
      torch::OrderedDict<std::string, torch::Tensor>{{"a", torch::zeros({1})}});
  known->update(*other);
  EXPECT_EQ(known["a"].item<float>(), 0);
  other->insert("b", torch::ones({1}));
  EXPECT_THROW(known->update(*other), c10::IndexError);
}
TEST(Containers, WordsHaveClassesOfTheirOwn) {
  std::variant<torch::enumtype::kLSTM, torch::enumtype::kReLU> word = torch::kReLU;
  EXPECT_EQ(torch::enumtype::get_enum_name(word), "kReLU");
  EXPECT_EQ(word.index(), 1);
  EXPECT_TRUE(torch::nn::L1LossOptions(torch::kSum).reduction() == torch::kSum);
}
TEST(Indexing, ChecksPositionsAndMasks) {
  at::Tensor x = torch::arange(30).view({2, 3, 5});
  EXPECT_EQ(texts_of([&] { x.index({1, 3}); }).first,
            "index: expected a position in dimension 1 of size 3, got 3");
  EXPECT_EQ(texts_of([&] { x.index({torch::indexing::None, 0, "...", -6}); }).first,
            "index: expected a position in dimension 2 of size 5, got -6");
  // A mask has the sizes of the dimensions that it stands for: one element does not stand for all.
  EXPECT_EQ(texts_of([&] { x.index({0, torch::ones({1}, torch::kBool)}); }).first,
            "index: expected a mask of the sizes [3, 5], got [1]");
  EXPECT_THROW(x.index_put_({torch::ones({2, 4}, torch::kBool)}, 1), c10::IndexError);
  EXPECT_THROW(x.index({}), c10::IndexError);
  EXPECT_EQ(x.index({true, torch::indexing::Slice(), torch::ones({3, 5}, torch::kBool)}).sizes(),
            at::IntArrayRef({15, 2}));
  EXPECT_EQ(x.index({-1, "...", torch::ones({5}, torch::kBool)}).sizes(), at::IntArrayRef({3, 5}));
  EXPECT_EQ(std::get<0>(torch::var_mean(x.to(at::kFloat), 1)).sizes(), at::IntArrayRef({2, 5}));
  EXPECT_EQ(std::get<1>(at::std_mean(x.to(at::kFloat), 0)).sizes(), at::IntArrayRef({3, 5}));
}
TEST(Settings, AnIntegerTensorIndexesAsAViewAndAMaskAsACopy) {
  at::Tensor x = torch::arange(6).view({2, 3});
  at::Tensor one = torch::tensor(1);
  EXPECT_TRUE(x.index({one}).is_alias_of(x));
  EXPECT_EQ(x.index({one, one}).item<int64_t>(), 4);
  EXPECT_FALSE(x.index({torch::tensor(true)}).is_alias_of(x));
  EXPECT_FALSE(x.index({"..."}).is_same(x));
  x.index_put_({torch::tensor(true)}, torch::zeros({1, 1, 2, 3}, torch::kLong));
  EXPECT_EQ(x.sum().item<int64_t>(), 0);
}

}  // namespace
