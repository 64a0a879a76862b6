// Tensors as PyTorch's C++ code handles them: assignment through views, and undefined tensors.
#include <ATen/ATen.h>
#include <ATen/NativeFunctions.h>
#include <ATen/autocast_mode.h>
#include <ATen/native/Pow.h>
#include <gtest/gtest.h>

#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "lamella/api/derivative_calls.h"

namespace {

std::vector<double> values(const at::Tensor& tensor) {
  at::Tensor flat = tensor.to(at::kDouble).contiguous();
  const double* first = flat.data_ptr<double>();
  return {first, first + flat.numel()};
}
using Values = std::vector<double>;

TEST(Tensor, AssigningToWhatACallReturnedWrites) {
  at::Tensor x = at::zeros({2, 3});
  at::Tensor row = at::ones({3});
  auto before = x._version();
  x[0] = row;
  EXPECT_EQ(values(x), (Values{1, 1, 1, 0, 0, 0}));
  x[1] = 2.5;
  EXPECT_EQ(values(x), (Values{1, 1, 1, 2.5, 2.5, 2.5}));
  x.select(1, 2) = at::full({1}, 7, at::kLong);  // broadcast and converted
  EXPECT_EQ(values(x), (Values{1, 1, 7, 2.5, 2.5, 7}));
  x[0][1] = x[1][2];
  x.narrow(1, 0, 1) = -1;
  x[1][1] = true;
  EXPECT_EQ(values(x), (Values{-1, 7, 7, -1, 1, 7}));
  std::move(row) = x[0];
  EXPECT_EQ(values(row), (Values{-1, 7, 7}));
  EXPECT_EQ(x._version(), before + 6);
}

TEST(Tensor, AssigningToAVariableMakesItAnother) {
  at::Tensor x = at::zeros({2}), y = at::ones({3}), view = x[0];
  const at::Tensor before = x;
  view = y;
  EXPECT_TRUE(view.is_same(y));
  x = y;
  EXPECT_TRUE(x.is_same(y));
  EXPECT_EQ(values(before), (Values{0, 0}));
  x = at::Tensor();
  EXPECT_FALSE(x.defined());
  x = {};
  y = std::move(view);
  EXPECT_TRUE(y.defined());
}

TEST(Tensor, AssignmentsThatDoNotFit) {
  at::Tensor x = at::zeros({2, 3});
  EXPECT_THROW(x[0] = at::ones({2}), c10::Error);
  EXPECT_THROW(x[2] = 1, c10::Error);
  at::Tensor undefined;
  EXPECT_THROW(x[0] = undefined, c10::Error);
  EXPECT_EQ(values(x), Values(6, 0.0));
}

// As in PyTorch: one dimension of size 0, and nothing else.
TEST(Tensor, WhatAnUndefinedOneTells) {
  at::Tensor u;
  EXPECT_EQ(u.dim(), 1);
  EXPECT_EQ(u.ndimension(), 1);
  EXPECT_EQ(u.numel(), 0);
  EXPECT_EQ(u.sizes(), at::IntArrayRef({0}));
  EXPECT_EQ(u.size(0), 0);
  EXPECT_EQ(u.size(-1), 0);
  EXPECT_EQ(u.storage_offset(), 0);
  EXPECT_TRUE(u.is_contiguous() && u.is_non_overlapping_and_dense());
  EXPECT_EQ(u.suggest_memory_format(), at::MemoryFormat::Contiguous);
  EXPECT_EQ(u.scalar_type(), at::ScalarType::Undefined);
  EXPECT_EQ(u.layout(), at::kStrided);
  EXPECT_FALSE(u.is_cpu() || u.is_cuda() || u.is_meta());
  EXPECT_FALSE(u.is_floating_point() || u.is_complex() || u.is_conj() || u.is_neg());
  EXPECT_FALSE(u.is_inference() || u.requires_grad() || u.has_storage());
  EXPECT_EQ(u._version(), 0u);
  EXPECT_EQ(u.use_count(), 0u);
  EXPECT_TRUE(u.is_same(at::Tensor()));
  EXPECT_FALSE(u.is_alias_of(u));
}

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "nothing was thrown";
}

TEST(Tensor, WhatAnUndefinedOneDoesNotHave) {
  at::Tensor u, x = at::ones({2});
  auto undefined = [](const char* what) {
    return std::string(what) + ": expected a defined tensor, got an undefined one";
  };
  EXPECT_EQ(error_of([&] { u.strides(); }), undefined("strides"));
  EXPECT_EQ(error_of([&] { u.stride(0); }), undefined("stride"));
  EXPECT_EQ(error_of([&] { u.device(); }), undefined("device"));
  EXPECT_EQ(error_of([&] { u.options(); }), undefined("device"));
  EXPECT_EQ(error_of([&] { u.get_device(); }), undefined("get_device"));
  EXPECT_EQ(error_of([&] { u.data_ptr(); }), undefined("data_ptr"));
  EXPECT_EQ(error_of([&] { u.data_ptr<float>(); }), undefined("data_ptr"));
  EXPECT_EQ(error_of([&] { u.itemsize(); }), undefined("itemsize"));
  EXPECT_EQ(error_of([&] { u.nbytes(); }), undefined("itemsize"));
  EXPECT_EQ(error_of([&] { u.is_leaf(); }), undefined("is_leaf"));
  EXPECT_EQ(error_of([&] { u.grad(); }), undefined("grad"));
  EXPECT_EQ(error_of([&] { u.is_view(); }), undefined("is_view"));
  EXPECT_EQ(error_of([&] { u.set_requires_grad(true); }), undefined("requires_grad_"));
  EXPECT_THROW(u.size(1), c10::Error);
  EXPECT_THROW(u.add(1), c10::Error);
  EXPECT_THROW(u[0], c10::Error);
  EXPECT_THROW(u.item<float>(), c10::Error);
  EXPECT_THROW(u.to(at::kDouble), c10::Error);
  EXPECT_THROW(u.detach(), c10::Error);
  EXPECT_THROW(u.copy_(x), c10::Error);
  EXPECT_THROW(x.copy_(u), c10::Error);
  EXPECT_THROW(x.add(u), c10::Error);
  EXPECT_THROW(at::cat({x, u}), c10::Error);
  EXPECT_THROW(x.backward(u), c10::Error);
}

TEST(Tensor, OtherSpellings) {
  at::Tensor x = at::ones({2});
  EXPECT_EQ(x.toType(at::kDouble).dtype(), at::kDouble);
  EXPECT_EQ(x.unsafeGetTensorImpl(), at::Tensor(x).unsafeGetTensorImpl());
  const at::OptionalTensorRef none, some(x);
  EXPECT_EQ(&some.getTensorRef(), &x);
  EXPECT_THROW(none.getTensorRef(), c10::Error);
  EXPECT_TRUE(lamella::wrap_opt_if(x, true).has_value());
  EXPECT_FALSE(lamella::wrap_opt_if(x, false).has_value());
}

TEST(Tensor, TypesHaveBackends) {
  at::DeprecatedTypeProperties kind = at::ones({1}).type();
  EXPECT_EQ(kind.backend(), at::Backend::CPU);
  EXPECT_EQ(at::MPS(at::kHalf).backend(), at::Backend::MPS);
  EXPECT_EQ(c10::deviceTypeToBackend(at::kMeta), at::Backend::Meta);
  EXPECT_EQ(c10::deviceTypeToBackend(at::DeviceType::Vulkan), at::Backend::Undefined);
  std::ostringstream text;
  text << kind << at::CUDA(at::kLong);
  EXPECT_EQ(text.str(), "CPUFloatTypeCUDALongType");
}

TEST(Tensor, IndicesAreNumbersOfIntegers) {
  at::Tensor x = at::arange(3);
  EXPECT_EQ(x[at::Scalar(-1)].item<int64_t>(), 2);
  EXPECT_EQ(x[at::tensor(1)].item<int64_t>(), 1);
  for (const at::Scalar& wrong : {at::Scalar(1.5), at::Scalar(true)}) {
    try {
      x[wrong];
      ADD_FAILURE();
    } catch (const c10::IndexError& error) {
      EXPECT_EQ(error.msg(),
                lamella::str("select: expected 'index' to be an integer, got ", wrong));
    }
  }
  EXPECT_EQ(values(x.m([](const at::Tensor& a, int b) { return a * b; }, 2)), (Values{0, 2, 4}));
}

TEST(Tensor, SetTakesMemory) {
  at::Tensor x = at::arange(6, at::kFloat).slice(0, 2), y = at::empty({0});
  y.set_(x.storage());
  EXPECT_EQ(values(y), (Values{0, 1, 2, 3, 4, 5}));
  y.set_(x.storage(), 1, {2, 2}, {1, 2});
  EXPECT_EQ(values(y), (Values{1, 3, 2, 4}));
  EXPECT_TRUE(y.is_alias_of(x));
}

TEST(Tensor, AutocastOfTheProcessor) {
  EXPECT_FALSE(at::autocast::is_cpu_enabled());
  at::autocast::set_cpu_enabled(true);
  EXPECT_TRUE(at::autocast::is_cpu_enabled());
  at::autocast::set_cpu_enabled(false);
  EXPECT_EQ(at::autocast::get_lower_precision_fp_from_device_type(at::kCPU), at::kBFloat16);
}

TEST(Tensor, ThePowersOfIntegersAndComplexNumbersAreCppFunctions) {
  using at::native::powi;
  EXPECT_EQ(powi<int64_t>(-3, 5), -243);
  EXPECT_EQ(powi<int8_t>(7, 0), 1);
  EXPECT_EQ(powi<int>(2, -1), 0);
  EXPECT_EQ(powi<int>(-1, -3), -1);
  EXPECT_EQ(powi<uint8_t>(3, 6), 217);  // 729 - 2 * 256
  const c10::complex<double> z(1e-9, 2e-9), i(0, 1);
  // The series z - z² / 2 of log(1 + z), and z + z² / 2 of exp(z) - 1.
  EXPECT_DOUBLE_EQ(std::log1p(z).real(), 1e-9 + 1.5e-18);
  EXPECT_DOUBLE_EQ(std::expm1(z).real(), 1e-9 - 1.5e-18);
  EXPECT_NEAR(std::exp(i * M_PI).real(), -1, 1e-15);
  EXPECT_NEAR(::pow(i, 2.0).real(), -1, 1e-15);
  EXPECT_NEAR(std::pow(i, i).real(), std::exp(-M_PI / 2), 1e-15);
  EXPECT_DOUBLE_EQ(std::abs(c10::complex<double>(3, -4)), 5);
  EXPECT_DOUBLE_EQ(std::log2(c10::complex<double>(8)).real(), 3);
}

TEST(Tensor, OperatorsHaveAddresses) {
  at::Tensor x = at::arange(3, at::kDouble);
  auto* mul = &ATEN_FN2(mul, Tensor);
  auto* neg = &ATEN_FN(neg);
  EXPECT_EQ(values(mul(x, neg(x))), (Values{0, -1, -4}));
  using namespace at;  // NOLINT: as code for PyTorch has it
  EXPECT_EQ(native::powi(3, 2), 9);
  EXPECT_TRUE(_lazy_clone(x).equal(x));
  DeprecatedTypeProperties& kind = CPU(kFloat);
  EXPECT_EQ(at::empty({1}, kind).scalar_type(), kFloat);
}

TEST(Tensor, KernelsHavePyTorchsNames) {
  const at::Tensor x = at::arange(6, at::kFloat).view({2, 3}), y = at::ones({2, 3});
  EXPECT_TRUE(x.is_same_size(y) && !x.is_same_size(y[0]));
  at::Tensor (*stack)(at::TensorList, int64_t) = at::native::_stack;
  EXPECT_EQ(values(stack({x[0], y[0]}, 1)), (Values{0, 1, 1, 1, 2, 1}));
  EXPECT_EQ(values(at::native::math_addr(x, y.select(1, 0), x[1], 1, 2)),
            (Values{6, 9, 12, 9, 12, 15}));
  EXPECT_TRUE(at::native::cpu_equal(at::native::math_silu_backward(y, x), at::silu_backward(y, x)));
  EXPECT_TRUE(at::native::is_nonzero(x[0][1]));
}

TEST(Tensor, AnUndefinedOneIsEqualToNone) {
  EXPECT_THROW(at::Tensor().equal(at::ones({1})), c10::Error);
  EXPECT_THROW(at::ones({0}).equal(at::Tensor()), c10::Error);
}

}  // namespace
