// autograd::Function: arguments and outputs of every kind, saved values, errors, and leaks.
#include "tests/layers/autograd/testing.h"

namespace lamella {
namespace {

using autograd::AutogradContext;
using autograd::Function;
using autograd::tensor_list;
using autograd::variable_list;

struct Square : Function<Square> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    EXPECT_FALSE(GradMode::is_enabled());
    ctx->save_for_backward({x});
    return x * x;
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    return {times(ctx->get_saved_variables()[0], 2) * grads[0]};
  }
};

TEST(Function, ForwardAndBackward) {
  Tensor x = leaf({1, -2, 3});
  Tensor y = Square::apply(x);
  EXPECT_EQ(numbers(y), Numbers({1, 4, 9}));
  EXPECT_TRUE(y.requires_grad());
  EXPECT_FALSE(y.is_leaf());
  ASSERT_TRUE(y.grad_fn());
  EXPECT_EQ(y.grad_fn()->name(), "lamella::(anonymous namespace)::Square");
  EXPECT_EQ(y.grad_fn()->num_inputs(), 1u);
  EXPECT_EQ(y.grad_fn()->num_outputs(), 1u);
  y.backward(make({1, 1, 10}));
  EXPECT_EQ(numbers(x.grad()), Numbers({2, -4, 60}));
}

TEST(Function, IsNotRecordedWithoutNeed) {
  EXPECT_FALSE(Square::apply(make({1})).requires_grad());
  Tensor x = leaf({3});
  NoGradGuard guard;
  Tensor y = Square::apply(x);
  EXPECT_FALSE(y.requires_grad());
  EXPECT_FALSE(y.grad_fn());
}

TEST(Function, BackwardIsRecordedForSecondGradients) {
  Tensor x = leaf({3});
  Tensor first = autograd::grad({Square::apply(x)}, {x}, {}, true, true)[0];
  EXPECT_EQ(numbers(first), Numbers({6}));
  ASSERT_TRUE(first.requires_grad());
  EXPECT_EQ(numbers(autograd::grad({first}, {x})[0]), Numbers({2}));
}

// Right behind the call [0] is the tensor; of a named one it is the first entry.
TEST(Function, ATensorOrAListOfOne) {
  Tensor x = leaf({2, 3});
  EXPECT_EQ(numbers(Square::apply(x)[0]), Numbers({4, 9}));
  auto y = Square::apply(x);
  EXPECT_EQ(numbers(y[0]), Numbers({4}));
  EXPECT_EQ(numbers(y[1]), Numbers({9}));
  y = times(y, 2);
  EXPECT_EQ(numbers(y[1]), Numbers({18}));
  expect_error<IndexError>(
      [&] { Square::apply(x)[1]; },
      "apply: expected index 0 right behind a call that gives one tensor, got 1; name the tensor "
      "first to take its entries");
}

// Arguments of all kinds; each list entry has a gradient of its own.
struct Endless : Function<Endless> {
  static Tensor forward(AutogradContext*, const Tensor& x) { return times(x, 2); }
  static variable_list backward(AutogradContext*, variable_list grads) {
    Tensor x = leaf({1, 2});
    GradMode::set_enabled(true);
    Endless::apply(x).backward(make({1, 1}));
    return grads;
  }
};

TEST(Function, BackwardInsideOfBackwardWithoutEnd) {
  try {
    Endless::apply(leaf({1, 2})).backward(make({1, 1}));
    ADD_FAILURE() << "expected an error";
  } catch (const Error& e) {
    const std::string_view text = e.what();
    EXPECT_TRUE(
        text.starts_with("backward: expected calls of backward inside of each other to fit "
                         "the thread's stack, got "))
        << text;
  }
  // The engine can be used afterwards.
  Tensor x = leaf({3});
  Square::apply(x).backward(make({1}));
  EXPECT_EQ(numbers(x.grad()), Numbers({6}));
}

struct Weighted : Function<Weighted> {
  static Tensor forward(AutogradContext* ctx, TensorList xs, const std::vector<double>& weights,
                        const std::optional<Tensor>& shift, std::string name, const Tensor& last) {
    Tensor sum = last.clone();
    for (size_t i = 0; i < xs.size(); ++i) sum = sum + times(xs[i], weights[i]);
    if (shift.has_value()) sum = sum + *shift;
    ctx->saved_data["weights"] = weights;
    ctx->saved_data["name"] = name;
    ctx->saved_data["shifted"] = shift.has_value();
    return sum;
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    EXPECT_EQ(ctx->saved_data["name"].toStringRef(), "weighted");
    variable_list result;
    std::vector<double> weights = ctx->saved_data["weights"].toDoubleVector();
    for (double weight : weights) result.push_back(times(grads[0], weight));
    result.emplace_back();
    result.push_back(ctx->saved_data["shifted"].toBool() ? times(grads[0], 7) : Tensor());
    result.emplace_back();
    result.push_back(grads[0]);
    return result;
  }
};

TEST(Function, ArgumentsOfAllKinds) {
  Tensor a = leaf({1}), b = make({2}), c = leaf({3}), shift = leaf({4}), last = leaf({5});
  std::vector<Tensor> xs = {a, b, c};
  Tensor y = Weighted::apply(TensorList(xs), std::vector<double>{10, 20, 30},
                             std::optional<Tensor>(shift), "weighted", last);
  EXPECT_EQ(numbers(y), Numbers({10 + 40 + 90 + 4 + 5}));
  EXPECT_EQ(y.grad_fn()->num_outputs(), 5u);  // three entries, shift, last
  y.backward();
  EXPECT_EQ(numbers(a.grad()), Numbers({10}));
  EXPECT_FALSE(b.grad().defined());
  EXPECT_EQ(numbers(c.grad()), Numbers({30}));
  EXPECT_EQ(numbers(shift.grad()), Numbers({7}));
  EXPECT_EQ(numbers(last.grad()), Numbers({1}));

  // Without the optional one, and with a vector in place of the span.
  Tensor z = Weighted::apply(xs, std::vector<double>{1, 1, 2}, std::nullopt, "weighted", last);
  EXPECT_EQ(z.grad_fn()->num_outputs(), 4u);
  EXPECT_EQ(numbers(autograd::grad({z}, {c})[0]), Numbers({2}));
}

struct Split : Function<Split> {
  static std::tuple<Tensor, Tensor> forward(AutogradContext*, const Tensor& x) {
    return {times(x, 2), times(x, 3)};
  }
  static tensor_list backward(AutogradContext*, tensor_list grads) {
    EXPECT_TRUE(grads[0].defined() && grads[1].defined());
    return {times(grads[0], 2) + times(grads[1], 3)};
  }
};

TEST(Function, TuplesOfOutputs) {
  Tensor x = leaf({1, 2});
  auto [a, b] = Split::apply(x);
  EXPECT_EQ(a.output_nr(), 0u);
  EXPECT_EQ(b.output_nr(), 1u);
  EXPECT_TRUE(a.grad_fn() == b.grad_fn());
  // No gradient comes for a: it is made of zeros.
  b.backward(make({1, 1}));
  EXPECT_EQ(numbers(x.grad()), Numbers({3, 3}));
}

struct Raw : Function<Raw> {
  static variable_list forward(AutogradContext* ctx, const Tensor& x) {
    ctx->set_materialize_grads(false);
    return {times(x, 2), times(x, 3)};
  }
  static variable_list backward(AutogradContext*, variable_list grads) {
    EXPECT_FALSE(grads[0].defined());
    return {times(grads[1], 3)};
  }
};

TEST(Function, GradientsThatAreNotMaterialized) {
  Tensor x = leaf({1});
  Raw::apply(x)[1].backward();
  EXPECT_EQ(numbers(x.grad()), Numbers({3}));
}

// The largest entry and where it is: whole numbers and marked outputs have no gradient.
struct Largest : Function<Largest> {
  static variable_list forward(AutogradContext* ctx, const Tensor& x, bool mark) {
    Tensor value = x.amax(), place = x.argmax(), twice = times(value, 2);
    ctx->save_for_backward({place});
    ctx->saved_data["size"] = x.size(0);
    if (mark) ctx->mark_non_differentiable({twice});
    return {value, place, twice};
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    EXPECT_EQ(grads.size(), 3u);
    EXPECT_EQ(grads[1].scalar_type(), ScalarType::Long);
    EXPECT_EQ(numbers(grads[1]), Numbers({0}));
    int64_t place = ctx->get_saved_variables()[0].item<int64_t>();
    Tensor grad = zeros({ctx->saved_data["size"].toInt()}, grads[0].options());
    grad.select(0, place).copy_(grads[0] + times(grads[2], 2));
    return {grad, Tensor()};
  }
};

TEST(Function, OutputsWithoutGradients) {
  for (bool mark : {false, true}) {
    Tensor x = leaf({1, 5, 2});
    variable_list outputs = Largest::apply(x, mark);
    EXPECT_TRUE(outputs[0].requires_grad());
    EXPECT_FALSE(outputs[1].requires_grad());
    EXPECT_EQ(outputs[2].requires_grad(), !mark);
    autograd::backward({outputs[0]});
    EXPECT_EQ(numbers(x.grad()), Numbers({0, 1, 0}));
  }
}

// Inputs that are returned as they are get a history of their own.
struct PassOn : Function<PassOn> {
  static variable_list forward(AutogradContext*, const Tensor& x, const Tensor& y) {
    return {x, y, x};
  }
  static variable_list backward(AutogradContext*, variable_list grads) {
    return {times(grads[0], 10) + times(grads[2], 100), grads[1]};
  }
};

TEST(Function, InputsReturnedAsTheyAre) {
  Tensor x = leaf({1}), y = make({2});
  variable_list outputs = PassOn::apply(x, y);
  EXPECT_TRUE(x.is_leaf());
  EXPECT_FALSE(outputs[0].is_same(x));
  EXPECT_EQ(outputs[0].data_ptr(), x.data_ptr());
  autograd::backward({outputs[0], outputs[1], outputs[2]});
  EXPECT_EQ(numbers(x.grad()), Numbers({110}));
}

struct Twice : Function<Twice> {
  static variable_list forward(AutogradContext*, const Tensor& x) {
    Tensor y = times(x, 2);
    return {y, y};
  }
  static variable_list backward(AutogradContext*, variable_list grads) {
    EXPECT_TRUE(grads[1].defined());
    return {times(grads[0] + grads[1], 2)};
  }
};

TEST(Function, AnOutputReturnedTwice) {
  Tensor x = leaf({1});
  variable_list outputs = Twice::apply(x);
  EXPECT_TRUE(outputs[0].is_same(outputs[1]));
  (outputs[0] + outputs[1]).backward();
  EXPECT_EQ(numbers(x.grad()), Numbers({4}));
}

struct NoOutput : Function<NoOutput> {
  static variable_list forward(AutogradContext*, const Tensor&) { return {Tensor()}; }
  static variable_list backward(AutogradContext*, variable_list) { return {Tensor()}; }
};

TEST(Function, AnUndefinedOutput) {
  Tensor x = leaf({1});
  EXPECT_FALSE(NoOutput::apply(x)[0].defined());
}

// An undefined gradient is none.
TEST(Function, AnUndefinedGradient) {
  struct Silent : Function<Silent> {
    static Tensor forward(AutogradContext*, const Tensor& x) { return x.clone(); }
    static variable_list backward(AutogradContext*, variable_list) { return {Tensor()}; }
  };
  Tensor x = leaf({1});
  Tensor(Silent::apply(x)).backward();
  EXPECT_FALSE(x.grad().defined());
}

struct Needs : Function<Needs> {
  static inline std::vector<bool> seen;
  static Tensor forward(AutogradContext* ctx, const Tensor& a, int64_t, const Tensor& b,
                        TensorList c) {
    return a + b + c[0] + c[1];
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    for (size_t i = 0; i < 4; ++i) seen.push_back(ctx->needs_input_grad(i));
    seen.push_back(ctx->needs_input_grad({{1, 3}}));
    seen.push_back(ctx->needs_input_grad({{0, 2}, {2, 3}}));
    seen.push_back(ctx->needs_input_grad(100));
    return {grads[0], Tensor(), grads[0], grads[0], grads[0]};
  }
};

TEST(Function, WhichGradientsAreNeeded) {
  Tensor a = leaf({1}), b = make({1}), c = make({1}), d = leaf({1});
  Needs::seen.clear();
  Tensor(Needs::apply(a, 5, b, std::vector<Tensor>{c, d})).backward();
  EXPECT_EQ(Needs::seen, std::vector<bool>({true, false, false, true, false, true, false}));
}

TEST(Function, WhichGradientsARunAsksFor) {
  Tensor a = leaf({1}), b = make({1}), c = make({1}), d = leaf({1});
  Tensor y = Needs::apply(a, 1, b, std::vector<Tensor>{c, d});
  Needs::seen.clear();
  autograd::grad({y}, {d}, {}, /*retain_graph=*/true);
  EXPECT_EQ(std::vector<bool>(Needs::seen.begin(), Needs::seen.begin() + 4),
            std::vector<bool>({false, false, false, true}));
  Needs::seen.clear();
  y.backward();
  EXPECT_EQ(std::vector<bool>(Needs::seen.begin(), Needs::seen.begin() + 4),
            std::vector<bool>({true, false, false, true}));
}

// ---- Errors ----------------------------------------------------------------------------------

template <class F>
void expect_backward_error(const std::string& text) {
  Tensor x = leaf({1, 2, 3});
  expect_error([&] { backward_of_sum(Tensor(F::apply(x, 4))); }, text);
}
struct TooFew : Function<TooFew> {
  static Tensor forward(AutogradContext*, const Tensor& x, int64_t) { return times(x, 2); }
  static variable_list backward(AutogradContext*, variable_list grads) { return {grads[0]}; }
};
struct TooMany : Function<TooMany> {
  static Tensor forward(AutogradContext*, const Tensor& x, int64_t) { return times(x, 2); }
  static variable_list backward(AutogradContext*, variable_list grads) {
    return {grads[0], Tensor(), grads[0]};
  }
};
struct ForNumber : Function<ForNumber> {
  static Tensor forward(AutogradContext*, const Tensor& x, int64_t) { return times(x, 2); }
  static variable_list backward(AutogradContext*, variable_list grads) {
    return {grads[0], grads[0]};
  }
};
struct Harmless : Function<Harmless> {
  static Tensor forward(AutogradContext*, const Tensor& x, int64_t) { return times(x, 2); }
  static variable_list backward(AutogradContext*, variable_list grads) {
    return {grads[0], Tensor(), Tensor(), Tensor()};
  }
};
struct WrongShape : Function<WrongShape> {
  static Tensor forward(AutogradContext*, const Tensor& x, int64_t) { return times(x, 2); }
  static variable_list backward(AutogradContext*, variable_list) {
    return {make({1, 2}), Tensor()};
  }
};
struct Throws : Function<Throws> {
  static Tensor forward(AutogradContext*, const Tensor& x, int64_t) { return times(x, 2); }
  static variable_list backward(AutogradContext*, variable_list) {
    throw std::runtime_error("out of patience");
  }
};

TEST(FunctionErrors, GradientsThatDoNotFit) {
  const std::string prefix = "lamella::(anonymous namespace)::";
  expect_backward_error<TooFew>(
      prefix +
      "TooFew: expected backward to return a gradient for each of the 2 arguments of "
      "forward, got 1");
  expect_backward_error<TooMany>(
      prefix +
      "TooMany: expected backward to return a gradient for each of the 2 arguments of "
      "forward, got 3");
  expect_backward_error<ForNumber>(
      prefix +
      "ForNumber: expected backward to return an undefined tensor for argument 1 of "
      "forward, which is no tensor, got one of shape [3]");
  Tensor x = leaf({1});
  EXPECT_NO_THROW(Tensor(Harmless::apply(x, 4)).backward());
}

TEST(FunctionErrors, AWrongShape) {
  expect_backward_error<WrongShape>(
      "lamella::(anonymous namespace)::WrongShape: expected gradient 0 of shape [3], got [2]");
}

TEST(FunctionErrors, ExceptionsComeOutWithTheirText) {
  expect_backward_error<Throws>("out of patience");
  struct ForwardThrows : Function<ForwardThrows> {
    static Tensor forward(AutogradContext*, const Tensor&) {
      throw std::invalid_argument("not today");
    }
    static variable_list backward(AutogradContext*, variable_list grads) { return grads; }
  };
  Tensor x = leaf({1});
  expect_error<std::invalid_argument>([&] { ForwardThrows::apply(x); }, "not today");
  EXPECT_TRUE(GradMode::is_enabled());
  struct Lookup : Function<Lookup> {
    static Tensor forward(AutogradContext*, const Tensor& x) { return x.clone(); }
    static variable_list backward(AutogradContext*, variable_list) {
      throw IndexError("lookup: nothing there");
    }
  };
  expect_error<IndexError>([&] { Tensor(Lookup::apply(x)).backward(); }, "lookup: nothing there");
}

TEST(FunctionErrors, ASecondBackward) {
  Tensor x = leaf({3});
  Tensor y = Square::apply(x);
  y.backward();
  expect_error([&] { y.backward(); },
               "lamella::(anonymous namespace)::Square: what it saved was given up by an earlier "
               "backward; pass retain_graph=True to it to go through the graph again");
  Tensor z = Square::apply(x);
  z.backward({}, true);
  EXPECT_NO_THROW(z.backward());
  EXPECT_EQ(numbers(x.grad()), Numbers({18}));
}

TEST(FunctionErrors, WrittenAfterItWasSaved) {
  Tensor x = leaf({3});
  Tensor y = times(x, 1);
  Tensor z = Square::apply(y);
  y.add_(1);
  expect_error(
      [&] { z.backward(); },
      "lamella::(anonymous namespace)::Square: expected 'a saved tensor' as it was when it was "
      "saved, at version 0, got version 1: it was written in place since; write a copy "
      "instead, or enable anomaly detection to see where it was used");
}

// ---- In place --------------------------------------------------------------------------------

struct DoubleInPlace : Function<DoubleInPlace> {
  static Tensor forward(AutogradContext* ctx, Tensor x) {
    double* data = x.data_ptr<double>();
    for (int64_t i = 0; i < x.numel(); ++i) data[i] *= 2;
    ctx->mark_dirty({x});
    return x;
  }
  static variable_list backward(AutogradContext*, variable_list grads) {
    return {times(grads[0], 2)};
  }
};

TEST(FunctionInPlace, MarkedInputs) {
  Tensor x = leaf({3});
  Tensor y = times(x, 5);
  uint32_t version = y._version();
  Tensor z = DoubleInPlace::apply(y);
  EXPECT_TRUE(z.is_same(y));
  EXPECT_EQ(y._version(), version + 1);
  EXPECT_EQ(numbers(y), Numbers({30}));
  EXPECT_EQ(y.grad_fn()->name(), "lamella::(anonymous namespace)::DoubleInPlace");
  y.backward();
  EXPECT_EQ(numbers(x.grad()), Numbers({10}));
  // Where nothing is recorded the version counts as well.
  Tensor plain = make({1});
  DoubleInPlace::apply(plain);
  EXPECT_EQ(plain._version(), 1u);
}

TEST(FunctionInPlace, ALeafIsRefused) {
  Tensor x = leaf({3});
  expect_error(
      [&] { DoubleInPlace::apply(x); },
      "lamella::(anonymous namespace)::DoubleInPlace: expected 'tensor' not to be a leaf that "
      "requires gradients, since it is written in place; write it under no_grad(), or write "
      "a copy");
}

TEST(FunctionInPlace, MarksThatDoNotFit) {
  struct Forgets : Function<Forgets> {
    static Tensor forward(AutogradContext* ctx, Tensor x) {
      ctx->mark_dirty({x});
      return times(x, 1);
    }
    static variable_list backward(AutogradContext*, variable_list grads) { return grads; }
  };
  struct Stranger : Function<Stranger> {
    static Tensor forward(AutogradContext* ctx, Tensor x) {
      Tensor y = times(x, 1);
      ctx->mark_dirty({y});
      return y;
    }
    static variable_list backward(AutogradContext*, variable_list grads) { return grads; }
  };
  Tensor x = leaf({3});
  Tensor y = times(x, 1);
  try {
    Forgets::apply(y);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_TRUE(
        std::string(error.what())
            .ends_with("Forgets: expected forward to return each input that it marked dirty"))
        << error.what();
  }
  try {
    Stranger::apply(y);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_TRUE(
        std::string(error.what())
            .ends_with(
                "Stranger: expected mark_dirty to be given inputs of forward, got another tensor"))
        << error.what();
  }
}

// ---- Nothing leaks ---------------------------------------------------------------------------

// Counts the functions' nodes that live, by what they hold.
struct Held : lamella_object {
  explicit Held(std::atomic<int>* count) : lamella_object{1, 0, &destroy}, count(count) {
    ++*count;
  }
  static void destroy(lamella_object* object) {
    auto* held = static_cast<Held*>(object);
    --*held->count;
    delete held;
  }
  std::atomic<int>* count;
};
IValue held(std::atomic<int>* count) {
  lamella_value value{};
  value.tag = LAMELLA_OBJECT;
  value.as.pointer = new Held(count);
  return IValue::adopt(value);
}

std::atomic<int> nodes = 0;

struct Exponential : Function<Exponential> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    Tensor y = x.exp();
    ctx->save_for_backward({y, x});
    ctx->saved_data["count"] = held(&nodes);
    return y;
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    variable_list saved = ctx->get_saved_variables();
    return {saved[0] * grads[0]};
  }
};

TEST(FunctionLeaks, AnOutputThatIsSaved) {
  nodes = 0;
  {
    Tensor x = leaf({0});
    Tensor y = Exponential::apply(x);
    EXPECT_EQ(nodes, 1);
    EXPECT_EQ(y.use_count(), 1u);
  }
  EXPECT_EQ(nodes, 0);  // without a backward
  {
    Tensor x = leaf({0});
    Tensor y = Exponential::apply(x);
    // The saved output still has its history, for second gradients.
    Tensor first = autograd::grad({y}, {x}, {}, true, true)[0];
    EXPECT_EQ(numbers(autograd::grad({first}, {x}, {}, true)[0]), Numbers({1}));
    y.backward();
    EXPECT_EQ(numbers(x.grad()), Numbers({1}));
  }
  EXPECT_EQ(nodes, 0);
}

TEST(FunctionLeaks, CallsThatFail) {
  struct Fails : Function<Fails> {
    static Tensor forward(AutogradContext* ctx, const Tensor& x, bool early) {
      ctx->saved_data["count"] = held(&nodes);
      ctx->save_for_backward({x});
      if (early) throw std::runtime_error("early");
      return times(x, 2);
    }
    static variable_list backward(AutogradContext* ctx, variable_list) {
      throw std::runtime_error("late");
    }
  };
  nodes = 0;
  Tensor x = leaf({0});
  EXPECT_THROW(Fails::apply(x, true), std::runtime_error);
  EXPECT_EQ(nodes, 0);
  EXPECT_THROW(Tensor(Fails::apply(x, false)).backward(), Error);
  EXPECT_EQ(nodes, 0);
  EXPECT_EQ(x.use_count(), 1u);
}

TEST(FunctionLeaks, ALongChain) {
  nodes = 0;
  {
    Tensor x = leaf({0.0});
    Tensor y = x;
    for (int i = 0; i < 100; ++i) y = Exponential::apply(times(y, 0.0));
    EXPECT_EQ(nodes, 100);
    y.backward();
  }
  EXPECT_EQ(nodes, 0);
}

}  // namespace
}  // namespace lamella
