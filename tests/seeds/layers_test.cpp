// The tutorial beyond autograd: kernels for the keys of other layers, and the if-statements that
// they replace.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/library.h>
#include <torch/torch.h>

#include <string>

using c10::DeviceType;
using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

namespace {

Tensor add_cpu(const Tensor& self, const Tensor& other) { return self + other; }
Tensor add_cuda(const Tensor& self, const Tensor& other) {
  TORCH_CHECK(self.device().type() == DeviceType::CUDA, "add_cuda: expected CUDA tensors");
  return torch::empty(other.sizes(), self.options());
}

// One function that knows all backends.
class AddOnAnyDevice : public torch::autograd::Function<AddOnAnyDevice> {
 public:
  static Tensor forward(AutogradContext* ctx, torch::Tensor self, torch::Tensor other) {
    at::AutoNonVariableTypeMode g;
    if (self.device().type() == DeviceType::CPU) {
      return add_cpu(self, other);
    } else if (self.device().type() == DeviceType::CUDA) {
      return add_cuda(self, other);
    } else {
      TORCH_CHECK(0, "Unsupported device ", self.device().type());
    }
  }
  static tensor_list backward(AutogradContext* ctx, tensor_list grad_outputs) {
    return {grad_outputs[0], grad_outputs[0]};
  }
};

int plain = 0, batched = 0, traced = 0;
Tensor negated(const Tensor& self) {
  ++plain;
  return -self;
}
Tensor call_negated(const Tensor& self) {
  static auto op = torch::Dispatcher::singleton()
                       .findSchemaOrThrow("layers_tutorial::negated", "")
                       .typed<decltype(call_negated)>();
  return op.call(self);
}
// A layer's kernel does its part, and calls on without its key.
Tensor negated_batched(const Tensor& self) {
  ++batched;
  c10::impl::ExcludeDispatchKeyGuard no_batching(c10::DispatchKey::Batched);
  return call_negated(self);
}
Tensor negated_tracer(const Tensor& self) {
  ++traced;
  c10::impl::ExcludeDispatchKeyGuard no_tracing(c10::DispatchKey::Tracer);
  return call_negated(self);
}

}  // namespace

TORCH_LIBRARY(layers_tutorial, m) { m.def("negated(Tensor self) -> Tensor"); }
TORCH_LIBRARY_IMPL(layers_tutorial, CPU, m) { m.impl("negated", negated); }
TORCH_LIBRARY_IMPL(layers_tutorial, Batched, m) { m.impl("negated", negated_batched); }
TORCH_LIBRARY_IMPL(layers_tutorial, Tracer, m) { m.impl("negated", negated_tracer); }

namespace {

TEST(TutorialLayers, KernelsForBatchedAndTracer) {
  Tensor x = torch::ones({2});
  EXPECT_EQ(call_negated(x)[0].item<float>(), -1);
  EXPECT_EQ(batched + traced, 0);
  {
    c10::impl::IncludeDispatchKeyGuard batching(c10::DispatchKey::Batched);
    EXPECT_EQ(call_negated(x).sizes(), x.sizes());
    EXPECT_EQ(batched, 1);
    EXPECT_EQ(traced, 0);
    // Batched stands above Tracer.
    c10::impl::IncludeDispatchKeyGuard tracing(c10::DispatchKey::Tracer);
    call_negated(x);
    EXPECT_EQ(batched, 2);
    EXPECT_EQ(traced, 1);
  }
  call_negated(x);
  EXPECT_EQ(batched, 2);
  EXPECT_EQ(plain, 4);
}

TEST(TutorialLayers, OneFunctionForAllDevices) {
  Tensor a = torch::ones({2}, torch::requires_grad()), b = torch::ones({2});
  Tensor sum = AddOnAnyDevice::apply(a, b);
  EXPECT_EQ(sum[1].item<float>(), 2);
  sum.backward(torch::ones({2}));
  EXPECT_EQ(a.grad()[0].item<float>(), 1);
  try {
    AddOnAnyDevice::apply(torch::empty({2}, at::device(at::kMeta)), b);
    FAIL() << "expected an error";
  } catch (const c10::Error& error) {
    EXPECT_NE(std::string(error.what()).find("Unsupported device meta"), std::string::npos);
  }
}

}  // namespace
