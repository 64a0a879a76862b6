// autograd::Function under vmap, called directly and as the kernel of an operator.

#include "tests/layers/vmap/testing.h"

namespace lamella {
namespace {

using autograd::AutogradContext;
using autograd::variable_list;

std::vector<int64_t> seen_sizes;

// x^2 * w
struct SquareTimes : autograd::Function<SquareTimes> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& w, double factor) {
    Tensor square = x * x;
    ctx->save_for_backward({x, w, square});
    ctx->saved_data["factor"] = factor;
    return times(square * w, factor);
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    variable_list saved = ctx->get_saved_variables();
    seen_sizes = saved[0].sizes().vec();
    double factor = ctx->saved_data["factor"].toDouble();
    return {times(grads[0] * saved[0] * saved[1], 2 * factor), times(grads[0] * saved[2], factor),
            Tensor()};
  }
};

// Returns what it saves, and a second output that is not used.
struct ExpAndOnes : autograd::Function<ExpAndOnes> {
  static variable_list forward(AutogradContext* ctx, const Tensor& x) {
    Tensor y = x.exp();
    ctx->save_for_backward({y});
    return {y, times(y, 3)};
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    return {(grads[0] + times(grads[1], 3)) * ctx->get_saved_variables()[0]};
  }
};

struct AddOne : autograd::Function<AddOne> {
  static Tensor forward(AutogradContext* ctx, Tensor x) {
    x.add_(scalar(1));
    ctx->mark_dirty({x});
    return x;
  }
  static variable_list backward(AutogradContext*, variable_list grads) { return {grads[0]}; }
};

Tensor square_times(const Tensor& x, const Tensor& w) { return x * x * w; }

}  // namespace
}  // namespace lamella

LAMELLA_LIBRARY(vmap_functions, m) { m.def("square_times(Tensor x, Tensor w) -> Tensor"); }
LAMELLA_LIBRARY_IMPL(vmap_functions, CPU, m) { m.impl("square_times", lamella::square_times); }
LAMELLA_LIBRARY_IMPL(vmap_functions, Autograd, m) {
  m.impl("square_times", [](const lamella::Tensor& x, const lamella::Tensor& w) -> lamella::Tensor {
    return lamella::SquareTimes::apply(x, w, 1.0);
  });
}

namespace lamella {
namespace {

TEST(FunctionUnderVmap, CalledOnBatchedTensors) {
  Tensor x = leaf({1, 2, 3, 4}, {2, 2});
  Tensor w = leaf({10, 100});
  Tensor y;
  {
    Mapped map(2);
    Tensor result = SquareTimes::apply(map.in(x), w, 2.0);
    EXPECT_TRUE(result.requires_grad());
    y = map.out(result);
  }
  EXPECT_EQ(numbers(y), (Numbers{20, 800, 180, 3200}));
  // The vmap has ended; its level runs again for the backward.
  backward_of_sum(y);
  EXPECT_EQ(seen_sizes, (std::vector<int64_t>{2}));
  EXPECT_EQ(numbers(x.grad()), (Numbers{40, 800, 120, 1600}));
  EXPECT_EQ(numbers(w.grad()), (Numbers{20, 40}));  // of both examples
}

TEST(FunctionUnderVmap, SavedOutputsAndMissingGradients) {
  Tensor x = leaf({0, 1}, {2, 1});
  Tensor y;
  {
    Mapped map(2);
    y = map.out(ExpAndOnes::apply(map.in(x))[0]);
  }
  backward_of_sum(y);
  // The saved output is the gradient, to the last bit.
  EXPECT_EQ(numbers(x.grad()), numbers(x.detach().exp()));
}

TEST(FunctionUnderVmap, AnInputThatItWrites) {
  Tensor x = leaf({1, 2}, {2, 1});
  Tensor y;
  {
    Mapped map(2);
    Tensor product = map.in(x)*scalar(2);
    AddOne::apply(product);
    y = map.out(product * product);
  }
  EXPECT_EQ(numbers(y), (Numbers{9, 25}));
  backward_of_sum(y);
  EXPECT_EQ(numbers(x.grad()), (Numbers{12, 20}));
}

TEST(FunctionUnderVmap, AsTheKernelOfAnOperator) {
  auto op = Dispatcher::singleton()
                .findSchemaOrThrow("vmap_functions::square_times", "")
                .typed<Tensor(const Tensor&, const Tensor&)>();
  Tensor x = leaf({1, 2, 3, 4}, {2, 2});
  Tensor w = leaf({10, 100});
  Tensor y;
  {
    Mapped map(2);
    y = map.out(op.call(map.in(x), w));
  }
  backward_of_sum(y);
  EXPECT_EQ(numbers(x.grad()), (Numbers{20, 400, 60, 800}));
  EXPECT_EQ(numbers(w.grad()), (Numbers{10, 20}));
}

TEST(FunctionUnderVmap, InTwoLevels) {
  Tensor x = leaf({1, 2});
  Tensor w = leaf({1, 10, 100});
  Tensor y;
  {
    Mapped outer(2);
    Mapped inner(3);
    y = outer.out(inner.out(SquareTimes::apply(outer.in(x), inner.in(w), 1.0)));
  }
  EXPECT_EQ(numbers(y), (Numbers{1, 10, 100, 4, 40, 400}));
  backward_of_sum(y);
  EXPECT_EQ(numbers(x.grad()), (Numbers{222, 444}));
  EXPECT_EQ(numbers(w.grad()), (Numbers{5, 5, 5}));
}

}  // namespace
}  // namespace lamella
