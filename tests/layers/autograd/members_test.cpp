// A Tensor's autograd members: leaves, grad, hooks, views, options of factories.
#include "tests/layers/autograd/testing.h"

namespace lamella {
namespace {

TEST(Members, Leaves) {
  Tensor x = make({1, 2});
  EXPECT_FALSE(x.requires_grad());
  EXPECT_TRUE(x.is_leaf());
  EXPECT_TRUE(x.requires_grad_().is_same(x));
  EXPECT_TRUE(x.requires_grad() && x.is_leaf());
  EXPECT_FALSE(x.grad_fn());
  EXPECT_TRUE(x.grad_fn() == nullptr);
  Tensor y = times(x, 2);
  EXPECT_TRUE(y.requires_grad());
  EXPECT_FALSE(y.is_leaf());
  EXPECT_TRUE(y.grad_fn()->name().starts_with("MulBackward"));
  EXPECT_EQ(y.output_nr(), 0u);
  EXPECT_FALSE(x.set_requires_grad(false).requires_grad());
  EXPECT_FALSE(Tensor().requires_grad());
  EXPECT_THROW(Tensor().is_leaf(), Error);
}

TEST(Members, RequiresGradHasConditions) {
  expect_error([] { zeros({2}, ScalarType::Long).requires_grad_(); },
               "requires_grad_: expected a floating-point or complex tensor, got int64");
  Tensor y = times(leaf({1}), 2);
  expect_error([&] { y.requires_grad_(false); },
               "requires_grad_: expected a leaf, got a tensor that " + y.grad_fn()->name() +
                   " made; use detach() for a tensor without its history");
  EXPECT_NO_THROW(y.requires_grad_());
}

TEST(Members, NodesOutliveTheirTensors) {
  Tensor x = leaf({1});
  autograd::GraphNodePtr node = (times(x, 2)).grad_fn();
  autograd::GraphNodePtr copy = node;
  node = nullptr;
  EXPECT_FALSE(node);
  EXPECT_TRUE(copy->name().starts_with("MulBackward"));
  EXPECT_TRUE(copy->should_compute_output(0));
  autograd::GraphNodePtr moved = std::move(copy);
  EXPECT_TRUE((*moved).name().starts_with("MulBackward"));
  EXPECT_FALSE(copy);
}

TEST(Members, GradIsAccumulatedAndAssigned) {
  Tensor x = leaf({1, 2});
  EXPECT_FALSE(x.grad().defined());
  backward_of_sum(x);
  backward_of_sum(x);
  EXPECT_EQ(numbers(x.grad()), Numbers({2, 2}));
  x.mutable_grad() = make({5, 6});
  EXPECT_EQ(numbers(x.grad()), Numbers({5, 6}));
  x.mutable_grad().zero_();
  EXPECT_EQ(numbers(x.grad()), Numbers({0, 0}));
  EXPECT_TRUE(x.mutable_grad().defined());
  x.mutable_grad().reset();
  EXPECT_FALSE(x.grad().defined());
  expect_error([&] { x.mutable_grad() = make({1}); },
               "grad: expected the shape of its tensor, [2], got [1]");
}

TEST(Members, RetainGrad) {
  Tensor x = leaf({3});
  Tensor y = times(x, 2), z = times(y, 5);
  y.retain_grad();
  y.retain_grad();
  z.backward();
  EXPECT_EQ(numbers(y.grad()), Numbers({5}));
  EXPECT_EQ(numbers(x.grad()), Numbers({10}));
  EXPECT_THROW(make({1}).retain_grad(), Error);
}

TEST(Members, HooksSeeAndReplace) {
  Tensor x = leaf({3});
  Tensor y = times(x, 2);
  std::vector<std::string> order;
  y.register_hook([&](const Tensor& grad) {
    order.push_back("first");
    EXPECT_EQ(numbers(grad), Numbers({1}));
    return times(grad, 10);
  });
  uint64_t removed = y.register_hook([&](Tensor) { order.push_back("removed"); });
  y.register_hook([&](Tensor grad) {
    order.push_back("last");
    EXPECT_EQ(numbers(grad), Numbers({10}));
  });
  y.remove_hook(removed);
  x.register_hook([&](const Tensor& grad) -> Tensor {
    order.push_back("leaf");
    EXPECT_EQ(numbers(grad), Numbers({20}));
    return Tensor();  // unchanged
  });
  y.backward();
  EXPECT_EQ(order, std::vector<std::string>({"first", "last", "leaf"}));
  EXPECT_EQ(numbers(x.grad()), Numbers({20}));
}

TEST(Members, HooksThatAreNotThere) {
  Tensor x = leaf({3}), y = times(x, 2);
  const std::string text = "remove_hook: expected the number of a hook of this tensor, got ";
  uint64_t id = x.register_hook([](const Tensor&) {});
  expect_error([&] { y.remove_hook(id); }, text + std::to_string(id));
  expect_error([&] { make({1}).remove_hook(0); }, text + "0");
  x.remove_hook(id);
  expect_error([&] { x.remove_hook(id); }, text + std::to_string(id));
}

TEST(Members, HooksThatThrow) {
  Tensor x = leaf({3});
  Tensor y = times(x, 2);
  y.register_hook([](const Tensor&) { throw std::runtime_error("hooked"); });
  expect_error([&] { y.backward(); }, "hooked");
  EXPECT_THROW(make({1}).register_hook([](const Tensor&) {}), Error);
}

TEST(Members, HooksEndWithTheirTensor) {
  Counted::alive = 0;
  {
    Tensor x = leaf({3});
    Counted counted;
    x.register_hook([counted](const Tensor&) {});
    uint64_t id = x.register_hook([counted](const Tensor&) {});
    EXPECT_EQ(Counted::alive, 3);
    x.remove_hook(id);
    EXPECT_EQ(Counted::alive, 2);
    Tensor y = times(x, 2);
    y.register_hook([counted](const Tensor&) {});
    y.backward();
  }
  EXPECT_EQ(Counted::alive, 0);
  // A tensor that takes no hook does not keep it.
  EXPECT_THROW(make({1}).register_hook([c = Counted()](const Tensor&) {}), Error);
  EXPECT_EQ(Counted::alive, 0);
}

TEST(Members, ViewsAndDetached) {
  Tensor x = make({1, 2, 3});
  EXPECT_FALSE(x.is_view());
  Tensor v = x.select(0, 1), w = v.unsqueeze(0);
  EXPECT_TRUE(v.is_view() && w.is_view());
  EXPECT_TRUE(v._base().is_same(x));
  EXPECT_TRUE(w._base().is_same(x));
  expect_error([&] { x._base(); }, "_base: expected a view, got a tensor that is none");
  Tensor y = times(leaf({1}), 2);
  for (const Tensor& d : {y.detach(), y.data(), y.variable_data(), y.tensor_data()}) {
    EXPECT_FALSE(d.requires_grad());
    EXPECT_FALSE(d.is_view());
    EXPECT_EQ(d.data_ptr(), y.data_ptr());
  }
}

TEST(Members, DetachInPlace) {
  Tensor x = leaf({1, 2}), y = times(x, 2), z = times(x, 3);
  EXPECT_TRUE(y.detach_().is_same(y));
  EXPECT_TRUE(y.is_leaf());
  EXPECT_FALSE(y.requires_grad());
  {
    NoGradGuard guard;
    detach_(z);
  }
  EXPECT_TRUE(z.is_leaf());
  EXPECT_FALSE(z.requires_grad());
  z.mul_(2);  // no history is left that a write could harm
  Tensor w = times(x, 5);
  Tensor view = w.select(0, 0);
  expect_error([&] { view.detach_(); },
               "detach_: expected a tensor that is no view, got a view of one that requires "
               "gradients; use detach()");
  EXPECT_TRUE(view.requires_grad());
  Tensor part = make({1, 2}).select(0, 0);
  expect_error([&] { part.detach_(); },
               "detach_: expected a tensor that is no view, got a view; use detach()");
  w.detach().detach_();
  x.detach_();
  EXPECT_FALSE(x.requires_grad());
  EXPECT_EQ(numbers(x), Numbers({1, 2}));
}

// What is written through data() is not seen by a backward, what is written through detach() is.
TEST(Members, DataCountsItsWrites) {
  Tensor x = leaf({1, 2}), y = x * x;
  x.data().mul_(3);
  y.backward(make({1, 1}));
  EXPECT_EQ(numbers(x.grad()), Numbers({6, 12}));
  EXPECT_EQ(x.data()._version(), 0u);
  EXPECT_EQ(x.tensor_data()._version(), x._version());
  Tensor data = x.variable_data(), z = x * x;
  data.select(0, 0).zero_();
  EXPECT_EQ(data._version(), 1u);
  x.tensor_data().zero_();
  EXPECT_THROW(z.backward(make({1, 1})), Error);
}

// A view made before its base got a history has one as well.
TEST(Members, ViewsOfAWrittenBase) {
  Tensor x = leaf({5});
  Tensor base = make({1, 2});
  Tensor view = base.select(0, 0);
  EXPECT_FALSE(view.requires_grad());
  base.mul_(x);
  EXPECT_TRUE(view.requires_grad());
  EXPECT_FALSE(view.is_leaf());
  view.backward();
  EXPECT_EQ(numbers(x.grad()), Numbers({1}));
}

TEST(Members, OptionsOfFactories) {
  TensorOptions options = dtype(ScalarType::Double).requires_grad(true);
  Tensor x = ones({2}, options);
  EXPECT_TRUE(x.requires_grad() && x.is_leaf());
  EXPECT_TRUE(zeros_like(x, options).requires_grad());
  EXPECT_TRUE(x.new_empty({3}, requires_grad()).requires_grad());
  EXPECT_FALSE(empty({2}, TensorOptions().requires_grad(false)).requires_grad());
  double number = 3;
  EXPECT_TRUE(from_blob(&number, {1}, options).requires_grad());
  EXPECT_FALSE(x.options().requires_grad());
  expect_error([&] { x.to(options); },
               "to: expected options without requires_grad, because the result may be 'self'");
}

}  // namespace
}  // namespace lamella
