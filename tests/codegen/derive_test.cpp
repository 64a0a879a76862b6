// Derivatives that lamella_add_operators generates and registers, from the first call to the
// gradient.
#include <gtest/gtest.h>

#include <fstream>

#include "codegen_derive_test/functions.h"
#include "codegen_derive_test/native_functions.h"
#include "lamella/abi/autograd.h"
#include "lamella/dispatch/explain.h"
#include "lamella/dispatch/registry.h"
#include "lamella/lamella.h"
#include "lamella/layers/autograd/variable.h"
#include "tests/codegen/derive_formulas.h"

using lamella::IntArrayRef;
using lamella::Tensor;
using lamella::TensorList;
using Values = std::vector<float>;

namespace derive {

int scaled_calls = 0;
std::vector<int64_t> scaled_sizes;
std::array<bool, 2> join_mask;

Tensor scaled(const Tensor& grad, IntArrayRef sizes, double factor) {
  ++scaled_calls;
  scaled_sizes = sizes.vec();
  return grad * factor;
}

std::tuple<Tensor, Tensor> join_gradients(const Tensor& grad, bool has_y,
                                          std::array<bool, 2> wanted) {
  join_mask = wanted;
  return {wanted[0] ? grad.clone() : Tensor(), wanted[1] && has_y ? grad * 2 : Tensor()};
}

int meta_calls = 0;
Tensor of_meta(const Tensor& grad) {
  ++meta_calls;
  return grad * 2;
}

Tensor maybe_gradient(TensorList grads) {
  Tensor sum = lamella::zeros({2}, lamella::kFloat);
  if (grads[0].defined()) sum = sum + grads[0] * 2;
  if (grads[1].defined()) sum = sum + grads[1] * 3;
  return sum;
}

std::vector<Tensor> kept_gradients;
Tensor kept(const Tensor& grad) {
  kept_gradients.push_back(grad.clone());
  return kept_gradients.back();
}
Tensor torn_gradient(const Tensor&) { throw lamella::Error("torn: no gradient for 'b' today"); }

namespace native {

Tensor scale(const Tensor& self, double factor) { return self * factor; }

std::tuple<Tensor, Tensor> join(const Tensor& x, const std::optional<Tensor>& y, TensorList rest) {
  Tensor sum = x.clone();
  if (y.has_value()) sum = sum + *y * 2;
  for (const Tensor& one : rest) sum = sum + one * 3;
  return {sum, lamella::full({}, static_cast<double>(rest.size()))};
}

Tensor stuck(const Tensor& self) { return self.clone(); }

Tensor pick(const Tensor& self, const Tensor& weight, const Tensor& index) {
  return self * weight * index.to(lamella::kFloat);
}

Tensor keyed(const Tensor& self) { return self * 2; }

Tensor only_meta(const Tensor& self) { return self * 2; }

std::tuple<Tensor, Tensor> maybe(const Tensor& self, bool) { return {self * 2, self * 3}; }

Tensor torn(const Tensor& a, const Tensor& b, TensorList) { return a + b; }

}  // namespace native
}  // namespace derive

namespace {

Tensor leaf(float value) {
  Tensor t = lamella::full({2}, value, lamella::kFloat);
  lamella::detail::check(lamella_tensor_set_requires_grad(t.impl(), 1));
  return t;
}
Tensor meta_leaf() {
  Tensor t = lamella::empty({2}, lamella::TensorOptions()
                                     .dtype(lamella::kFloat)
                                     .device(lamella::Device(lamella::DeviceType::Meta)));
  lamella::detail::check(lamella_tensor_set_requires_grad(t.impl(), 1));
  return t;
}
bool requires_grad(const Tensor& t) { return lamella_tensor_requires_grad(t.impl()) != 0; }

void backward(const Tensor& root) {
  Tensor ones = lamella::ones_like(root);
  lamella_tensor* roots[] = {root.impl()};
  lamella_tensor* grads[] = {ones.impl()};
  lamella::detail::check(lamella_backward_run(roots, grads, 1, nullptr, 0, 0, nullptr));
}

// Empty: it has none.
Values grad_of(const Tensor& t) {
  const Tensor grad = lamella::TensorBase::adopt(lamella_tensor_grad(t.impl()));
  if (!grad.defined()) return {};
  const Tensor dense = grad.contiguous();
  return Values(dense.data_ptr<float>(), dense.data_ptr<float>() + dense.numel());
}

TEST(Derive, FunctionalForm) {
  const Tensor x = leaf(1);
  const Tensor y = derive::scale(x, 5.0);
  EXPECT_TRUE(requires_grad(y));
  derive::scaled_calls = 0;
  backward(y);
  EXPECT_EQ(grad_of(x), Values({5, 5}));
  EXPECT_EQ(derive::scaled_calls, 1);
  EXPECT_EQ(derive::scaled_sizes, std::vector<int64_t>({2}));
}

TEST(Derive, InPlaceFormSharesIt) {
  const Tensor x = leaf(1);
  Tensor y = derive::scale(x, 2.0);
  derive::scale_(y, 7.0);
  backward(y);
  EXPECT_EQ(grad_of(x), Values({14, 14}));
}

TEST(Derive, SeveralArgumentsAndLists) {
  const Tensor x = leaf(1), y = leaf(2), a = leaf(3), b = leaf(4);
  const auto [first, count] = derive::join(x, y, std::vector<Tensor>{a, b});
  EXPECT_TRUE(requires_grad(first));
  EXPECT_FALSE(requires_grad(count));
  backward(first);
  EXPECT_EQ(derive::join_mask, (std::array<bool, 2>{true, true}));
  EXPECT_EQ(grad_of(x), Values({1, 1}));
  EXPECT_EQ(grad_of(y), Values({2, 2}));
  EXPECT_EQ(grad_of(a), Values({3, 3}));
  EXPECT_EQ(grad_of(b), Values({3, 3}));
}

TEST(Derive, OnlyWhatIsWanted) {
  const Tensor plain = lamella::ones({2}, lamella::kFloat);
  const Tensor x = leaf(1);
  const auto [first, count] = derive::join(x, std::nullopt, std::vector<Tensor>{plain});
  backward(first);
  EXPECT_EQ(derive::join_mask, (std::array<bool, 2>{true, false}));
  EXPECT_EQ(grad_of(x), Values({1, 1}));
  EXPECT_EQ(grad_of(plain), Values());
}

std::string node_name(const Tensor& t) {
  lamella_node* node = lamella_tensor_node(t.impl(), nullptr);
  if (node == nullptr) return "";
  const std::string name = lamella_node_name(node);
  lamella_node_release(node);
  return name;
}

// The text of what `f` throws.
template <class Error, class F>
std::string message(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.msg();
  }
  return "nothing is thrown";
}

Tensor dual(float value, float tangent) {
  Tensor t = lamella::full({2}, value, lamella::kFloat);
  lamella::autograd::set_tangent(t.impl(), lamella::full({2}, tangent, lamella::kFloat));
  return t;
}
Values tangent_of(const Tensor& t) {
  const Tensor tangent{lamella::autograd::tangent(t.impl())};
  if (!tangent.defined()) return {};
  const Tensor dense = tangent.contiguous();
  return Values(dense.data_ptr<float>(), dense.data_ptr<float>() + dense.numel());
}

TEST(Derive, ArgumentWithoutFormula) {
  const Tensor index = lamella::ones({2}, lamella::kLong);
  const Tensor x = leaf(1);
  const Tensor weight = lamella::full({2}, 3, lamella::kFloat);
  backward(derive::pick(x, weight, index));
  EXPECT_EQ(grad_of(x), Values({3, 3}));

  const Tensor y = derive::pick(weight, leaf(2), index);
  EXPECT_TRUE(requires_grad(y));
  EXPECT_EQ(message<lamella::NotImplementedError>([&] { backward(y); }),
            "pick: the derivative for 'weight' is not implemented");
}

TEST(Derive, ArgumentWithoutFormulaInForwardMode) {
  const Tensor index = lamella::ones({2}, lamella::kLong);
  const Tensor weight = lamella::full({2}, 3, lamella::kFloat);
  EXPECT_EQ(tangent_of(derive::pick(dual(1, 5), weight, index)), Values({15, 15}));
  EXPECT_EQ(message<lamella::NotImplementedError>([&] { derive::pick(weight, dual(1, 5), index); }),
            "pick: the derivative for 'weight' is not implemented");
}

TEST(Derive, TablesByKey) {
  derive::meta_calls = 0;
  const Tensor x = leaf(1);
  const Tensor y = derive::keyed(x);
  EXPECT_EQ(node_name(y), "KeyedBackward0");
  backward(y);
  EXPECT_EQ(grad_of(x), Values({2, 2}));
  EXPECT_EQ(derive::meta_calls, 0);

  const Tensor m = meta_leaf();
  const Tensor of_m = derive::keyed(m);
  EXPECT_EQ(node_name(of_m), "KeyedBackwardAutogradMeta0");
  backward(of_m);
  EXPECT_EQ(derive::meta_calls, 1);
  const Tensor grad = lamella::TensorBase::adopt(lamella_tensor_grad(m.impl()));
  ASSERT_TRUE(grad.defined());
  EXPECT_EQ(grad.sizes().vec(), std::vector<int64_t>({2}));
}

TEST(Derive, TablesByKeyInForwardMode) {
  derive::meta_calls = 0;
  EXPECT_EQ(tangent_of(derive::keyed(dual(1, 5))), Values({10, 10}));
  EXPECT_EQ(derive::meta_calls, 0);
}

TEST(Derive, NoTableForTheKey) {
  const Tensor y = derive::only_meta(leaf(1));
  EXPECT_EQ(message<lamella::NotImplementedError>([&] { backward(y); }),
            "only_meta: the derivative for 'self' is not implemented");
}

TEST(Derive, KeysOfTablesAreChecked) {
  static constexpr lamella_derivative inner = {};
  static constexpr lamella_keyed_derivative keyed[] = {{"CPU", &inner}};
  static constexpr lamella_derivative table = {
      "Wrong", nullptr, nullptr, nullptr, nullptr, 0, 0, 0, 0, 0, 0, keyed, 1, 0, nullptr};
  lamella::Library library(lamella::Library::Kind::FRAGMENT, "derive", std::nullopt, "wrong.cpp",
                           7);
  EXPECT_EQ(message<lamella::Error>([&] { library.derivative("wrong", &table, "wrong.yaml", 3); }),
            "derive::wrong: expected an autograd key such as AutogradCPU for a derivative, got "
            "'CPU', at wrong.yaml:3");
}

TEST(Derive, ConditionOfReturn) {
  const Tensor x = leaf(1);
  const auto [first, second] = derive::maybe(x, true);
  EXPECT_TRUE(requires_grad(first));
  EXPECT_TRUE(requires_grad(second));
  backward(first + second);
  EXPECT_EQ(grad_of(x), Values({5, 5}));

  const Tensor y = leaf(1);
  const auto [free, tied] = derive::maybe(y, false);
  EXPECT_FALSE(requires_grad(free));
  EXPECT_TRUE(requires_grad(tied));
  backward(tied);
  EXPECT_EQ(grad_of(y), Values({3, 3}));

  const auto [plain, moving] = derive::maybe(dual(1, 5), false);
  EXPECT_EQ(tangent_of(plain), Values());
  EXPECT_EQ(tangent_of(moving), Values({15, 15}));
}

TEST(Derive, WhatWasMadeBeforeAFormulaThrowsIsReleased) {
  const Tensor a = leaf(1), b = leaf(2), c = leaf(3), d = leaf(4);
  derive::kept_gradients.clear();
  const Tensor y = derive::torn(a, b, std::vector<Tensor>{c, d});
  EXPECT_EQ(message<lamella::Error>([&] { backward(y); }), "torn: no gradient for 'b' today");
  ASSERT_EQ(derive::kept_gradients.size(), 1u);
  EXPECT_EQ(derive::kept_gradients[0].use_count(), 1u);
  for (const Tensor& one : {a, b, c, d}) EXPECT_EQ(grad_of(one), Values());

  // Without a required gradient for `b`, nothing throws.
  derive::kept_gradients.clear();
  backward(derive::torn(a, lamella::ones({2}, lamella::kFloat), std::vector<Tensor>{c, d}));
  EXPECT_EQ(derive::kept_gradients.size(), 3u);
  for (const Tensor& one : {a, c, d}) EXPECT_EQ(grad_of(one), Values({1, 1}));
  derive::kept_gradients.clear();
}

// What explain() says of the first key of a call.
std::string first_step(const char* name, const char* overload, const std::vector<Tensor>& tensors) {
  const lamella_operator* op = nullptr;
  lamella::detail::check(lamella_find_operator(name, overload, &op));
  std::vector<lamella_value> values(op->argument_count);
  for (size_t i = 0; i < tensors.size(); ++i) {
    values[i].tag = LAMELLA_TENSOR;
    values[i].as.tensor = tensors[i].impl();
  }
  const lamella::Explanation said = lamella::explain(op, values.data());
  EXPECT_NE(said.kernel, "");
  const lamella::Explanation::Step& step = said.steps.at(0);
  return step.verdict + ": " + step.reason;
}

// "FILE:LINE" of the entry of an operator.
std::string entry_place(const std::string& path, const std::string& name) {
  std::ifstream file(path);
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (!line.starts_with("- name: " + name + "(")) continue;
    return path.substr(path.rfind('/') + 1) + ":" + std::to_string(number);
  }
  return "";
}

TEST(Derive, ExplainSaysWhereTheDerivativeStands) {
  const std::string own = std::string(LAMELLA_TEST_DIR) + "/derive_derivatives.yaml";
  const std::string builtin = std::string(LAMELLA_TEST_DIR) + "/../../ops/derivatives.yaml";
  const Tensor x = leaf(1);
  EXPECT_EQ(first_step("aten::mul", "Tensor", {x, x}),
            "runs: records the gradient with the derivative registered at " +
                entry_place(builtin, "mul.Tensor") + ", then goes on");
  EXPECT_EQ(first_step("aten::mul", "Tensor", {x.detach(), x.detach()}),
            "skipped: no argument requires gradients");
  EXPECT_EQ(first_step("aten::detach", "", {x}),
            "skipped: not differentiable according to the derivative registered at " +
                entry_place(builtin, "detach"));
  EXPECT_EQ(first_step("derive::stuck", "", {x}),
            "runs: records the gradient with the derivative registered at " +
                entry_place(own, "derive::stuck") + ", then goes on");
  EXPECT_EQ(first_step("derive::keyed", "", {x}),
            "runs: records the gradient with the derivative registered at " +
                entry_place(own, "derive::keyed") + ", then goes on");
  EXPECT_EQ(first_step("derive::keyed", "", {meta_leaf()}),
            "runs: records the gradient with the derivative for AutogradMeta "
            "registered at " +
                entry_place(own, "derive::keyed") + ", then goes on");
}

TEST(Derive, NotImplemented) {
  const Tensor y = derive::stuck(leaf(1));
  try {
    backward(y);
    FAIL();
  } catch (const lamella::NotImplementedError& error) {
    EXPECT_EQ(error.msg(), "stuck: the derivative for 'self' is not implemented");
  }
}

}  // namespace
