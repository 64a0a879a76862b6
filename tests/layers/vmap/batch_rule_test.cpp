// A batching rule defined outside of Lamella.
#include "tests/layers/vmap/testing.h"

namespace lamella {
namespace {

Tensor outer(const Tensor& self, const Tensor& other) {
  return self.unsqueeze(-1) * other.unsqueeze(-2);
}

Tensor outer_batched(const Tensor& self, const Tensor& other) {
  vmap::LevelInfo level = vmap::highest_level(self, other);
  auto [a, a_is_batched] = vmap::unwrap(self, level);
  auto [b, b_is_batched] = vmap::unwrap(other, level);
  EXPECT_TRUE(a_is_batched || b_is_batched);
  return vmap::wrap(outer(a, b), level);
}

}  // namespace
}  // namespace lamella

LAMELLA_LIBRARY(ruled, m) { m.def("outer(Tensor self, Tensor other) -> Tensor"); }
LAMELLA_LIBRARY_IMPL(ruled, CPU, m) { m.impl("outer", lamella::outer); }
LAMELLA_LIBRARY_IMPL(ruled, FuncTorchBatched, m) { m.impl("outer", lamella::outer_batched); }

namespace lamella {
namespace {

TEST(BatchRule, AKernelForBatchedIsTheRule) {
  auto outer_op = Dispatcher::singleton()
                      .findSchemaOrThrow("ruled::outer", "")
                      .typed<Tensor(const Tensor&, const Tensor&)>();
  Mapped map(2);
  Tensor result = outer_op.call(map.in(make({1, 2, 3, 4}, {2, 2})), make({1, 10}));
  EXPECT_EQ(result.sizes().vec(), (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(numbers(map.out(result)), (Numbers{1, 10, 2, 20, 3, 30, 4, 40}));

  Mapped inner(2);
  Tensor nested = outer_op.call(map.in(make({1, 2}, {2, 1})), inner.in(make({1, 10}, {2, 1})));
  EXPECT_EQ(numbers(map.out(inner.out(nested))), (Numbers{1, 10, 2, 20}));
}

TEST(BatchRule, WrapChecksWhatItGets) {
  Mapped map(2);
  vmap::LevelInfo level = vmap::highest_level(map.in(make({1, 2})));
  EXPECT_EQ(level.size, 2);
  expect_error([&] { vmap::wrap(make({1, 2, 3}), level); },
               "vmap: expected a value with the batch of 2 in dimension 0");
  EXPECT_EQ(vmap::highest_level(make({1})).number, 0u);
}

}  // namespace
}  // namespace lamella
