// Shape arithmetic and strided loops.
#include "lamella/kernels/dims.h"

#include <gtest/gtest.h>

#include "lamella/kernels/strided_loop.h"

namespace lamella::native {
namespace {

std::string error_of(auto&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(InferSize, FillsTheOpenDimension) {
  EXPECT_EQ(infer_size("view", {2, -1}, 6).ref(), IntArrayRef({2, 3}));
  EXPECT_EQ(infer_size("view", {}, 1).ref(), IntArrayRef());
  EXPECT_EQ(infer_size("view", {0, 3}, 0).ref(), IntArrayRef({0, 3}));
  EXPECT_EQ(error_of([] { infer_size("view", {4, -1}, 6); }),
            "view: expected 'size' to hold 6 elements, got [4, -1]");
  EXPECT_EQ(error_of([] { infer_size("view", {-2}, 6); }),
            "view: expected sizes of at least 0 in 'size', got [-2]");
  EXPECT_EQ(error_of([] { infer_size("view", {0, -1}, 0); }),
            "view: expected a 'size' that determines the size for -1, got [0, -1] for a tensor "
            "without elements");
}

struct ViewRow {
  std::vector<int64_t> sizes, strides, shape, expected;  // empty expected: needs a copy
};
TEST(ComputeViewStrides, Table) {
  const ViewRow rows[] = {
      {{2, 3}, {3, 1}, {6}, {1}},
      {{2, 3}, {3, 1}, {3, 2}, {2, 1}},
      {{2, 3}, {1, 2}, {6}, {}},
      {{2, 3}, {1, 2}, {2, 1, 3}, {1, 6, 2}},
      {{4, 6}, {12, 2}, {4, 2, 3}, {12, 6, 2}},
      {{1, 1}, {7, 9}, {1}, {9}},
      {{2, 1, 3}, {3, 99, 1}, {6}, {1}},
  };
  for (const ViewRow& row : rows) {
    Dims out;
    bool fits = compute_view_strides(row.sizes, row.strides, row.shape, out);
    EXPECT_EQ(fits, !row.expected.empty()) << str(row.sizes, row.strides, row.shape);
    if (fits) {
      EXPECT_EQ(out.ref(), IntArrayRef(row.expected)) << str(row.sizes, row.strides);
    }
  }
}

TEST(InferDenseStrides, KeepsTheOrderOfDimensions) {
  EXPECT_EQ(infer_dense_strides({2, 3, 4}, {24, 8, 2}).ref(), IntArrayRef({12, 4, 1}));
  EXPECT_EQ(infer_dense_strides({2, 3, 4}, {2, 8, 24}).ref(), IntArrayRef({1, 2, 6}));
  EXPECT_EQ(infer_dense_strides({2, 3}, {0, 1}).ref(), IntArrayRef({3, 1}));
}

TEST(BroadcastShapes, NamesTheArgument) {
  EXPECT_EQ(broadcast_shapes({2, 1}, {3}, "f", "other").ref(), IntArrayRef({2, 3}));
  EXPECT_EQ(error_of([] { broadcast_shapes({3, 4}, {5}, "f", "other"); }),
            "f: expected 'other' to be broadcastable to [3, 4], got [5]");
}

// Every element is visited once, in all orders of strides and with any split.
TEST(StridedLoop, VisitsEveryElementOnce) {
  const std::vector<std::vector<int64_t>> strides = {{12, 4, 1}, {1, 2, 6}, {4, 8, 1}, {24, 8, 2}};
  for (const auto& s : strides) {
    std::vector<int> memory(64, 0);
    StridedLoop<1> loop({2, 3, 4});
    loop.operand(0, memory.data(), s, sizeof(int));
    loop.plan();
    for (int64_t cut : {0, 1, 5, 12, 23, 24}) {
      auto visit = [](char* const* p, const int64_t* step, int64_t n) {
        for (int64_t i = 0; i < n; ++i) ++*reinterpret_cast<int*>(p[0] + i * step[0]);
      };
      loop.range(0, cut, visit);
      loop.range(cut, 24, visit);
    }
    int visited = 0;
    for (int count : memory) {
      EXPECT_TRUE(count == 0 || count == 6) << str(s);
      visited += count;
    }
    EXPECT_EQ(visited, 24 * 6) << str(s);
  }
}

TEST(StridedLoop, MergesWhatLiesTogether) {
  StridedLoop<2> loop({4, 5, 6});
  float a = 0, b = 0;
  loop.operand(0, &a, {30, 6, 1}, 4);
  loop.operand(1, &b, {30, 6, 1}, 4);
  loop.plan();
  EXPECT_EQ(loop.ndim(), 1);
  EXPECT_EQ(loop.size(0), 120);
}

}  // namespace
}  // namespace lamella::native
