// Graphs built by hand: reading, printing, running, comparing, dead code.
#include <gtest/gtest.h>

#include "lamella/lamella.h"
#include "lamella/layers/trace/graph.h"

namespace {

using namespace lamella;
using tracing::GradMode;
using tracing::Graph;
using tracing::kNoPlace;
using tracing::kNoValue;
using tracing::ValueId;
using tracing::ValueKind;

lamella_value tensor_value() { return {{0}, 0, LAMELLA_TENSOR, 0, 0}; }
lamella_value tensors_value() { return {{0}, 0, LAMELLA_TENSOR_LIST, 0, 0}; }

const lamella_operator* find(const char* name, const char* overload = "") {
  const lamella_operator* op = nullptr;
  lamella::detail::check(lamella_find_operator(name, overload, &op));
  return op;
}
ValueId unary(Graph& graph, const char* name, ValueId x, ValueId root = kNoValue) {
  graph.begin_node(find(name));
  graph.add_operand(tensor_value(), {x});
  ValueId y = graph.add_result(ScalarType::Float, kCPU, {2, 3}, {3, 1}, root);
  graph.add_operand(tensor_value(), {y});
  graph.end_node(kNoPlace, GradMode::kInherit);
  return y;
}
ValueId add(Graph& graph, ValueId a, ValueId b, double alpha = 1) {
  graph.begin_node(find("aten::add", "Tensor"));
  graph.add_operand(tensor_value(), {a});
  graph.add_operand(tensor_value(), {b});
  graph.add_operand(IValue(alpha).value(), {});
  ValueId y = graph.add_result(ScalarType::Float, kCPU, {2, 3}, {3, 1}, kNoValue);
  graph.add_operand(tensor_value(), {y});
  graph.end_node(kNoPlace, GradMode::kInherit);
  return y;
}
ValueId input(Graph& graph, const char* name) {
  return graph.add_input(name, ScalarType::Float, kCPU, {2, 3}, {3, 1});
}

TEST(Graph, PrintsEachNode) {
  Graph graph;
  ValueId x = input(graph, "x");
  ValueId w = graph.add_outside(ValueKind::kParameter, "layer.w", ones({2, 3}));
  ValueId c = graph.add_outside(ValueKind::kConstant, "c", zeros({2, 3}));
  ValueId y = add(graph, add(graph, x, w, 2), c);
  graph.set_outputs({y});
  EXPECT_EQ(graph.str(),
            "graph(%0 x: float32[2, 3]):\n"
            "  %1: float32[2, 3] = parameter \"layer.w\"\n"
            "  %2: float32[2, 3] = constant \"c\"\n"
            "  %3: float32[2, 3] = aten::add.Tensor(%0, %1, alpha=2.0)\n"
            "  %4: float32[2, 3] = aten::add.Tensor(%3, %2, alpha=1.0)\n"
            "  return %4\n");
}

TEST(Graph, Reads) {
  Graph graph;
  ValueId x = input(graph, "x");
  ValueId w = graph.add_outside(ValueKind::kParameter, "w", ones({2, 3}));
  ValueId y = add(graph, x, w);
  graph.set_outputs({y});
  ASSERT_EQ(graph.nodes().size(), 1u);
  const tracing::Node& node = graph.nodes()[0];
  EXPECT_EQ(graph.used_by(node), (std::vector<ValueId>{x, w}));
  EXPECT_EQ(graph.made_by(node), (std::vector<ValueId>{y}));
  EXPECT_TRUE(graph.written_by(node).empty());
  EXPECT_EQ(graph.value(y).node, 0u);
  EXPECT_EQ(graph.sizes(y), IntArrayRef({2, 3}));
  EXPECT_EQ(graph.strides(y), IntArrayRef({3, 1}));
  EXPECT_EQ(graph.parameters(), (std::vector<ValueId>{w}));
  EXPECT_TRUE(graph.constants().empty());
  EXPECT_EQ(graph.name(w), "w");
  EXPECT_TRUE(graph.is_pure());
}

TEST(Graph, Runs) {
  Graph graph;
  ValueId x = input(graph, "x");
  ValueId w = graph.add_outside(ValueKind::kParameter, "w", full({2, 3}, 10));
  graph.set_outputs({add(graph, unary(graph, "aten::neg", x), w), x, kNoValue});
  Tensor given = arange(6, TensorOptions().dtype(kFloat)).reshape({2, 3});
  std::vector<TensorBase> outputs = graph.run({given});
  ASSERT_EQ(outputs.size(), 3u);
  EXPECT_TRUE(Tensor(outputs[0]).equal(10 - given));
  EXPECT_TRUE(outputs[1].is_same(given));
  EXPECT_FALSE(outputs[2].defined());
}

TEST(Graph, LetsDeadValuesGo) {
  Graph graph;
  ValueId x = input(graph, "x");
  ValueId y = unary(graph, "aten::neg", x);
  for (int i = 0; i < 3; ++i) y = unary(graph, "aten::neg", y);
  graph.set_outputs({y});
  Tensor given = ones({2, 3});
  std::vector<TensorBase> outputs = graph.run({given});
  EXPECT_EQ(outputs[0].use_count(), 1u);
  EXPECT_EQ(given.use_count(), 1u);
}

std::string message_of(auto&& body) {
  try {
    body();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(Graph, ChecksItsInputs) {
  Graph graph;
  graph.set_outputs({input(graph, "x")});
  EXPECT_EQ(message_of([&] { graph.run({}); }), "graph: expected 1 inputs, got 0");
  EXPECT_EQ(message_of([&] { graph.run({TensorBase()}); }),
            "graph: expected input 0 ('x') to be float32[2, 3], got an undefined tensor");
  EXPECT_EQ(message_of([&] { graph.run({ones({3, 2})}); }),
            "graph: expected input 0 ('x') to be float32[2, 3], as recorded, got float32[3, 2]");
  EXPECT_EQ(message_of([&] { graph.run({ones({2, 3}, TensorOptions().dtype(kDouble))}); }),
            "graph: expected input 0 ('x') to be float32[2, 3], as recorded, got float64[2, 3]");
}

TEST(Graph, SaysWhichNodeFails) {
  Graph graph;
  ValueId x = input(graph, "x");
  graph.begin_node(find("aten::mm"));
  graph.add_operand(tensor_value(), {x});
  graph.add_operand(tensor_value(), {x});
  ValueId y = graph.add_result(ScalarType::Float, kCPU, {2, 3}, {3, 1}, kNoValue);
  graph.add_operand(tensor_value(), {y});
  graph.end_node(kNoPlace, GradMode::kInherit);
  graph.set_outputs({y});
  std::string text = message_of([&] { graph.run({ones({2, 3})}); });
  EXPECT_NE(text.find("(node 0 of the graph: aten::mm)"), std::string::npos) << text;
}

TEST(Graph, TakesListsOfTensors) {
  Graph graph;
  ValueId x = input(graph, "x");
  graph.begin_node(find("aten::cat"));
  graph.add_operand(tensors_value(), {x, x});
  graph.add_operand(IValue(1).value(), {});
  ValueId y = graph.add_result(ScalarType::Float, kCPU, {2, 6}, {6, 1}, kNoValue);
  graph.add_operand(tensor_value(), {y});
  graph.end_node(kNoPlace, GradMode::kInherit);
  graph.begin_node(find("aten::unbind", "int"));
  graph.add_operand(tensor_value(), {y});
  graph.add_operand(IValue(0).value(), {});
  ValueId a = graph.add_result(ScalarType::Float, kCPU, {6}, {1}, y);
  ValueId b = graph.add_result(ScalarType::Float, kCPU, {6}, {1}, y);
  graph.add_operand(tensors_value(), {a, b});
  graph.end_node(kNoPlace, GradMode::kInherit);
  graph.set_outputs({b});
  EXPECT_EQ(graph.node_text(graph.nodes()[0]), "%1: float32[2, 6] = aten::cat([%0, %0], 1)");
  EXPECT_EQ(graph.node_text(graph.nodes()[1]),
            "[%2: float32[6], %3: float32[6]] = aten::unbind.int(%1, 0)");
  Tensor given = arange(6, TensorOptions().dtype(kFloat)).reshape({2, 3});
  EXPECT_TRUE(Tensor(graph.run({given})[0]).equal(cat({given[1], given[1]})));
}

TEST(Graph, TakesDeadCodeAway) {
  Graph graph;
  ValueId x = input(graph, "x");
  ValueId unused = unary(graph, "aten::exp", x);
  unary(graph, "aten::neg_", unused, unused);  // a write to an unused value
  ValueId copy = unary(graph, "aten::sin", x);
  ValueId written = unary(graph, "aten::neg_", copy, copy);
  unary(graph, "aten::exp_", written, copy);  // after it is read: the output still sees it
  graph.set_outputs({copy});
  Graph smaller = graph.without_dead_code();
  EXPECT_EQ(smaller.str(),
            "graph(%0 x: float32[2, 3]):\n"
            "  %1: float32[2, 3] = aten::sin(%0)\n"
            "  %2: float32[2, 3] = aten::neg_(%1)\n"
            "  %3: float32[2, 3] = aten::exp_(%2)\n"
            "  return %1\n");
  Tensor given = full({2, 3}, 0.5);
  EXPECT_TRUE(Tensor(smaller.run({given})[0]).equal(Tensor(graph.run({given})[0])));
}

TEST(Graph, KeepsWritesToInputs) {
  Graph graph;
  ValueId x = input(graph, "x");
  unary(graph, "aten::neg_", x, x);
  graph.set_outputs({});
  EXPECT_EQ(graph.without_dead_code().nodes().size(), 1u);
  EXPECT_EQ(graph.mutated(), (std::vector<ValueId>{x}));
  EXPECT_FALSE(graph.is_pure());
  Tensor given = ones({2, 3});
  graph.run({given});
  EXPECT_TRUE(given.equal(-ones({2, 3})));
}

TEST(Graph, Compares) {
  auto make = [](double alpha, const Tensor& w, bool twice = false) {
    Graph graph;
    ValueId x = input(graph, "x");
    ValueId id = graph.add_outside(ValueKind::kConstant, "w", w);
    ValueId y = add(graph, x, id, alpha);
    if (twice) y = unary(graph, "aten::neg", y);
    graph.set_outputs({y});
    return graph;
  };
  Graph one = make(1, ones({2, 3}));
  EXPECT_EQ(one.difference(make(1, ones({2, 3})), true), "");
  EXPECT_EQ(one.difference(make(1, zeros({2, 3})), false), "");
  EXPECT_EQ(one.difference(make(2, ones({2, 3})), false),
            "node 0 is\n  %2: float32[2, 3] = aten::add.Tensor(%0, %1, alpha=1.0)\nand\n"
            "  %2: float32[2, 3] = aten::add.Tensor(%0, %1, alpha=2.0)");
  EXPECT_EQ(one.difference(make(1, ones({2, 3}), true), false),
            "1 nodes, and 2; the first that only one has is\n"
            "  %3: float32[2, 3] = aten::neg(%2)");
  EXPECT_NE(one.difference(make(1, zeros({2, 3})), true), "");
}

TEST(Graph, RunsUnderItsGradMode) {
  Graph graph;
  ValueId x = input(graph, "x");
  graph.begin_node(find("aten::exp"));
  graph.add_operand(tensor_value(), {x});
  ValueId y = graph.add_result(ScalarType::Float, kCPU, {2, 3}, {3, 1}, kNoValue);
  graph.add_operand(tensor_value(), {y});
  graph.end_node(kNoPlace, GradMode::kOff);
  graph.set_outputs({y, unary(graph, "aten::sin", x)});
  Tensor given = ones({2, 3}).requires_grad_();
  std::vector<TensorBase> outputs = graph.run({given});
  EXPECT_FALSE(outputs[0].requires_grad());
  EXPECT_TRUE(outputs[1].requires_grad());
  EXPECT_EQ(graph.node_text(graph.nodes()[0]), "%1: float32[2, 3] = aten::exp(%0) under no_grad");
}

}  // namespace
