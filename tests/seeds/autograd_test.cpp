// The tutorial's section on autograd: a kernel for Autograd made of a custom function, a guard and
// a redispatch; the fallbacks, also for operators that write or return views.
#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/library.h>
#include <torch/torch.h>

#include <string>

using at::DeviceType;
using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::autogradNotImplementedFallback;
using torch::autograd::autogradNotImplementedInplaceOrViewFallback;
using torch::autograd::tensor_list;

// In the tutorial's words, with its headers, macros, signatures and calls.
namespace {

int cpu_calls = 0;

Tensor myadd(const Tensor& self, const Tensor& other) {
  static auto op = torch::Dispatcher::singleton()
                       .findSchemaOrThrow("autograd_tutorial::myadd", "")
                       .typed<decltype(myadd)>();
  return op.call(self, other);
}

Tensor myadd_cpu(const Tensor& self_, const Tensor& other_) {
  ++cpu_calls;
  TORCH_CHECK(self_.sizes() == other_.sizes());
  TORCH_INTERNAL_ASSERT(self_.device().type() == DeviceType::CPU);
  Tensor self = self_.contiguous(), other = other_.contiguous();
  Tensor result = torch::empty(self.sizes(), self.options());
  const float* self_ptr = self.data_ptr<float>();
  const float* other_ptr = other.data_ptr<float>();
  float* result_ptr = result.data_ptr<float>();
  for (int64_t i = 0; i < result.numel(); i++) result_ptr[i] = self_ptr[i] + other_ptr[i];
  return result;
}

class MyAddFunction : public torch::autograd::Function<MyAddFunction> {
 public:
  static Tensor forward(AutogradContext* ctx, torch::Tensor self, torch::Tensor other) {
    at::AutoNonVariableTypeMode g;
    return myadd(self, other);
  }

  static tensor_list backward(AutogradContext* ctx, tensor_list grad_outputs) {
    auto grad_output = grad_outputs[0];
    return {grad_output, grad_output};
  }
};

Tensor myadd_autograd(const Tensor& self, const Tensor& other) {
  return MyAddFunction::apply(self, other)[0];
}

Tensor unary_cpu(const Tensor& self) { return self * 2; }
Tensor& write_cpu(Tensor& self) { return self.mul_(2); }
Tensor view_cpu(const Tensor& self) { return self.select(0, 0); }

}  // namespace

TORCH_LIBRARY(autograd_tutorial, m) {
  m.def("myadd(Tensor self, Tensor other) -> Tensor");
  m.def("unary(Tensor self) -> Tensor");
  m.def("write_(Tensor(a!) self) -> Tensor(a!)");
  m.def("view(Tensor(a) self) -> Tensor(a)");
}
TORCH_LIBRARY_IMPL(autograd_tutorial, CPU, m) {
  m.impl("myadd", myadd_cpu);
  m.impl("unary", unary_cpu);
  m.impl("write_", write_cpu);
  m.impl("view", view_cpu);
}
TORCH_LIBRARY_IMPL(autograd_tutorial, Autograd, m) {
  m.impl("myadd", myadd_autograd);
  for (const char* op : {"unary", "write_", "view"}) {
    m.impl(op, autogradNotImplementedFallback());
  }
}
TORCH_LIBRARY_IMPL(autograd_tutorial, ADInplaceOrView, m) {
  for (const char* op : {"write_", "view"}) {
    m.impl(op, autogradNotImplementedInplaceOrViewFallback());
  }
}

namespace {

template <class F>
auto find(const char* name) {
  return torch::Dispatcher::singleton()
      .findSchemaOrThrow((std::string("autograd_tutorial::") + name).c_str(), "")
      .template typed<F>();
}

TEST(TutorialAutograd, MyAddHasAGradient) {
  Tensor a = torch::full({2, 3}, 2.0, torch::requires_grad());
  Tensor b = torch::full({2, 3}, 5.0, torch::requires_grad());
  cpu_calls = 0;
  Tensor sum = myadd(a, b);
  EXPECT_EQ(cpu_calls, 1);
  EXPECT_EQ(sum.sizes(), at::IntArrayRef({2, 3}));
  EXPECT_EQ(sum.detach().sum().item<float>(), 42);
  EXPECT_TRUE(sum.requires_grad());
  sum.backward(torch::full({2, 3}, 3.0));
  EXPECT_EQ(a.grad().sizes(), a.sizes());
  EXPECT_EQ(a.grad().sum().item<float>(), 18);
  EXPECT_EQ(b.grad().sum().item<float>(), 18);
}

TEST(TutorialAutograd, MyAddWithoutGradients) {
  Tensor a = torch::full({2}, 2.0), b = torch::full({2}, 5.0);
  EXPECT_FALSE(myadd(a, b).requires_grad());
  a.requires_grad_();
  EXPECT_TRUE(myadd(a, b).requires_grad());
  torch::NoGradGuard guard;
  EXPECT_FALSE(myadd(a, b).requires_grad());
  EXPECT_EQ(myadd(a, b).sum().item<float>(), 14);
}

TEST(TutorialAutograd, FallbackRaisesInBackward) {
  auto op = find<Tensor(const Tensor&)>("unary");
  Tensor x = torch::ones({2}, torch::requires_grad());
  Tensor y = op.call(x);
  EXPECT_TRUE(y.requires_grad());
  try {
    y.backward(torch::ones({2}));
    FAIL() << "expected an error";
  } catch (const c10::Error& error) {
    EXPECT_NE(std::string(error.what()).find("autograd_tutorial::unary"), std::string::npos)
        << error.what();
  }
}

TEST(TutorialAutograd, FallbacksForWritesAndViews) {
  Tensor x = torch::ones({2}, torch::requires_grad());
  Tensor y = x * 1;
  Tensor entry = find<Tensor(const Tensor&)>("view").call(y);
  EXPECT_TRUE(entry.is_view());
  EXPECT_TRUE(entry._base().is_same(y));
  uint32_t version = y._version();
  EXPECT_TRUE(find<Tensor&(Tensor&)>("write_").call(y).is_same(y));
  EXPECT_EQ(y._version(), version + 1);
  EXPECT_THROW(y.backward(torch::ones({2})), c10::Error);
}

}  // namespace
