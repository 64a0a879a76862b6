// Batched calls from C++: core rules, levels, the fallback loop.
#include "tests/layers/vmap/testing.h"

#include <thread>

namespace lamella {
namespace {

int calls = 0;

Tensor plus_one(const Tensor& self) {
  ++calls;
  return self + scalar(1);
}
Tensor& double_(Tensor& self) {
  ++calls;
  return self.mul_(scalar(2));
}
std::vector<Tensor> both(TensorList list, int64_t) { return {list[0] + list[1], list[0]}; }
Tensor first_shape(const Tensor& self) {
  return empty({static_cast<int64_t>(*self.data_ptr<double>())});
}
Tensor elementwise(const Tensor& self, const Tensor& other) {
  ++calls;
  return self * other;
}

}  // namespace
}  // namespace lamella

LAMELLA_LIBRARY(mapped, m) {
  m.def("plus_one(Tensor self) -> Tensor");
  m.def("double_(Tensor(a!) self) -> Tensor(a!)");
  m.def("both(Tensor[] list, int n) -> Tensor[]");
  m.def("first_shape(Tensor self) -> Tensor");
  m.def("elementwise(Tensor self, Tensor other) -> Tensor", "pointwise");
}
LAMELLA_LIBRARY_IMPL(mapped, CPU, m) {
  m.impl("plus_one", lamella::plus_one);
  m.impl("double_", lamella::double_);
  m.impl("both", lamella::both);
  m.impl("first_shape", lamella::first_shape);
  m.impl("elementwise", lamella::elementwise);
}

namespace lamella {
namespace {

template <class Signature>
auto op(const char* name) {
  return Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
}

TEST(Vmap, ABatchedTensorShowsOneExample) {
  Mapped map(2);
  Tensor all = make({1, 2, 3, 4, 5, 6}, {2, 3});
  Tensor x = map.in(all);
  EXPECT_EQ(x.sizes().vec(), (std::vector<int64_t>{3}));
  EXPECT_EQ(x.scalar_type(), ScalarType::Double);
  EXPECT_FALSE(x.has_storage());
  EXPECT_EQ(numbers(map.out(x * x)), (Numbers{1, 4, 9, 16, 25, 36}));
}

TEST(Vmap, ShapesOfExamplesBroadcast) {
  Mapped map(2);
  Tensor scalars = map.in(make({10, 20}));
  Tensor rows = make({1, 2, 3});
  EXPECT_EQ(numbers(map.out(rows * scalars)), (Numbers{10, 20, 30, 20, 40, 60}));
  Tensor matrix = make({1, 2, 3, 4}, {2, 2});
  Tensor vectors = map.in(make({1, 2, 3, 4}, {2, 2}));
  EXPECT_EQ(numbers(map.out(matrix + vectors)), (Numbers{2, 4, 4, 6, 4, 6, 6, 8}));
}

TEST(Vmap, ExamplesWithoutDimensionsArePromotedAsSuch) {
  Mapped map(2);
  Tensor floats = ones({3}, ScalarType::Float);
  Tensor doubles = map.in(make({1, 2}));  // each without dimensions
  EXPECT_EQ((floats + doubles).scalar_type(), ScalarType::Float);
  EXPECT_EQ((map.in(ones({2}, ScalarType::Float)) + scalar(1)).scalar_type(), ScalarType::Double);
  Tensor ints = ones({3}, ScalarType::Int);
  EXPECT_EQ((ints * doubles).scalar_type(), ScalarType::Double);
  EXPECT_EQ((ints * map.in(ones({2}, ScalarType::Long))).scalar_type(), ScalarType::Int);
}

TEST(Vmap, LevelsNest) {
  Mapped outer(2);
  Tensor x = outer.in(make({1, 2}));
  Tensor product;
  {
    Mapped inner(3);
    product = inner.out(inner.in(make({1, 10, 100})) * x);
  }
  EXPECT_EQ(product.sizes().vec(), (std::vector<int64_t>{3}));
  EXPECT_EQ(numbers(outer.out(product)), (Numbers{1, 10, 100, 2, 20, 200}));
}

TEST(Vmap, ReductionsFoldDimensionsOfExamples) {
  Mapped map(2);
  Tensor x = map.in(make({1, 2, 3, 4, 5, 6}, {2, 3}));
  EXPECT_EQ(numbers(map.out(x.sum())), (Numbers{6, 15}));
  EXPECT_EQ(numbers(map.out(x.max())), (Numbers{3, 6}));
  EXPECT_EQ(map.out(x.sum({0}, true)).sizes().vec(), (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(numbers(map.out(x.argmax())), (Numbers{2, 2}));
}

TEST(Vmap, WritesGoThroughViews) {
  Mapped map(2);
  Tensor all = make({1, 2, 3, 4}, {2, 2});
  Tensor x = map.in(all);
  x.mul_(make({10, 100}));
  EXPECT_EQ(numbers(all), (Numbers{10, 200, 30, 400}));
}

TEST(Vmap, WhatIsWrittenMustBeBatched) {
  Mapped map(2);
  Tensor x = map.in(make({1, 2}));
  Tensor plain = scalar(1);
  expect_error([&] { plain.add_(x); },
               "add_: expected 'self', which is written, to be batched under vmap, because "
               "'other' is: one tensor cannot hold a result for each of 2 examples; use the "
               "operator that returns a new tensor, or let vmap batch 'self' as well");
}

TEST(Vmap, TheLoopServesForeignOperators) {
  Mapped map(3);
  Tensor all = make({1, 2, 3});
  calls = 0;
  EXPECT_EQ(numbers(map.out(op<Tensor(const Tensor&)>("mapped::plus_one").call(map.in(all)))),
            (Numbers{2, 3, 4}));
  EXPECT_EQ(calls, 3);
  Tensor x = map.in(all);
  Tensor& same = op<Tensor&(Tensor&)>("mapped::double_").call(x);
  EXPECT_TRUE(same.is_same(x));
  EXPECT_EQ(numbers(all), (Numbers{2, 4, 6}));
  std::vector<Tensor> list{map.in(all), scalar(1)};
  std::vector<Tensor> result =
      op<std::vector<Tensor>(TensorList, int64_t)>("mapped::both").call(list, 1);
  EXPECT_EQ(numbers(map.out(result[0])), (Numbers{3, 5, 7}));
  expect_error([&] { op<Tensor(const Tensor&)>("mapped::first_shape").call(x); },
               "first_shape: expected the same shape of the result from each example under "
               "vmap, got different ones");
}

TEST(Vmap, OneWordSparesTheLoop) {
  Mapped map(3);
  calls = 0;
  auto elementwise = op<Tensor(const Tensor&, const Tensor&)>("mapped::elementwise");
  EXPECT_EQ(numbers(map.out(elementwise.call(map.in(make({1, 2, 3})), make({10, 20})))),
            (Numbers{10, 20, 20, 40, 30, 60}));
  EXPECT_EQ(calls, 1);
}

TEST(Vmap, AnEndedLevelIsAnError) {
  Tensor kept;
  {
    Mapped map(2);
    kept = map.in(make({1, 2}));
  }
  const char* text =
      "mul: expected tensors of a vmap that is running on this thread, got a batched tensor of one "
      "that has ended (or runs on another thread); return it from the function that vmap was given "
      "instead of keeping it";
  expect_error([&] { kept* kept; }, text);
  Mapped map(2);
  Tensor x = map.in(make({1, 2}));
  std::thread([&] { expect_error([&] { x* x; }, text); }).join();
}

TEST(Vmap, RandomNumbers) {
  {
    Mapped map(4);
    EXPECT_ANY_THROW(rand({2}));
  }
  {
    Mapped map(4, vmap::Randomness::kDifferent);
    Tensor drawn = rand({2});
    EXPECT_EQ(drawn.sizes().vec(), (std::vector<int64_t>{2}));
    Tensor all = map.out(drawn);
    EXPECT_NE(numbers(all.select(0, 0)), numbers(all.select(0, 1)));
  }
  Mapped map(4, vmap::Randomness::kSame);
  Tensor x = map.in(zeros({4, 3}, ScalarType::Double));
  x.uniform_();
  EXPECT_EQ(numbers(map.out(x).select(0, 0)), numbers(map.out(x).select(0, 3)));
}

TEST(Vmap, ExposeAndHideCarryLevelsAcross) {
  Mapped outer(2);
  Tensor x = outer.in(make({1, 2}));
  Mapped inner(3);
  Tensor both = inner.in(make({1, 10, 100})) * x;
  TensorBase exposed = vmap::expose(both, outer.level());
  EXPECT_EQ(exposed.sizes().vec(), (std::vector<int64_t>{2}));
  EXPECT_FALSE(vmap::has_level(exposed.impl(), outer.level().number));
  EXPECT_EQ(numbers(inner.out(Tensor(exposed))), (Numbers{1, 2, 10, 20, 100, 200}));
  Tensor again = Tensor(vmap::hide(exposed, outer.level().number));
  EXPECT_EQ(numbers(outer.out(inner.out(again))), (Numbers{1, 10, 100, 2, 20, 200}));
}

}  // namespace
}  // namespace lamella
