// Composite kernels that follow the rules, and one that breaks each rule.
#include <gtest/gtest.h>

#include "lamella/abi/autograd.h"
#include "lamella/api/functions.h"
#include "lamella/core/tensor_impl.h"
#include "lamella/dispatch/library.h"

namespace lamella {
namespace {

class Checked {
 public:
  Checked() : before_(lamella_set_modes(LAMELLA_MODE_COMPOSITE_CHECK, ~0u)) {}
  ~Checked() { lamella_set_modes(LAMELLA_MODE_COMPOSITE_CHECK, before_); }

 private:
  uint32_t before_;
};

Tensor good(const Tensor& self, TensorList others) {
  Tensor sum = self.mul(2).t();
  for (const Tensor& other : others) sum = sum.add(other);
  sum.add_(1);
  return sum.contiguous().view({-1});
}
Tensor fills_a_view(const Tensor& self) {
  Tensor result = lamella::zeros({2, 3});
  result.select(0, 1).copy_(self.select(0, 0));
  return result.requires_grad() ? result.mul(2) : result;
}
Tensor& good_in_place(Tensor& self) { return self.t_().mul_(3); }
Tensor same(const Tensor& self) { return self; }
Tensor reads(const Tensor& self) { return self.add(static_cast<double>(*self.data_ptr<float>())); }
Tensor reads_result(const Tensor& self) {
  Tensor sum = self.sum();
  return self.add(static_cast<double>(*sum.data_ptr<float>()));
}
Tensor calls_item(const Tensor& self) { return self.add(self.sum().item()); }
Tensor resizes(const Tensor& self) { return self.clone().resize_({1}); }
Tensor writes_out(const Tensor& self) {
  Tensor out = lamella::empty_like(self);
  lamella::add_out(out, self, self);
  return out;
}
Tensor changes_sizes(const Tensor& self) {
  int64_t one = 1;
  set_sizes_and_strides(TensorImpl::of(self), IntArrayRef(one), IntArrayRef(one), 0);
  return self.mul(2);
}
Tensor makes_view(const Tensor& self) {
  int64_t one = 1;
  return Tensor(make_view(self, IntArrayRef(one), IntArrayRef(one), 0)).mul(2);
}

class Compliance : public ::testing::Test {
 protected:
  Compliance() : library_(Library::FRAGMENT, "compliance", std::nullopt, "test.cpp", 1) {
    library_.def("good(Tensor self, Tensor[] others) -> Tensor");
    library_.impl("good", LAMELLA_FN(good));
    library_.def("good_(Tensor(a!) self) -> Tensor(a!)");
    library_.impl("good_", LAMELLA_FN(good_in_place));
    add("same", LAMELLA_FN(same));
    add("fills_a_view", LAMELLA_FN(fills_a_view));
    add("reads", LAMELLA_FN(reads));
    add("reads_result", LAMELLA_FN(reads_result));
    add("calls_item", LAMELLA_FN(calls_item));
    add("resizes", LAMELLA_FN(resizes));
    add("writes_out", LAMELLA_FN(writes_out));
    add("changes_sizes", LAMELLA_FN(changes_sizes));
    add("makes_view", LAMELLA_FN(makes_view));
  }
  template <class F>
  void add(const char* name, F&& kernel) {
    library_.def(std::string(name) + "(Tensor self) -> Tensor");
    library_.impl(name, kernel);
  }
  static Tensor call(const char* name, const Tensor& self) {
    auto op = Dispatcher::singleton().findSchemaOrThrow(name, "");
    return op.typed<Tensor(const Tensor&)>().call(self);
  }
  static void expect_failure(const char* name, const std::string& text) {
    Tensor x = lamella::ones({2, 3});
    Checked on;
    try {
      call(name, x);
      ADD_FAILURE() << name << ": expected an error";
    } catch (const Error& error) {
      EXPECT_EQ(error.what(), name + text);
    }
    EXPECT_EQ(x.sizes(), IntArrayRef({2, 3}));
  }

  Library library_;
};

constexpr const char* kOnlyCalls =
    ": expected its composite kernel only to call operators, but it ";
constexpr const char* kMustNotCall =
    ": expected its composite kernel not to read elements, resize tensors or write to out "
    "arguments, but it called ";

TEST_F(Compliance, LetsGoodKernelsPass) {
  Tensor x = lamella::ones({2, 3}), y = lamella::ones({3, 2});
  auto op = Dispatcher::singleton()
                .findSchemaOrThrow("compliance::good", "")
                .typed<Tensor(const Tensor&, TensorList)>();
  std::vector<Tensor> others{y, y};
  Tensor expected = op.call(x, others);
  Checked on;
  Tensor got = op.call(x, others);
  EXPECT_TRUE(lamella::equal(got, expected));
  EXPECT_EQ(got.use_count(), 1u);
  EXPECT_EQ(x.use_count(), 1u);
}

TEST_F(Compliance, WritesReachTheArgument) {
  Tensor x = lamella::ones({2, 3});
  auto op =
      Dispatcher::singleton().findSchemaOrThrow("compliance::good_", "").typed<Tensor&(Tensor&)>();
  Checked on;
  EXPECT_TRUE(op.call(x).is_same(x));
  EXPECT_EQ(x.sizes(), IntArrayRef({3, 2}));
  EXPECT_EQ(x.sum().item().toDouble(), 18);
}

TEST_F(Compliance, WritesThroughViewsGiveTheBaseGradients) {
  Tensor x = lamella::ones({2, 3});
  detail::check(lamella_tensor_set_requires_grad(x.impl(), 1));
  Checked on;
  Tensor got = call("compliance::fills_a_view", x);
  EXPECT_TRUE(lamella_tensor_requires_grad(got.impl()));
  EXPECT_EQ(got.detach().sum().item().toDouble(), 6);
}

TEST_F(Compliance, ReturnsTheArgumentItself) {
  Tensor x = lamella::ones({2});
  Checked on;
  EXPECT_TRUE(call("compliance::same", x).is_same(x));
}

TEST_F(Compliance, NamesWhatAKernelDid) {
  expect_failure("compliance::reads",
                 std::string(kOnlyCalls) + "read or wrote the elements of argument 'self'");
  expect_failure("compliance::reads_result", std::string(kOnlyCalls) +
                                                 "read or wrote the elements of the result of "
                                                 "aten::sum.dim_IntList");
  expect_failure("compliance::calls_item", std::string(kMustNotCall) + "aten::item");
  expect_failure("compliance::resizes", std::string(kMustNotCall) + "aten::resize_");
  expect_failure("compliance::writes_out", std::string(kMustNotCall) + "aten::add.out");
  expect_failure("compliance::changes_sizes",
                 std::string(kOnlyCalls) + "changed the sizes of argument 'self'");
  expect_failure("compliance::makes_view",
                 std::string(kOnlyCalls) + "made a view of argument 'self' itself");
}

TEST_F(Compliance, NestedKernelIsNamed) {
  Library outer(Library::FRAGMENT, "compliance_outer", std::nullopt, "test.cpp", 1);
  outer.def("calls(Tensor self) -> Tensor");
  outer.impl("calls", +[](const Tensor& self) { return call("compliance::reads", self.mul(1)); });
  Checked on;
  try {
    call("compliance_outer::calls", lamella::ones({2}));
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()),
              std::string("compliance::reads") + kOnlyCalls +
                  "read or wrote the elements of the result of aten::mul.Scalar");
  }
}

TEST_F(Compliance, ExplicitKernelsMayRead) {
  library_.def("explicit_sum(Tensor self) -> Tensor");
  library_.impl("explicit_sum", DispatchKey::CompositeExplicitAutograd, LAMELLA_FN(reads));
  Checked on;
  EXPECT_EQ(call("compliance::explicit_sum", lamella::ones({2})).sum().item().toDouble(), 4);
}

Tensor nothing(const Tensor&) { return Tensor(); }
std::tuple<Tensor, Tensor> first_of(const Tensor& grad, std::array<bool, 2>) {
  return {grad, Tensor()};
}

TEST_F(Compliance, UndefinedReturns) {
  library_.def("nothing(Tensor self) -> Tensor");
  library_.impl("nothing", DispatchKey::CPU, LAMELLA_FN(nothing));
  library_.def("first(Tensor grad, bool[2] output_mask) -> (Tensor, Tensor)");
  library_.impl("first", DispatchKey::CPU, LAMELLA_FN(first_of));
  auto first = Dispatcher::singleton()
                   .findSchemaOrThrow("compliance::first", "")
                   .typed<std::tuple<Tensor, Tensor>(const Tensor&, std::array<bool, 2>)>();
  Tensor x = lamella::ones({2});
  Checked on;
  auto expect = [](auto&& run, const std::string& text) {
    try {
      run();
      ADD_FAILURE() << text;
    } catch (const std::exception& error) {
      EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
    }
  };
  expect([&] { call("compliance::nothing", x); },
         "compliance::nothing: expected its kernel to return a tensor as return 0, got an "
         "undefined tensor");
  EXPECT_FALSE(std::get<1>(first.call(x, {true, false})).defined());
  expect([&] { first.call(x, {true, true}); },
         "compliance::first: expected its kernel to return a tensor as return 1, where "
         "'output_mask' is true, got an undefined tensor");
  expect([&] { first.call(x, {false, false}); },
         "compliance::first: expected its kernel to return an undefined tensor as return 0, where "
         "'output_mask' is false, got float32[2] on cpu");
}

}  // namespace
}  // namespace lamella
