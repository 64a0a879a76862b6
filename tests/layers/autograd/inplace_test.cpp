// In-place writes, through views and to saved tensors.
#include "tests/layers/autograd/testing.h"

namespace lamella {
namespace {

TEST(InPlace, RecordsLikeTheFunctionalForm) {
  Tensor x = leaf({2, 3});
  Tensor y = times(x, 1);
  y.mul_(x);
  EXPECT_TRUE(y.grad_fn());
  backward_of_sum(y);
  EXPECT_EQ(numbers(x.grad()), Numbers({4, 6}));
}

TEST(InPlace, ALeafIsRefused) {
  Tensor x = leaf({2, 3});
  expect_error(
      [&] { x.mul_(2); },
      "mul_: expected 'self' not to be a leaf that requires gradients, since it is written "
      "in place; write it under no_grad(), or write a copy");
  expect_error([&] { x.select(0, 0).mul_(2); },
               "mul_: expected 'self' not to be a view of a leaf that requires gradients, since it "
               "is written in place; write it under no_grad(), or write a copy");
  NoGradGuard guard;
  EXPECT_NO_THROW(x.mul_(2));
  EXPECT_EQ(numbers(x), Numbers({4, 6}));
}

TEST(InPlace, ThroughAView) {
  Tensor x = leaf({5});
  Tensor base = zeros({3}, ScalarType::Double);
  base.select(0, 1).add_(x.select(0, 0));
  EXPECT_TRUE(base.requires_grad());
  backward_of_sum((base * make({1, 10, 100})));
  EXPECT_EQ(numbers(x.grad()), Numbers({10}));
}

TEST(InPlace, ThroughAViewOfAView) {
  Tensor x = leaf({1, 2, 3, 4}, {2, 2});
  Tensor y = times(x, 1);
  Tensor row = y.select(0, 1), entry = row.select(0, 0);
  entry.mul_(scalar(10));
  EXPECT_TRUE(row.requires_grad());
  backward_of_sum(y);
  EXPECT_EQ(numbers(x.grad()), Numbers({1, 1, 10, 1}));
}

TEST(InPlace, VersionsAreChecked) {
  Tensor x = leaf({2});
  Tensor y = times(x, 1);
  Tensor z = y * y;
  EXPECT_EQ(y._version(), 0u);
  y.add_(1);
  EXPECT_EQ(y._version(), 1u);
  expect_error(
      [&] { z.backward(); },
      z.grad_fn()->name() +
          ": expected 'other' as it was when it was saved, at version 0, got version 1: it "
          "was written in place since; write a copy instead, or enable anomaly detection "
          "to see where it was used");
  // Through an alias as well.
  Tensor saved = make({3});
  Tensor w = x * saved;
  saved.detach().add_(1);
  EXPECT_THROW(w.backward(), Error);
}

TEST(InPlace, OutFormsAreRefused) {
  Tensor x = leaf({2});
  Tensor out = make({0});
  EXPECT_THROW(mul_out(out, x, x), Error);
  NoGradGuard guard;
  EXPECT_NO_THROW(mul_out(out, x, x));
}

// What a Function returns as a view of its input cannot be written to: the two histories would not
// agree.
struct FirstEntry : autograd::Function<FirstEntry> {
  static Tensor forward(autograd::AutogradContext*, const Tensor& x) { return x.select(0, 0); }
  static autograd::variable_list backward(autograd::AutogradContext*,
                                          autograd::variable_list grads) {
    Tensor grad = zeros({2}, grads[0].options());
    grad.select(0, 0).copy_(times(grads[0], 100));
    return {grad};
  }
};

TEST(InPlace, ViewsThatAFunctionReturns) {
  Tensor x = leaf({2, 3});
  Tensor y = times(x, 1);
  Tensor v = FirstEntry::apply(y);
  EXPECT_TRUE(v.requires_grad());
  v.backward();
  EXPECT_EQ(numbers(x.grad()), Numbers({100, 0}));
  const std::string name = "lamella::(anonymous namespace)::FirstEntry";
  expect_error([&] { v.mul_(2); },
               "mul_: expected 'self' not to be a view that " + name +
                   " returned, since the gradient of that function would be lost when it is "
                   "written in place; write a copy");
  v = FirstEntry::apply(y);
  y.mul_(2);
  expect_error([&] { v.backward(); },
               name +
                   ": expected the view that it returned to be used before its base is written "
                   "in place, since its gradient would be lost; return a copy of it");
}

}  // namespace
}  // namespace lamella
