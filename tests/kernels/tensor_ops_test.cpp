// Operators called from C++: results against values computed by hand, and exact error texts.
#include <gtest/gtest.h>

#include "lamella/api/functions.h"

namespace lamella {
namespace {

Tensor numbers(IntArrayRef sizes) {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  return lamella::arange(n, TensorOptions(kFloat)).view(sizes);
}
std::vector<float> values(const Tensor& tensor) {
  Tensor dense = tensor.contiguous();
  const float* p = dense.const_data_ptr<float>();
  return {p, p + dense.numel()};
}
std::string error_of(auto&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}
using V = std::vector<float>;

TEST(Views, ShareMemory) {
  Tensor x = numbers({2, 3});
  Tensor t = x.transpose(0, 1);
  EXPECT_TRUE(t.is_alias_of(x));
  EXPECT_EQ(t.strides(), IntArrayRef({1, 3}));
  t.select(0, 1).fill_(7);
  EXPECT_EQ(values(x), (V{0, 7, 2, 3, 7, 5}));
}
TEST(Views, OnMetaHaveNoMemory) {
  Tensor x = lamella::empty({2, 3}, TensorOptions(kMeta).dtype(kFloat));
  Tensor y = x.permute({1, 0}).slice(0, 1, 3);
  EXPECT_EQ(y.sizes(), IntArrayRef({2, 2}));
  EXPECT_TRUE(y.is_meta());
}

// Their sizes and strides may be any: the undefined-behaviour sanitizer sees what multiplies them.
TEST(Reductions, OfTensorsWithoutElements) {
  constexpr int64_t kHuge = int64_t{1} << 60;
  Tensor x = numbers({1}).as_strided({2, 0, 16, kHuge / 16}, {kHuge, kHuge, 16, kHuge});
  EXPECT_EQ(values(x.sum({1, 2, 3})), (V{0, 0}));
}

TEST(Copies, ConvertAndTranspose) {
  Tensor x = numbers({40, 30});
  Tensor y = lamella::empty({30, 40}, TensorOptions(kInt));
  y.copy_(x.t());
  for (int64_t i = 0; i < 30; ++i) {
    for (int64_t j = 0; j < 40; ++j) {
      ASSERT_EQ(y.const_data_ptr<int32_t>()[i * 40 + j], j * 30 + i);
    }
  }
}

TEST(Copies, ReadTheOldValuesOfSharedMemory) {
  Tensor x = numbers({3, 3});
  x.copy_(x.t());
  EXPECT_EQ(values(x), (V{0, 3, 6, 1, 4, 7, 2, 5, 8}));
  Tensor y = numbers({5});
  y.slice(0, 1).copy_(y.slice(0, 0, 4));
  EXPECT_EQ(values(y), (V{0, 0, 1, 2, 3}));
}

TEST(Indexing, ReadsAndWrites) {
  Tensor x = numbers({3, 4});
  Tensor rows = lamella::arange(2, TensorOptions(kLong));
  EXPECT_EQ(values(lamella::index(x, {rows, rows})), (V{0, 5}));
  x.index_put_({rows}, lamella::full({4}, 9.0, TensorOptions(kFloat)));
  EXPECT_EQ(values(x.select(0, 1)), (V{9, 9, 9, 9}));
  EXPECT_EQ(values(x.select(0, 2)), (V{8, 9, 10, 11}));
}

TEST(Sort, IsStableAndPutsNanLast) {
  Tensor x = numbers({4});
  x.select(0, 0).fill_(__builtin_nan(""));
  auto [sorted, where] = lamella::sort(x, 0, false);
  EXPECT_EQ(where.const_data_ptr<int64_t>()[3], 0);
  EXPECT_EQ(sorted.const_data_ptr<float>()[0], 1);
}

// Sizes on both sides of the limit from which the library of matrix products is used.
TEST(Products, AgreeWithTheDefinition) {
  for (int64_t n : {1, 4, 15, 16, 17, 33}) {
    Tensor a = numbers({n, n}).mul(0.01), b = numbers({n, n}).t().mul(0.02);
    Tensor c = a.mm(b);
    Tensor bd = b.contiguous();
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < n; ++k) {
          sum += static_cast<double>(a.const_data_ptr<float>()[i * n + k]) *
                 bd.const_data_ptr<float>()[k * n + j];
        }
        ASSERT_NEAR(c.const_data_ptr<float>()[i * n + j], sum, 1e-5 * (1 + sum)) << n;
      }
    }
  }
}

TEST(Softmax, SumsToOne) {
  Tensor y = lamella::softmax(numbers({5, 37}), 1);
  for (int64_t i = 0; i < 5; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < 37; ++j) sum += y.const_data_ptr<float>()[i * 37 + j];
    EXPECT_NEAR(sum, 1, 1e-6);
  }
}

struct ErrorRow {
  void (*call)();
  const char* text;
};
TEST(Errors, Table) {
  const ErrorRow rows[] = {
      {[] { numbers({2, 3}).view({4}); }, "view: expected 'size' to hold 6 elements, got [4]"},
      {[] { numbers({2, 3}).select(0, 2); },
       "select: expected 'index' in [-2, 1] for dimension 0 of [2, 3], got 2"},
      {[] { numbers({4, 4}).mm(numbers({3, 5})); },
       "mm: expected 'mat2' to be of shape [4, *], got [3, 5]"},
      {[] { lamella::cat({numbers({2, 3}), numbers({3, 3})}, 1); },
       "cat: expected 'tensors' to be of shape [2, *], got [3, 3] at position 1"},
      {[] { numbers({3}).item(); }, "item: expected 'self' to have one element, got 3 in [3]"},
      {[] { lamella::arange(0, 5, 0, TensorOptions()); }, "arange: expected a 'step' other than 0"},
  };
  for (const ErrorRow& row : rows) EXPECT_EQ(error_of(row.call), row.text);
}

// Composite kernels call others, whose names the caller need not know.
TEST(Errors, NameTheOperatorThatWasCalled) {
  Tensor x = numbers({2, 3}), four = numbers({4});
  EXPECT_EQ(error_of([&] { lamella::mv(x, four); }),
            "mv: expected 'vec' to be of shape [3], got [4]");
  EXPECT_EQ(error_of([&] { x.matmul(four); }),
            "matmul: expected 'other' to be of shape [3], got [4]");
  EXPECT_EQ(error_of([&] { lamella::hstack({x, numbers({3, 3})}); }),
            "hstack: expected 'tensors' to be of shape [2, *], got [3, 3] at position 1");
  EXPECT_EQ(error_of([&] { lamella::det(x); }),
            "det: expected 'self' to be a stack of square matrices, got [2, 3]");
  x.requires_grad_();
  EXPECT_EQ(error_of([&] { lamella::dist(x, numbers({2, 4})); }),
            "dist: expected 'other' to be broadcastable to [2, 3], got [2, 4]");
  Tensor out = lamella::empty({4}, TensorOptions(kFloat));
  EXPECT_EQ(error_of([&] { lamella::mv_out(out, x.detach(), four); }),
            "mv: expected 'vec' to be of shape [3], got [4]");
}

}  // namespace
}  // namespace lamella
