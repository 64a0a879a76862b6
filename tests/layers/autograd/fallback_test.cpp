// Operators without a derivative: the nodes and messages of the fallbacks.
#include "tests/layers/autograd/testing.h"

namespace lamella {
namespace {

Tensor twice(const Tensor& self, int64_t) { return times(self, 2); }
Tensor opaque(const Tensor& self) {
  NoGradGuard guard;
  return times(self, 2);
}
Tensor& double_(Tensor& self) { return self.mul_(2); }
Tensor first(const Tensor& self) { return self.select(0, 0); }

}  // namespace
}  // namespace lamella

LAMELLA_LIBRARY(fallbacks, m) {
  m.def("twice(Tensor self, int k) -> Tensor");
  m.def("plain(Tensor self, int k) -> Tensor");
  m.def("opaque(Tensor self) -> Tensor");
  m.def("double_(Tensor(a!) self) -> Tensor(a!)");
  m.def("first(Tensor(a) self) -> Tensor(a)");
}
LAMELLA_LIBRARY_IMPL(fallbacks, CPU, m) {
  m.impl("twice", lamella::twice);
  m.impl("plain", lamella::twice);
  m.impl("opaque", lamella::opaque);
  m.impl("double_", lamella::double_);
  m.impl("first", lamella::first);
}
LAMELLA_LIBRARY_IMPL(fallbacks, Autograd, m) {
  m.impl("twice", lamella::autograd::autogradNotImplementedFallback());
  m.impl("double_", lamella::autograd::autogradNotImplementedFallback());
  m.impl("first", lamella::autograd::autogradNotImplementedFallback());
}
LAMELLA_LIBRARY_IMPL(fallbacks, ADInplaceOrView, m) {
  m.impl("double_", lamella::autograd::autogradNotImplementedInplaceOrViewFallback());
  m.impl("first", lamella::autograd::autogradNotImplementedInplaceOrViewFallback());
}

namespace lamella {
namespace {

template <class F>
auto op(const char* name) {
  return Dispatcher::singleton().findSchemaOrThrow(name, "").typed<F>();
}

std::string without_derivative(const std::string& name) {
  return name +
         ": has no derivative (the operator was registered at "
         "tests/layers/autograd/fallback_test.cpp:18); register one, or call it under "
         "no_grad()";
}

TEST(Fallback, RaisesInBackward) {
  auto call = op<Tensor(const Tensor&, int64_t)>("fallbacks::twice");
  EXPECT_EQ(numbers(call.call(make({1}), 1)), Numbers({2}));
  EXPECT_FALSE(call.call(make({1}), 1).requires_grad());
  Tensor x = leaf({1, 2});
  Tensor y = call.call(x, 1);
  EXPECT_EQ(numbers(y), Numbers({2, 4}));
  EXPECT_TRUE(y.requires_grad());
  expect_error<NotImplementedError>([&] { backward_of_sum(y); },
                                    without_derivative("fallbacks::twice"));
}

// Nothing registered for Autograd at all: what the kernel calls is recorded.
TEST(Fallback, ByParts) {
  Tensor x = leaf({1, 2});
  Tensor y = op<Tensor(const Tensor&, int64_t)>("fallbacks::plain").call(x, 1);
  EXPECT_TRUE(y.requires_grad());
  backward_of_sum(y);
  EXPECT_EQ(numbers(x.grad()), Numbers({2, 2}));
}

// Or nothing is, where the kernel works on memory.
TEST(Fallback, IsTheDefault) {
  Tensor x = leaf({1, 2});
  Tensor y = op<Tensor(const Tensor&)>("fallbacks::opaque").call(x);
  EXPECT_TRUE(y.requires_grad());
  expect_error<NotImplementedError>([&] { backward_of_sum(y); },
                                    without_derivative("fallbacks::opaque"));
}

TEST(Fallback, InPlace) {
  auto call = op<Tensor&(Tensor&)>("fallbacks::double_");
  Tensor plain = make({1});
  EXPECT_TRUE(call.call(plain).is_same(plain));
  EXPECT_EQ(numbers(plain), Numbers({2}));
  EXPECT_EQ(plain._version(), 1u);
  EXPECT_FALSE(plain.requires_grad());

  Tensor x = leaf({3});
  Tensor y = times(x, 1);
  uint32_t version = y._version();
  EXPECT_TRUE(call.call(y).is_same(y));
  EXPECT_EQ(y._version(), version + 1);
  EXPECT_THROW(y.backward(), NotImplementedError);
  EXPECT_THROW(call.call(x), Error);  // a leaf
}

TEST(Fallback, View) {
  auto call = op<Tensor(const Tensor&)>("fallbacks::first");
  Tensor x = leaf({3, 4});
  Tensor y = times(x, 1);
  Tensor view = call.call(y);
  EXPECT_TRUE(view.is_view());
  EXPECT_TRUE(view._base().is_same(y));
  EXPECT_TRUE(view.requires_grad());
  EXPECT_THROW(view.backward(), NotImplementedError);
}

TEST(Fallback, ForAWholeKey) {
  CppFunction fallback = autograd::autogradNotImplementedFallback();
  EXPECT_TRUE(fallback.signature().empty());
}

}  // namespace
}  // namespace lamella
