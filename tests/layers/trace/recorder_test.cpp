// Recording of operators called from C++.
#include "lamella/layers/trace/recorder.h"

#include <gtest/gtest.h>

#include <thread>

#include "lamella/lamella.h"

namespace {

using namespace lamella;
using tracing::Graph;
using tracing::Recorder;
using tracing::ValueKind;

template <class F>
Graph record(F&& body, std::vector<Tensor> inputs, tracing::TraceOptions options = {}) {
  Recorder recorder(options);
  for (size_t i = 0; i < inputs.size(); ++i) recorder.add_input("x" + std::to_string(i), inputs[i]);
  recorder.start();
  std::vector<Tensor> results = body(inputs);
  recorder.stop();
  return recorder.finish(std::vector<TensorBase>(results.begin(), results.end()));
}
using Tensors = std::vector<Tensor>;

TEST(Recorder, RecordsCallsInOrder) {
  Graph graph =
      record([](Tensors& x) { return Tensors{(x[0] + x[1]).relu() * 2}; }, {ones({2}), ones({2})});
  EXPECT_EQ(graph.str(),
            "graph(%0 x0: float32[2], %1 x1: float32[2]):\n"
            "  %2: float32[2] = aten::add.Tensor(%0, %1, alpha=1)\n"
            "  %3: float32[2] = aten::relu(%2)\n"
            "  %4: float32[2] = aten::mul.Scalar(%3, 2)\n"
            "  return %4\n");
  Tensor a = full({2}, -3.0), b = full({2}, 5.0);
  EXPECT_TRUE(Tensor(graph.run({a, b})[0]).equal(full({2}, 4.0)));
}

TEST(Recorder, KnowsParametersFromConstants) {
  Tensor weight = ones({2}).requires_grad_();
  Tensor offset = zeros({2});
  Tensor named = ones({2});
  Recorder recorder;
  Tensor x = ones({2});
  recorder.add_input("x", x);
  recorder.name_outside(ValueKind::kParameter, "layer.scale", named);
  recorder.start();
  Tensor y = (x * weight + offset) * named;
  recorder.stop();
  Graph graph = recorder.finish({y});
  EXPECT_EQ(graph.str(),
            "graph(%0 x: float32[2]):\n"
            "  %1: float32[2] = parameter \"parameter0\"\n"
            "  %2: float32[2] = parameter \"layer.scale\"\n"
            "  %3: float32[2] = constant \"constant0\"\n"
            "  %4: float32[2] = aten::mul.Tensor(%0, %1)\n"
            "  %5: float32[2] = aten::add.Tensor(%4, %3, alpha=1)\n"
            "  %6: float32[2] = aten::mul.Tensor(%5, %2)\n"
            "  return %6\n");
  EXPECT_TRUE(Tensor(graph.run({x})[0]).requires_grad());
}

TEST(Recorder, KeepsWritesAndViewsInOrder) {
  auto body = [](Tensors& x) {
    Tensor y = x[0].clone();
    y.select(0, 0).mul_(3);
    return Tensors{y};
  };
  Graph graph = record(body, {ones({2, 2})});
  EXPECT_EQ(graph.nodes().size(), 3u);
  EXPECT_EQ(graph.value(2).root, 1u);
  EXPECT_EQ(graph.value(3).root, 1u);
  EXPECT_TRUE(graph.mutated().empty());
  Tensors given{rand({2, 2})};
  EXPECT_TRUE(Tensor(graph.run({given[0]})[0]).equal(body(given)[0]));
}

TEST(Recorder, RecordsCopiesThatAutogradMakes) {
  // exp_ saves its result, mul_ its argument from before: as a copy.
  auto body = [](Tensors& x) {
    Tensor y = x[0] * 1;
    Tensor w = x[1].exp();
    y.mul_(w);
    y.mul_(y.exp());
    lamella_tensor* result = nullptr;
    Tensor total = y.sum();
    lamella_tensor* root = total.impl();
    lamella_tensor* leaf = x[1].impl();
    lamella::detail::check(lamella_backward_run(&root, nullptr, 1, &leaf, 1, 0, &result));
    return Tensors{Tensor(TensorBase::adopt(result))};
  };
  auto inputs = [](double scale) {
    Tensors made{full({3}, scale), arange(3, TensorOptions().dtype(kFloat)) * scale};
    for (Tensor& t : made) t.requires_grad_();
    return made;
  };
  Graph graph = record(body, inputs(0.5));
  EXPECT_TRUE(graph.constants().empty()) << graph.str();
  Tensors other = inputs(0.25);
  Tensor expected = body(other)[0];
  EXPECT_TRUE(Tensor(graph.run({other[0], other[1]})[0]).allclose(expected)) << graph.str();
}

TEST(Recorder, Decomposes) {
  auto body = [](Tensors& x) { return Tensors{linear(x[0], x[1])}; };
  Tensors inputs{ones({2, 3}), ones({4, 3})};
  Graph whole = record(body, inputs);
  EXPECT_EQ(whole.nodes().size(), 1u);
  Graph parts = record([](Tensors& x) { return Tensors{x[0].flatten()}; }, {ones({2, 3})},
                       {.decompose = true});
  for (const tracing::Node& node : parts.nodes()) EXPECT_STRNE(node.op->name, "aten::flatten");
}

TEST(Recorder, RefusesAnotherInside) {
  Recorder outer, inner;
  outer.start();
  try {
    inner.start();
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "trace: expected no other trace to be running on this thread, got one inside "
                 "another");
  }
  outer.stop();
  inner.start();
  inner.stop();
}

TEST(Recorder, EndsWithItsScope) {
  try {
    Recorder recorder;
    recorder.start();
    ones({2}).reshape({3});
  } catch (const Error&) {
  }
  EXPECT_FALSE(tracing::is_tracing());
  EXPECT_EQ(Recorder::current(), nullptr);
}

TEST(Recorder, IsOfItsThread) {
  Recorder recorder;
  Tensor x = ones({2});
  recorder.add_input("x", x);
  recorder.start();
  std::thread([&] {
    EXPECT_FALSE(tracing::is_tracing());
    (x + x).exp();
  }).join();
  Tensor y = x.neg();
  recorder.stop();
  EXPECT_EQ(recorder.finish({y}).nodes().size(), 1u);
}

TEST(Recorder, NotesNumbersThatCameOutOfTensors) {
  Recorder recorder;
  Tensor x = ones({1});
  Tensor constant = ones({1});
  recorder.add_input("x", x);
  recorder.start();
  double inside = (x * 2).item().toDouble();
  double outside = constant.item().toDouble();
  recorder.stop();
  EXPECT_EQ(inside + outside, 3);
  ASSERT_EQ(recorder.escapes().size(), 1u);
  EXPECT_EQ(recorder.escapes()[0].what, "aten::item");
}

TEST(Recorder, StrictRaises) {
  Recorder recorder({.strict = true});
  Tensor x = ones({1});
  recorder.add_input("x", x);
  recorder.start();
  try {
    x.item();
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "trace: expected no element of a traced tensor to be read, got aten::item");
  }
}

TEST(Recorder, MemoryThatTheLibraryFillsIsMadeAnew) {
  auto body = [](Tensors& x) {
    int64_t size = 2;
    lamella_tensor* empty = nullptr;  // without an operator
    lamella::detail::check(
        lamella_tensor_empty(1, &size, static_cast<uint8_t>(ScalarType::Float), 0, -1, &empty));
    Tensor made(TensorBase::adopt(empty));
    made.fill_(3);
    return Tensors{made * x[0]};
  };
  Graph graph = record(body, {ones({2})});
  EXPECT_TRUE(graph.constants().empty()) << graph.str();
  EXPECT_STREQ(graph.nodes()[0].op->name, "aten::empty_strided");
  EXPECT_TRUE(Tensor(graph.run({full({2}, 2.0)})[0]).equal(full({2}, 6.0)));
}

}  // namespace
