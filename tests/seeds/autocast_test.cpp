// The dispatcher tutorial's section on autocast: three wrappers registered for the key Autocast,
// which cast to lower precision, to float32 and to the widest dtype.
#include <gtest/gtest.h>

#include <ATen/autocast_mode.h>
#include <torch/library.h>
#include <torch/torch.h>

namespace {

using at::Tensor;

// What a wrapper's operator was called with.
std::vector<at::ScalarType> seen;
at::DeviceType device = at::DeviceType::CUDA;

Tensor scale_kernel(const Tensor& self, const Tensor& other) {
  seen = {self.scalar_type(), other.scalar_type()};
  return self.clone();
}
Tensor scale(const Tensor& self, const Tensor& other) {
  static auto op = torch::Dispatcher::singleton()
                       .findSchemaOrThrow("seeds_autocast::scale", "")
                       .typed<Tensor(const Tensor&, const Tensor&)>();
  return op.call(self, other);
}
Tensor precise(const Tensor& self, const Tensor& other) {
  static auto op = torch::Dispatcher::singleton()
                       .findSchemaOrThrow("seeds_autocast::precise", "")
                       .typed<Tensor(const Tensor&, const Tensor&)>();
  return op.call(self, other);
}
Tensor blend(const Tensor& t0, const Tensor& t1) {
  static auto op = torch::Dispatcher::singleton()
                       .findSchemaOrThrow("seeds_autocast::blend", "")
                       .typed<Tensor(const Tensor&, const Tensor&)>();
  return op.call(t0, t1);
}

// With CUDA, the device type that is meant where none is given, as the tutorial has it.
Tensor scale_autocast(const Tensor& self, const Tensor& other) {
  c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::DispatchKey::Autocast);
  if (device == at::DeviceType::CUDA) {
    return scale(at::autocast::cached_cast(at::kHalf, self),
                 at::autocast::cached_cast(at::kHalf, other));
  }
  return scale(at::autocast::cached_cast(at::kHalf, self, device),
               at::autocast::cached_cast(at::kHalf, other, device));
}
Tensor precise_autocast(const Tensor& self, const Tensor& other) {
  c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::DispatchKey::Autocast);
  return precise(at::autocast::cached_cast(at::kFloat, self, device),
                 at::autocast::cached_cast(at::kFloat, other, device));
}
Tensor blend_autocast(const Tensor& t0, const Tensor& t1) {
  c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::DispatchKey::Autocast);
  auto exec_type = at::autocast::promote_type(at::kHalf, device, t0, t1);
  return blend(at::autocast::cached_cast(exec_type, t0, device),
               at::autocast::cached_cast(exec_type, t1, device));
}

TORCH_LIBRARY(seeds_autocast, m) {
  m.def("scale(Tensor self, Tensor other) -> Tensor");
  m.def("precise(Tensor self, Tensor other) -> Tensor");
  m.def("blend(Tensor t0, Tensor t1) -> Tensor");
}
TORCH_LIBRARY_IMPL(seeds_autocast, CPU, m) {
  m.impl("scale", scale_kernel);
  m.impl("precise", scale_kernel);
  m.impl("blend", scale_kernel);
}
TORCH_LIBRARY_IMPL(seeds_autocast, AutocastCPU, m) {
  m.impl("scale", scale_autocast);
  m.impl("precise", precise_autocast);
  m.impl("blend", blend_autocast);
}

using Types = std::vector<at::ScalarType>;

class Autocast : public ::testing::Test {
 protected:
  void SetUp() override {
    device = at::DeviceType::CPU;
    at::autocast::set_autocast_enabled(at::kCPU, true);
    at::autocast::set_autocast_dtype(at::kCPU, at::kHalf);
  }
  void TearDown() override {
    at::autocast::set_autocast_enabled(at::kCPU, false);
    at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
    at::autocast::clear_cache();
  }
  Tensor single = at::ones({2});
  Tensor half = at::ones({2}, at::kHalf);
  Tensor wide = at::ones({2}, at::kDouble);
};

TEST_F(Autocast, WrappersCast) {
  EXPECT_TRUE(at::autocast::is_autocast_enabled(at::kCPU));
  scale(single, half);
  EXPECT_EQ(seen, (Types{at::kHalf, at::kHalf}));
  scale(single, wide);
  EXPECT_EQ(seen, (Types{at::kHalf, at::kDouble}));
  precise(single, half);
  EXPECT_EQ(seen, (Types{at::kFloat, at::kFloat}));
  blend(half, half);
  EXPECT_EQ(seen, (Types{at::kHalf, at::kHalf}));
  blend(half, single);
  EXPECT_EQ(seen, (Types{at::kFloat, at::kFloat}));
}

TEST_F(Autocast, WithoutADeviceTypeOnlyCudaIsCast) {
  device = at::DeviceType::CUDA;
  scale(single, half);
  EXPECT_EQ(seen, (Types{at::kFloat, at::kHalf}));
}

TEST_F(Autocast, OutsideOfARegionNothingIsCast) {
  at::autocast::set_autocast_enabled(at::kCPU, false);
  EXPECT_FALSE(at::autocast::is_autocast_enabled(at::kCPU));
  scale(single, half);
  EXPECT_EQ(seen, (Types{at::kFloat, at::kHalf}));
}

TEST_F(Autocast, GradientsComeBackInTheWeightsDtype) {
  Tensor weight = at::ones({2}).requires_grad_();
  Tensor cast = at::autocast::cached_cast(at::kHalf, weight, at::kCPU);
  EXPECT_EQ(cast.scalar_type(), at::kHalf);
  EXPECT_TRUE(at::autocast::cached_cast(at::kHalf, weight, at::kCPU).is_same(cast));
  cast.sum().backward();
  EXPECT_EQ(weight.grad().scalar_type(), at::kFloat);
}

}  // namespace
