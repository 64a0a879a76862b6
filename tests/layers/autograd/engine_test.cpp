// backward and grad as C++ users call them.
#include <cmath>

#include "tests/layers/autograd/testing.h"

namespace lamella {
namespace {

using autograd::variable_list;

TEST(Engine, RetainGraph) {
  Tensor x = leaf({3});
  Tensor y = x * x;
  y.backward({}, true);
  y.backward();
  EXPECT_EQ(numbers(x.grad()), Numbers({12}));
  expect_error([&] { y.backward(); },
               y.grad_fn()->name() +
                   ": what it saved was given up by an earlier backward; pass "
                   "retain_graph=True to it to go through the graph again");
}

TEST(Engine, CreateGraph) {
  Tensor x = leaf({2});
  Tensor y = x * x * x;
  Tensor first = autograd::grad({y}, {x}, {}, std::nullopt, true)[0];
  EXPECT_EQ(numbers(first), Numbers({12}));
  Tensor second = autograd::grad({first}, {x}, {}, std::nullopt, true)[0];
  EXPECT_EQ(numbers(second), Numbers({12}));
  EXPECT_EQ(numbers(autograd::grad({second}, {x})[0]), Numbers({6}));
  EXPECT_FALSE(x.grad().defined());
}

TEST(Engine, SeveralRoots) {
  Tensor x = leaf({1, 2});
  Tensor y = times(x, 2), z = Tensor(times(x, 3).select(0, 0));
  autograd::backward({y, z}, {make({1, 10}), Tensor()});
  EXPECT_EQ(numbers(x.grad()), Numbers({5, 20}));
  expect_error([&] { autograd::backward({y, z}, {Tensor()}); },
               "backward: expected 'grad_tensors' to have a tensor for each of the 2 in 'tensors', "
               "got 1");
  expect_error([&] { autograd::grad({y, z}, {x}, {Tensor()}); },
               "grad: expected 'grad_outputs' to have a tensor for each of the 2 in 'outputs', got "
               "1");
}

TEST(Engine, ImplicitGradientsNeedOneElement) {
  Tensor x = leaf({1, 2});
  expect_error([&] { (times(x, 2)).backward(); },
               "backward: expected 'gradient' for output 0, since it has more than one element, "
               "shape [2]");
  expect_error([&] { (times(x, 2)).backward(make({1})); },
               "backward: expected 'gradient' for output 0 of shape [2], got [1]");
  expect_error([&] { make({1}).backward(); },
               "backward: expected output 0 to require gradients, got a tensor that nothing was "
               "recorded for; was it computed under no_grad(), or from inputs that do not require "
               "gradients?");
  expect_error([&] { Tensor().backward(); },
               "backward: expected a defined tensor, got an undefined one");
}

TEST(Engine, InputsOnly) {
  Tensor a = leaf({2}), b = leaf({3});
  Tensor y = a * b;
  y.backward({}, true, false, TensorList{a});
  EXPECT_EQ(numbers(a.grad()), Numbers({3}));
  EXPECT_FALSE(b.grad().defined());
  autograd::backward({y}, {}, true, false, {b});
  EXPECT_EQ(numbers(b.grad()), Numbers({2}));
  EXPECT_EQ(numbers(a.grad()), Numbers({3}));
  expect_error([&] { y.backward({}, true, false, TensorList()); },
               "backward: expected 'inputs' to have tensors, got an empty list");
  expect_error([&] { autograd::grad({y}, {}); },
               "grad: expected 'inputs' to have tensors, got an empty list");
}

TEST(Engine, InputsThatAreNoLeaves) {
  Tensor x = leaf({2});
  Tensor y = times(x, 3), z = y * y;
  variable_list grads = autograd::grad({z}, {y, x, z}, {}, true);
  EXPECT_EQ(numbers(grads[0]), Numbers({12}));
  EXPECT_EQ(numbers(grads[1]), Numbers({36}));
  EXPECT_EQ(numbers(grads[2]), Numbers({1}));
}

TEST(Engine, UnusedInputs) {
  Tensor a = leaf({2}), b = leaf({3});
  Tensor y = times(a, 2);
  expect_error([&] { autograd::grad({y}, {a, b}, {}, true); },
               "grad: expected the outputs to depend on input 1, which they do not; pass "
               "allow_unused=True to get None for it");
  variable_list grads = autograd::grad({y}, {a, b}, {}, true, false, true);
  EXPECT_EQ(numbers(grads[0]), Numbers({2}));
  EXPECT_FALSE(grads[1].defined());
  expect_error([&] { autograd::grad({y}, {make({1})}, {}, true); },
               "backward: expected input 0 to require gradients");
}

TEST(Engine, GradientsAreSummedOverBroadcasting) {
  Tensor a = leaf({1, 2, 3, 4}, {2, 2}), b = leaf({1, 10});
  backward_of_sum((a * b));
  EXPECT_EQ(numbers(a.grad()), Numbers({1, 10, 1, 10}));
  EXPECT_EQ(numbers(b.grad()), Numbers({4, 6}));
}

TEST(Engine, ADiamond) {
  Tensor x = leaf({2});
  Tensor y = times(x, 3);
  ((times(y, 2)) + (y * y)).backward();
  EXPECT_EQ(numbers(x.grad()), Numbers({42}));
}

// Deep graphs run and end without deep recursion.
TEST(Engine, AMillionNodes) {
  constexpr int kNodes = 1'000'000;
  Tensor x = leaf({1}), one = scalar(1);
  {
    Tensor y = x;
    for (int i = 0; i < kNodes; ++i) y = y + one;
    y.backward();
    EXPECT_EQ(numbers(x.grad()), Numbers({1}));
  }
  {
    Tensor y = x;
    for (int i = 0; i < kNodes; ++i) y = y + one;
  }
  struct Same : autograd::Function<Same> {
    static Tensor forward(autograd::AutogradContext*, const Tensor& x) { return x.clone(); }
    static variable_list backward(autograd::AutogradContext*, variable_list grads) { return grads; }
  };
  {
    Tensor y = x;
    for (int i = 0; i < kNodes / 10; ++i) y = Same::apply(y);
    y.backward();
    EXPECT_EQ(numbers(x.grad()), Numbers({2}));
  }
}

// Backward inside of backward.
TEST(Engine, Reentrant) {
  struct Checkpoint : autograd::Function<Checkpoint> {
    static Tensor forward(autograd::AutogradContext* ctx, const Tensor& x) {
      ctx->save_for_backward({x});
      return (x * x).exp();
    }
    static variable_list backward(autograd::AutogradContext* ctx, variable_list grads) {
      AutoGradMode enabled(true);
      Tensor x = ctx->get_saved_variables()[0].detach().requires_grad_();
      (x * x).exp().backward(grads[0]);
      return {x.grad()};
    }
  };
  Tensor x = leaf({0.5});
  Tensor y = Checkpoint::apply(times(x, 2));
  y.backward();
  EXPECT_NEAR(numbers(x.grad())[0], 2 * 2 * std::exp(1.0), 1e-12);
}

}  // namespace
}  // namespace lamella
