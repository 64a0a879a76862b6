// A backend written for PyTorch: allocator, guard, copies and fallback by PyTorch's names alone.
#include <ATen/ATen.h>
#include <ATen/core/GeneratorForPrivateuseone.h>
#include <ATen/native/CPUFallback.h>
#include <c10/core/Allocator.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <gtest/gtest.h>
#include <torch/library.h>

#include <cstdlib>
#include <cstring>

namespace {

int live = 0;
thread_local c10::DeviceIndex current = 0;
thread_local c10::StreamId streams[2] = {0, 0};
int recorded = 0;

void free_block(void* data) {
  --live;
  std::free(data);
}

struct DummyAllocator final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    ++live;
    void* data = std::malloc(bytes);
    return {data, data, &free_block, c10::Device(c10::DeviceType::PrivateUse1, current)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_block; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }
};
DummyAllocator allocator;
REGISTER_ALLOCATOR(c10::DeviceType::PrivateUse1, &allocator)

struct DummyGuard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return c10::DeviceType::PrivateUse1; }
  c10::Device exchangeDevice(c10::Device device) const override {
    c10::Device before = getDevice();
    current = device.index();
    return before;
  }
  c10::Device getDevice() const override { return {type(), current}; }
  void setDevice(c10::Device device) const override { current = device.index(); }
  void uncheckedSetDevice(c10::Device device) const noexcept override { current = device.index(); }
  c10::Stream getStream(c10::Device device) const override {
    return c10::Stream(c10::Stream::UNSAFE, device, streams[device.index()]);
  }
  c10::Stream getNewStream(c10::Device device, int) const override {
    return c10::Stream(c10::Stream::UNSAFE, device, 5);
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    c10::Stream before = getStream(stream.device());
    streams[stream.device_index()] = stream.id();
    return before;
  }
  c10::DeviceIndex deviceCount() const noexcept override { return 2; }
  void record(void** event, const c10::Stream&, const c10::DeviceIndex,
              const c10::EventFlag) const override {
    ++recorded;
    *event = &recorded;
  }
  void block(void* event, const c10::Stream&) const override { EXPECT_EQ(event, &recorded); }
  bool queryEvent(void*) const override { return true; }
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, DummyGuard)

at::Tensor copy_from(const at::Tensor& self, const at::Tensor& dst, bool) {
  // Both memories are the host's.
  auto on_host = [](const at::Tensor& t) {
    return at::from_blob(t.data_ptr(), t.sizes(), t.strides(), at::TensorOptions(t.scalar_type()));
  };
  at::Tensor to = on_host(dst);
  to.copy_(on_host(self));
  return dst;
}

int fallbacks = 0;
void fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  ++fallbacks;
  at::native::cpu_fallback(op, stack);
}
at::Tensor relu(const at::Tensor& self) {
  return at::native::call_fallback_fn<&fallback, ATEN_OP(relu)>::call(self) + 0;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_copy_from", &copy_from);
  m.impl("relu", &relu);
}
TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>());
}

TEST(CompatBackend, Runs) {
  c10::register_privateuse1_backend("dummy");
  EXPECT_EQ(c10::get_privateuse1_backend(), "dummy");
  {
    at::Tensor host = at::full({2}, 2.0);
    host[0].fill_(-1);
    at::Tensor x = host.to(at::Device("dummy:1"));
    EXPECT_EQ(x.device().str(), "dummy:1");
    EXPECT_EQ(live, 1);
    int before = fallbacks;
    at::Tensor y = (x * 3).cpu();
    EXPECT_EQ(fallbacks, before + 1);
    EXPECT_EQ(y[1].item().toDouble(), 6.0);
    EXPECT_EQ(at::relu(x).cpu()[0].item().toDouble(), 0.0);
    x.add_(1);
    EXPECT_EQ(x.sum().item().toDouble(), 3.0);
  }
  EXPECT_EQ(live, 0);
}

TEST(CompatBackend, GuardsAndStreams) {
  c10::Device second(c10::DeviceType::PrivateUse1, 1);
  {
    c10::DeviceGuard guard(second);
    EXPECT_EQ(current, 1);
    EXPECT_EQ(at::empty({2}, at::Device(c10::DeviceType::PrivateUse1)).device(), second);
  }
  EXPECT_EQ(current, 0);
  c10::Stream stream = c10::Stream::make(second);
  EXPECT_EQ(stream.id(), 5);
  {
    c10::StreamGuard guard(stream);
    EXPECT_EQ(streams[1], 5);
    EXPECT_EQ(current, 1);
    c10::Event event(c10::DeviceType::PrivateUse1);
    event.record(stream);
    event.block(stream);
    EXPECT_TRUE(event.query());
    EXPECT_EQ(recorded, 1);
  }
  EXPECT_EQ(streams[1], 0);
  EXPECT_TRUE(at::GetGeneratorForPrivateuse1(0).defined());
}

}  // namespace
