// Raw memory and files: at::native::cpublas against explicit sums, at::from_file.
#include <ATen/ATen.h>
#include <ATen/native/CPUBlas.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

namespace {

using at::native::TransposeType;
namespace cpublas = at::native::cpublas;

constexpr TransposeType kAll[] = {TransposeType::NoTranspose, TransposeType::Transpose,
                                  TransposeType::ConjTranspose};

template <class T>
std::vector<T> values(size_t count, int seed) {
  std::vector<T> made(count);
  for (size_t i = 0; i < count; ++i) {
    made[i] = static_cast<T>(static_cast<float>((seed + 7 * i) % 5) - 2);
    if constexpr (lamella::is_complex_type_v<T>) {
      made[i] += T(0, static_cast<float>((3 * seed + i) % 3) - 1);
    }
  }
  return made;
}

template <class T>
T element(TransposeType type, const T* data, int64_t ld, int64_t row, int64_t column) {
  if (type == TransposeType::NoTranspose) return data[row + column * ld];
  T value = data[column + row * ld];
  if constexpr (lamella::is_complex_type_v<T>) {
    if (type == TransposeType::ConjTranspose) value = conj(value);
  }
  return value;
}

template <class T>
void expect_product(TransposeType a_type, TransposeType b_type, int64_t m, int64_t n, int64_t k,
                    T alpha, T beta) {
  const int64_t lda = (a_type == TransposeType::NoTranspose ? m : k) + 2;
  const int64_t ldb = (b_type == TransposeType::NoTranspose ? k : n) + 1;
  const int64_t ldc = m + 3;
  auto a = values<T>(lda * (m + k), 1), b = values<T>(ldb * (n + k), 2), c = values<T>(ldc * n, 3);
  std::vector<T> expected = c;
  for (int64_t row = 0; row < m; ++row) {
    for (int64_t column = 0; column < n; ++column) {
      T sum(0);
      for (int64_t i = 0; i < k; ++i) {
        sum += element(a_type, a.data(), lda, row, i) * element(b_type, b.data(), ldb, i, column);
      }
      T& into = expected[row + column * ldc];
      into = alpha * sum + beta * into;
    }
  }
  cpublas::gemm(a_type, b_type, m, n, k, alpha, a.data(), lda, b.data(), ldb, beta, c.data(), ldc);
  // Whole numbers: every order of the sums gives the same.
  EXPECT_EQ(c, expected) << m << "x" << n << "x" << k;
}

// C = A B in rows, with rows of A, B and C that are longer than what is used of them; then C += A
// B.
template <class T, class C>
void expect_product_of_rows() {
  constexpr int64_t m = 3, n = 4, k = 5, ld_a = 6, ld_b = 7, ld_c = 5;
  const std::vector<T> a = values<T>(m * ld_a, 1), b = values<T>(k * ld_b, 2);
  std::vector<C> c = values<C>(m * ld_c, 3), expected = c;
  for (const bool add : {false, true}) {
    for (int64_t row = 0; row < m; ++row) {
      for (int64_t column = 0; column < n; ++column) {
        C& sum = expected[row * ld_c + column];
        if (!add) sum = 0;
        for (int64_t i = 0; i < k; ++i) {
          sum += static_cast<C>(a[row * ld_a + i]) * static_cast<C>(b[i * ld_b + column]);
        }
      }
    }
    cpublas::brgemm(m, n, k, ld_a, ld_b, ld_c, add, a.data(), b.data(), c.data(), false);
    EXPECT_EQ(c, expected) << add;
  }
}
TEST(CPUBlas, ProductsOfRows) {
  expect_product_of_rows<float, float>();
  expect_product_of_rows<at::BFloat16, float>();
  expect_product_of_rows<at::Half, float>();
  expect_product_of_rows<signed char, int32_t>();
  expect_product_of_rows<unsigned char, int32_t>();
  cpublas::brgemm_release();
  EXPECT_FALSE(cpublas::could_pack(at::kBFloat16));
  std::string text;
  try {
    at::BFloat16 one;
    float result;
    cpublas::brgemm(1, 1, 1, 1, 1, 1, false, &one, &one, &result);
  } catch (const c10::Error& error) {
    text = error.what();
  }
  EXPECT_EQ(text, "brgemm: expected 'is_vnni' to be false, as could_pack() says");
}

template <class T>
void expect_products() {
  for (TransposeType a : kAll) {
    for (TransposeType b : kAll) {
      expect_product<T>(a, b, 3, 4, 5, T(2), T(-1));
      expect_product<T>(a, b, 1, 17, 2, T(1), T(0));
      expect_product<T>(a, b, 2, 3, 0, T(1), T(3));
    }
  }
}

TEST(CpuBlas, gives_products_of_every_form) {
  expect_products<float>();
  expect_products<double>();
  expect_products<int64_t>();
  expect_products<c10::complex<float>>();
  expect_products<c10::complex<double>>();
}

TEST(CpuBlas, ignores_what_beta_zero_takes_away) {
  const float a = 2, b = 3;
  float c = std::numeric_limits<float>::quiet_NaN();
  cpublas::gemm(kAll[0], kAll[0], 1, 1, 1, 1.0F, &a, 1, &b, 1, 0.0F, &c, 1);
  EXPECT_EQ(c, 6);
}

TEST(CpuBlas, takes_small_floats_into_their_own_and_into_float) {
  const std::vector<at::BFloat16> a(6, 1.5F), b(6, 2.0F);
  std::vector<at::BFloat16> c(4, 1.0F);
  std::vector<float> wide(4, 1.0F);
  cpublas::gemm(kAll[0], kAll[0], 2, 2, 3, 1.0F, a.data(), 2, b.data(), 3, 1.0F, c.data(), 2);
  cpublas::gemm(kAll[0], kAll[0], 2, 2, 3, 1.0F, a.data(), 2, b.data(), 3, 1.0F, wide.data(), 2);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(static_cast<float>(c[i]), 10);
    EXPECT_EQ(wide[i], 10);
  }
}

TEST(CpuBlas, gives_batches) {
  auto a = values<double>(2 * 6, 1), b = values<double>(2 * 6, 2);
  std::vector<double> one(8, 1), all(8, 1), listed(8, 1);
  for (int i = 0; i < 2; ++i) {
    cpublas::gemm(kAll[1], kAll[0], 2, 2, 3, 2.0, &a[6 * i], 3, &b[6 * i], 3, 0.5, &one[4 * i], 2);
  }
  cpublas::gemm_batched_with_stride(kAll[1], kAll[0], 2, 2, 2, 3, 2.0, a.data(), 3, 6, b.data(), 3,
                                    6, 0.5, all.data(), 2, 4);
  const double *lefts[] = {&a[0], &a[6]}, *rights[] = {&b[0], &b[6]};
  double* outs[] = {&listed[0], &listed[4]};
  cpublas::gemm_batched(kAll[1], kAll[0], 2, 2, 2, 3, 2.0, lefts, 3, rights, 3, 0.5, outs, 2);
  EXPECT_EQ(all, one);
  EXPECT_EQ(listed, one);
}

TEST(CpuBlas, adds_and_copies_with_steps) {
  const std::vector<float> x{1, 2, 3, 4};
  std::vector<float> y{10, 20, 30, 40};
  cpublas::axpy<float>(2, 3, x.data(), 2, y.data(), 1);
  EXPECT_EQ(y, (std::vector<float>{13, 29, 30, 40}));
  cpublas::copy<float>(2, x.data(), 1, y.data() + 1, 2);
  EXPECT_EQ(y, (std::vector<float>{13, 1, 30, 2}));
}

TEST(CpuBlas, refuses_columns_that_overlap) {
  std::vector<float> memory(9, 1), out(9, 5);
  auto message = [&](int64_t lda, int64_t ldb, int64_t ldc) -> std::string {
    try {
      cpublas::gemm(kAll[0], kAll[1], 3, 2, 3, 1.0F, memory.data(), lda, memory.data(), ldb, 0.0F,
                    out.data(), ldc);
    } catch (const c10::Error& error) {
      return error.what_without_backtrace();
    }
    return "no error";
  };
  EXPECT_EQ(message(2, 2, 3), "gemm: expected 'lda' to be at least 3, got 2");
  EXPECT_EQ(message(3, 1, 3), "gemm: expected 'ldb' to be at least 2, got 1");
  EXPECT_EQ(message(3, 2, 2), "gemm: expected 'ldc' to be at least 3, got 2");
  EXPECT_EQ(out, std::vector<float>(9, 5));
  EXPECT_EQ(message(3, 2, 3), "no error");
}

// A file of its own, gone at the end.
class FromFile : public testing::Test {
 protected:
  void SetUp() override {
    const int made = mkstemp(path.data());
    ASSERT_GE(made, 0);
    ASSERT_EQ(write(made, numbers.data(), sizeof(numbers)), static_cast<ssize_t>(sizeof(numbers)));
    close(made);
  }
  void TearDown() override { unlink(path.c_str()); }
  std::string failing(std::optional<bool> shared, int64_t size, const at::TensorOptions& options) {
    try {
      at::from_file(path, shared, size, options);
    } catch (const c10::Error& error) {
      return error.what_without_backtrace();
    }
    return "no error";
  }
  const std::array<float, 4> numbers{1, 2, 3, 4};
  std::string path = testing::TempDir() + "from_file_XXXXXX";
};

TEST_F(FromFile, reads_and_keeps_writes_to_itself) {
  at::Tensor t = at::from_file(path, false, 3);
  EXPECT_EQ(t.scalar_type(), at::kFloat);
  EXPECT_EQ(t.sizes(), at::IntArrayRef({3}));
  EXPECT_EQ(t.sum().item<float>(), 6);
  t.fill_(9);
  EXPECT_EQ(at::from_file(path, std::nullopt, 4, at::kFloat).sum().item<float>(), 10);
  EXPECT_EQ(at::from_file(path).numel(), 0);
  EXPECT_EQ(at::from_file(path, false, 8, at::kShort).scalar_type(), at::kShort);
}

TEST_F(FromFile, shares_the_file_and_makes_it_longer) {
  {
    at::Tensor t = at::from_file(path, true, 6);
    EXPECT_EQ(t.sum().item<float>(), 10);
    t.slice(0, 1, 2).fill_(7);
    EXPECT_EQ(at::from_file(path, true, 6)[1].item<float>(), 7);
  }
  EXPECT_EQ(at::from_file(path, false, 6).sum().item<float>(), 15);
  unlink(path.c_str());
  EXPECT_EQ(at::from_file(path, true, 2, at::kDouble).sum().item<double>(), 0);
}

TEST_F(FromFile, says_what_is_wrong) {
  EXPECT_EQ(failing(false, 5, at::kFloat),
            "from_file: expected '" + path + "' to have at least 20 bytes, got 16");
  EXPECT_EQ(failing(false, -1, at::kFloat), "from_file: expected 'size' to be at least 0, got -1");
  EXPECT_EQ(failing(true, std::numeric_limits<int64_t>::max(), at::kDouble),
            "from_file: expected a 'size' whose bytes can be counted, got 9223372036854775807");
  EXPECT_EQ(failing(false, 1, at::TensorOptions(at::kMeta)),
            "from_file: expected 'device' to be cpu, got meta");
  path += "/none";
  EXPECT_EQ(failing(true, 1, at::kFloat),
            "from_file: expected 'filename' to name a file to write, "
            "got '" +
                path + "': Not a directory");
  path.resize(path.size() - 5);
}

}  // namespace
