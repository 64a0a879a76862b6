// The tutorial: an operator's schema, its kernels and its callers in different libraries.
#include <gtest/gtest.h>

#include <string>

#include "lamella/dispatch/load_library.h"
#include "tests/seeds/myops.h"

namespace {

torch::Tensor floats(std::initializer_list<float> values) {
  torch::Tensor result = torch::empty({static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), result.data_ptr<float>());
  return result;
}
template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const c10::Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Libraries, KernelsComeAndGoWithTheirLibraries) {
  torch::Tensor a = floats({1, 2, 3}), b = floats({10, 20, 30});
  torch::Tensor shape = torch::empty({3}, at::device(at::kMeta));

  // The schema is there from the start; no kernel is.
  auto op = torch::Dispatcher::singleton().findSchema({"myops::myadd", ""});
  ASSERT_TRUE(op.has_value());
  EXPECT_EQ(toString(op->schema()), "myops::myadd(Tensor self, Tensor other) -> Tensor");
  EXPECT_NE(error_of([&] { myadd(a, b); }).find("myops::myadd"), std::string::npos);

  // In either order; each serves its own backend and no other.
  lamella::LoadedLibrary meta = lamella::load_library(LAMELLA_TEST_MYOPS_META);
  EXPECT_EQ(myadd(shape, shape).sizes(), c10::IntArrayRef({3}));
  EXPECT_NE(error_of([&] { myadd(a, b); }).find("CPU"), std::string::npos);

  lamella::LoadedLibrary cpu = lamella::load_library(LAMELLA_TEST_MYOPS_CPU);
  torch::Tensor sum = myadd(a, b);
  EXPECT_EQ(sum.data_ptr<float>()[0], 11);
  EXPECT_EQ(sum.data_ptr<float>()[2], 33);
  EXPECT_TRUE(myadd(shape, shape).is_meta());
  EXPECT_EQ(error_of([&] { myadd(shape, torch::empty({4}, at::device(at::kMeta))); }),
            "myadd: expected 'other' to have the shape [3], got [4]");
  EXPECT_EQ(error_of([&] { myadd(a, floats({1})); }), "expected left.sizes() == right.sizes()");

  cpu.close();
  EXPECT_NE(error_of([&] { myadd(a, b); }).find("CPU"), std::string::npos);
  meta.close();
}

TEST(Libraries, AKernelForCudaServesCudaAlone) {
  lamella::LoadedLibrary cuda = lamella::load_library(LAMELLA_TEST_MYOPS_CUDA);
  EXPECT_NE(error_of([&] { myadd(floats({1}), floats({1})); }).find("nearest kernel: CUDA"),
            std::string::npos);
  cuda.close();
}

// The gradient comes with a library of its own, and goes with it.
TEST(Libraries, TheAutogradKernelComesAndGoes) {
  lamella::LoadedLibrary cpu = lamella::load_library(LAMELLA_TEST_MYOPS_CPU);
  torch::Tensor a = floats({1, 2}).requires_grad_(), b = floats({10, 20});
  {
    lamella::LoadedLibrary autograd = lamella::load_library(LAMELLA_TEST_MYOPS_AUTOGRAD);
    torch::Tensor sum = myadd(a, b);
    EXPECT_EQ(sum.data_ptr<float>()[1], 22);
    EXPECT_EQ(sum.grad_fn()->name(), "MyAddFunction");
    sum.backward(floats({3, 4}));
    EXPECT_EQ(a.grad().data_ptr<float>()[1], 4);
    sum.reset();
    autograd.close();
  }
  torch::Tensor sum = myadd(a, b);
  EXPECT_NE(error_of([&] { sum.backward(floats({3, 4})); }).find("myops::myadd"),
            std::string::npos);
  sum.reset();
  cpu.close();
}

}  // namespace
