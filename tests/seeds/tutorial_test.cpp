// The tutorial up to its dispatching function: schema, kernels for keys, catch-all kernels.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/library.h>
#include <torch/torch.h>

#include <string>

using torch::Tensor;

namespace {

Tensor cpu_product(const Tensor& self, double factor) {
  Tensor source = self.contiguous();
  Tensor result = torch::empty(source.sizes(), source.options());
  AT_DISPATCH_FLOATING_TYPES(source.scalar_type(), "product", [&] {
    const scalar_t* from = source.data_ptr<scalar_t>();
    for (auto i : c10::irange(source.numel())) {
      result.data_ptr<scalar_t>()[i] = static_cast<scalar_t>(from[i] * factor);
    }
  });
  return result;
}
Tensor meta_product(const Tensor& self, double) {
  return torch::empty(self.sizes(), self.options());
}
// Serves every backend.
Tensor anywhere(const Tensor& self) { return self; }

}  // namespace

TORCH_LIBRARY(tutorial, m) {
  m.def("product(Tensor self, float factor) -> Tensor");
  m.def("anywhere(Tensor self) -> Tensor", &anywhere);
  m.def("inferred", &anywhere);
  m.def(
      TORCH_SELECTIVE_SCHEMA("tutorial::unused(Tensor? self, int[] sizes, *, str mode='a') -> ()"));
}
TORCH_LIBRARY_IMPL(tutorial, CPU, m) { m.impl("product", cpu_product); }
TORCH_LIBRARY_IMPL(tutorial, Meta, m) {
  m.impl(TORCH_SELECTIVE_NAME("tutorial::product"), TORCH_FN(meta_product));
}
TORCH_LIBRARY_FRAGMENT(tutorial, m) {
  m.def("later(Tensor self) -> Tensor");
  m.impl("later", torch::dispatch(c10::DispatchKey::CPU, [](const Tensor& self) { return self; }));
}

namespace {

TEST(Tutorial, KernelOfTheBackendRuns) {
  auto product = c10::Dispatcher::singleton()
                     .findSchemaOrThrow("tutorial::product", "")
                     .typed<Tensor(const Tensor&, double)>();
  Tensor self = torch::empty({2}, at::kDouble);
  self.data_ptr<double>()[0] = 3;
  self.data_ptr<double>()[1] = -1;
  Tensor result = product.call(self, 1.5);
  EXPECT_EQ(result.data_ptr<double>()[0], 4.5);
  EXPECT_EQ(result.data_ptr<double>()[1], -1.5);
  EXPECT_TRUE(product.call(torch::empty({2}, at::device(at::kMeta)), 2).is_meta());

  Tensor whole = torch::empty({2}, torch::TensorOptions().dtype(at::kLong));
  try {
    product.call(whole, 2);
    FAIL() << "expected an error";
  } catch (const c10::NotImplementedError& error) {
    EXPECT_STREQ(error.what(), "product: expected a dtype that it has a kernel for, got int64");
  }
}

TEST(Tutorial, CatchAllKernelServesEveryBackend) {
  for (const char* name : {"tutorial::anywhere", "tutorial::inferred"}) {
    auto op =
        c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Tensor(const Tensor&)>();
    for (at::DeviceType device : {at::kCPU, at::kMeta}) {
      Tensor self = torch::empty({2}, at::device(device));
      EXPECT_TRUE(op.call(self).is_same(self)) << name;
    }
  }
}

TEST(Tutorial, FragmentsAddToANamespace) {
  auto later = c10::Dispatcher::singleton()
                   .findSchemaOrThrow("tutorial::later", "")
                   .typed<Tensor(const Tensor&)>();
  Tensor self = torch::empty({1});
  EXPECT_TRUE(later.call(self).is_same(self));
  EXPECT_THROW(later.call(torch::empty({1}, at::device(at::kMeta))), c10::NotImplementedError);
}

TEST(Tutorial, WrongSignatureIsFoundAtRunTime) {
  auto op = c10::Dispatcher::singleton().findSchemaOrThrow("tutorial::product", "");
  EXPECT_THROW(op.typed<Tensor(const Tensor&)>(), c10::Error);
  EXPECT_THROW(op.typed<int64_t(const Tensor&, double)>(), c10::Error);
}

TEST(Tutorial, MisspelledOperatorIsAnErrorAtTheFirstLookUp) {
  try {
    c10::Dispatcher::singleton().findSchemaOrThrow("tutorial::prodct", "");
    FAIL() << "expected an error";
  } catch (const c10::Error& error) {
    EXPECT_NE(std::string(error.what()).find("tutorial::product"), std::string::npos)
        << error.what();
  }
}

TEST(Tutorial, UnsupportedDeviceInAnIfStatement) {
  auto by_hand = [](const Tensor& self) {
    if (self.device().type() == c10::DeviceType::CPU) return self;
    TORCH_CHECK(0, "Unsupported device ", self.device().type());
    return self;
  };
  EXPECT_NO_THROW(by_hand(torch::empty({1})));
  try {
    by_hand(torch::empty({1}, at::device(at::kMeta)));
    FAIL() << "expected an error";
  } catch (const c10::Error& error) {
    EXPECT_STREQ(error.what(), "Unsupported device meta");
  }
}

// Each check throws its own kind.
TEST(Tutorial, Checks) {
  EXPECT_THROW(TORCH_CHECK(false, "a ", 1), c10::Error);
  EXPECT_THROW(TORCH_CHECK_INDEX(false, "a"), c10::IndexError);
  EXPECT_THROW(TORCH_CHECK_VALUE(false, "a"), c10::ValueError);
  EXPECT_THROW(TORCH_CHECK_TYPE(false, "a"), c10::TypeError);
  EXPECT_THROW(TORCH_CHECK_NOT_IMPLEMENTED(false, "a"), c10::NotImplementedError);
  try {
    TORCH_INTERNAL_ASSERT(1 + 1 == 3, "counted ", 2);
    FAIL() << "expected an error";
  } catch (const c10::Error& error) {
    std::string text = error.what();
    EXPECT_NE(text.find("expected 1 + 1 == 3. counted 2. This is a bug in Lamella"),
              std::string::npos)
        << text;
  }
}

}  // namespace
