// Decompositions of complex matrices placed directly before an inaccessible page.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <complex>
#include <cstring>

#include "lamella/core/scalar_type.h"
#include "lamella/kernels/cpu/blas_library.h"

namespace lamella::native {
namespace {

using c64 = std::complex<float>;

// Elements up to the end of a page, with one behind it that cannot be read.
class AtTheEdge {
 public:
  explicit AtTheEdge(int64_t count) {
    auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    size_t bytes = static_cast<size_t>(count) * sizeof(c64);
    size_t readable = (bytes + page - 1) / page * page;
    mapped_ = readable + page;
    base_ = static_cast<char*>(
        mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(base_ + readable, page, PROT_NONE);
    data_ = reinterpret_cast<c64*>(base_ + readable - bytes);
    for (int64_t i = 0; i < count; ++i) {
      data_[i] = {static_cast<float>(i % 7) - 3, static_cast<float>(i % 5)};
    }
  }
  AtTheEdge(const AtTheEdge&) = delete;
  AtTheEdge& operator=(const AtTheEdge&) = delete;
  ~AtTheEdge() { munmap(base_, mapped_); }
  c64* data() const { return data_; }

 private:
  char* base_;
  size_t mapped_;
  c64* data_;
};

TEST(Lapack, ComplexRoutinesStayWithinTheirOperands) {
  const lamella_lapack& lapack = *blas_library().lapack;
  auto type = static_cast<uint8_t>(ScalarType::ComplexFloat);
  for (int64_t m = 1; m <= 11; ++m) {
    for (int64_t n = 1; n <= 11; ++n) {
      int64_t k = m < n ? m : n;
      for (char job : {'A', 'S', 'N'}) {
        int64_t rows = job == 'A' ? n : k;
        AtTheEdge a(m * n), u(m * (job == 'A' ? m : k)), vh(rows * n), s(k);
        EXPECT_EQ(
            lapack.gesdd(type, job, m, n, a.data(), m, s.data(), u.data(), m, vh.data(), rows), 0);
      }
      AtTheEdge a(m * n), tau(k);
      EXPECT_EQ(lapack.geqrf(type, m, n, a.data(), m, tau.data()), 0);
      EXPECT_EQ(lapack.orgqr(type, m, k, k, a.data(), m, tau.data()), 0);
    }
  }
  for (int64_t n : {1, 2, 3, 6, 10, 35, 38, 66}) {
    AtTheEdge a(n * n), b(n * n), w(n), values(n), vectors(n * n);
    EXPECT_EQ(lapack.heevd(type, 1, 0, n, a.data(), n, w.data()), 0);
    EXPECT_EQ(lapack.geev(type, n, b.data(), n, values.data(), vectors.data(), n), 0);
  }
}

TEST(Lapack, SizesBeyond32BitsAreRefused) {
  const lamella_lapack& lapack = *blas_library().lapack;
  auto type = static_cast<uint8_t>(ScalarType::Double);
  int64_t many = int64_t{1} << 31;
  double one = 1;
  EXPECT_EQ(lapack.potrf(type, 0, many, &one, many), LAMELLA_LAPACK_TOO_LARGE);
  EXPECT_EQ(lapack.getrf(type, 1, many, &one, 1, nullptr), LAMELLA_LAPACK_TOO_LARGE);
  EXPECT_EQ(lapack.heevd(type, 1, 0, 40000, &one, 40000, &one), LAMELLA_LAPACK_TOO_LARGE);
  EXPECT_EQ(lapack.gesdd(type, 'S', 40000, 40000, &one, 40000, &one, &one, 40000, &one, 40000),
            LAMELLA_LAPACK_TOO_LARGE);
}

}  // namespace
}  // namespace lamella::native
