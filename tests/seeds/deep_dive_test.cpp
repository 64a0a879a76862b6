// The deep dive: from contiguous() through handle and key set to the kernel.
#include <ATen/ATen.h>
#include <ATen/NativeFunctions.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>
#include <torch/library.h>

using at::MemoryFormat;
using at::Tensor;
using c10::DispatchKey;
using c10::DispatchKeySet;

namespace {

const auto kDense = DispatchKeySet(DispatchKey::CPU);

// A generated operator's struct, as a user may write one for any operator.
struct TORCH_API Contiguous {
  using schema = at::Tensor(const at::Tensor&, at::MemoryFormat);
  using ptr_schema = schema*;
  STATIC_CONSTEXPR_STR_INL_EXCEPT_WIN_CUDA(name, "aten::contiguous")
  STATIC_CONSTEXPR_STR_INL_EXCEPT_WIN_CUDA(overload_name, "")
  static at::Tensor call(const at::Tensor& self, at::MemoryFormat memory_format);
  static at::Tensor redispatch(c10::DispatchKeySet keys, const at::Tensor& self,
                               at::MemoryFormat memory_format);
};
C10_NOINLINE c10::TypedOperatorHandle<Contiguous::schema> find_contiguous() {
  return c10::Dispatcher::singleton()
      .findSchemaOrThrow(Contiguous::name, Contiguous::overload_name)
      .typed<Contiguous::schema>();
}
at::Tensor Contiguous::call(const at::Tensor& self, at::MemoryFormat memory_format) {
  static auto op = find_contiguous();
  return op.call(self, memory_format);
}
at::Tensor Contiguous::redispatch(c10::DispatchKeySet keys, const at::Tensor& self,
                                  at::MemoryFormat memory_format) {
  static auto op = find_contiguous();
  return op.redispatch(keys, self, memory_format);
}

Tensor image() {
  Tensor x = at::empty({1, 64, 5, 4});
  for (int64_t i = 0; i < x.numel(); ++i) x.data_ptr<float>()[i] = static_cast<float>(i);
  return x;
}
void expect_channels_last(const Tensor& x) {
  EXPECT_EQ(x.sizes(), at::IntArrayRef({1, 64, 5, 4}));
  EXPECT_EQ(x.strides(), at::IntArrayRef({1280, 1, 256, 64}));
  EXPECT_FALSE(x.is_contiguous());
  EXPECT_TRUE(x.is_contiguous(MemoryFormat::ChannelsLast));
  // Element (0, 3, 2, 1), by its place in memory.
  EXPECT_EQ(x.data_ptr<float>()[3 + 2 * 256 + 64], static_cast<float>(3 * 20 + 2 * 4 + 1));
}

TEST(DeepDive, ContiguousInChannelsLast) {
  Tensor x = image();
  expect_channels_last(x.contiguous(MemoryFormat::ChannelsLast));
  expect_channels_last(at::_ops::contiguous::call(x, MemoryFormat::ChannelsLast));
  expect_channels_last(Contiguous::call(x, MemoryFormat::ChannelsLast));
  expect_channels_last(Contiguous::redispatch(kDense, x, MemoryFormat::ChannelsLast));
  expect_channels_last(at::_ops::contiguous::redispatch(kDense, x, MemoryFormat::ChannelsLast));
  expect_channels_last(at::native::contiguous(x, MemoryFormat::ChannelsLast));
}

TEST(DeepDive, ATensorThatIsContiguousIsReturnedItself) {
  Tensor x = image();
  EXPECT_TRUE(x.contiguous().is_same(x));
  EXPECT_TRUE(at::native::contiguous(x, MemoryFormat::Contiguous).is_same(x));
  Tensor y = x.contiguous(MemoryFormat::ChannelsLast);
  EXPECT_TRUE(y.contiguous(MemoryFormat::ChannelsLast).is_same(y));
}

TEST(DeepDive, BaseAndOptionalReference) {
  Tensor x = image();
  const at::TensorBase& base = x;
  at::OptionalTensorRef self(base);
  ASSERT_TRUE(self.has_value());
  expect_channels_last(at::_ops::contiguous::call(*self, MemoryFormat::ChannelsLast));
  EXPECT_FALSE(at::OptionalTensorRef().has_value());
  c10::OptionalDeviceGuard guard(at::device_of(x));
  EXPECT_EQ(guard.current_device(), c10::Device("cpu:0"));
}

TEST(DeepDive, FindingTheSchema) {
  auto& dispatcher = c10::Dispatcher::singleton();
  EXPECT_EQ(&dispatcher, &c10::Dispatcher::singleton());
  c10::optional<c10::OperatorHandle> op = dispatcher.findSchema({"aten::contiguous", ""});
  ASSERT_TRUE(op.has_value());
  EXPECT_TRUE(op->hasSchema());
  EXPECT_EQ(toString(op->schema()),
            "aten::contiguous(Tensor(a) self, *, MemoryFormat memory_format=contiguous_format) -> "
            "Tensor(a)");
  EXPECT_EQ(op->operator_name(), c10::OperatorName("aten::contiguous", ""));
  EXPECT_EQ(op->schema().arguments().size(), 2u);
  EXPECT_TRUE(op->schema().arguments()[1].kwarg_only());

  EXPECT_EQ(dispatcher.findSchema({"aten::no_such_operator", ""}), c10::nullopt);
  EXPECT_FALSE(dispatcher.findOp({"aten::no_such_operator", ""}).has_value());
  EXPECT_THROW(dispatcher.findSchemaOrThrow("aten::no_such_operator", ""), c10::Error);
}

// A kernel makes a name known before its schema is: found as an operator, not as a schema.
TEST(DeepDive, AnOperatorWithoutASchema) {
  auto& dispatcher = c10::Dispatcher::singleton();
  auto registration = dispatcher.registerImpl(
      c10::OperatorName("deep_dive::early", ""), DispatchKey::CPU,
      c10::KernelFunction::makeFromUnboxedLambda([](const Tensor& x) { return x; }), c10::nullopt,
      nullptr, "deep_dive_test");
  auto op = dispatcher.findOp({"deep_dive::early", ""});
  ASSERT_TRUE(op.has_value());
  EXPECT_FALSE(op->hasSchema());
  EXPECT_FALSE(dispatcher.findSchema({"deep_dive::early", ""}).has_value());
}

TEST(DeepDive, KeySets) {
  DispatchKeySet cuda({DispatchKey::AutogradCUDA, DispatchKey::CUDA, DispatchKey::ADInplaceOrView});
  EXPECT_EQ(cuda.highestPriorityTypeId(), DispatchKey::AutogradCUDA);
  DispatchKeySet below = cuda - DispatchKeySet(DispatchKey::AutogradCUDA);
  EXPECT_EQ(below.highestPriorityTypeId(), DispatchKey::ADInplaceOrView);
  below = below.remove(DispatchKey::ADInplaceOrView);
  EXPECT_EQ(below.highestPriorityTypeId(), DispatchKey::CUDA);
  EXPECT_TRUE(cuda.has(DispatchKey::CUDA) && cuda.has(DispatchKey::AutogradCUDA));
  EXPECT_FALSE(cuda.has(DispatchKey::CPU));
  EXPECT_EQ(cuda | DispatchKeySet(DispatchKey::CUDA), cuda);
  EXPECT_EQ(DispatchKeySet::from_raw_repr(cuda.raw_repr()), cuda);
  EXPECT_NE(cuda.getDispatchTableIndexForDispatchKeySet(),
            below.getDispatchTableIndexForDispatchKeySet());
  EXPECT_STREQ(c10::toString(DispatchKey::ADInplaceOrView), "ADInplaceOrView");

  Tensor x = at::empty({1});
  auto keys = DispatchKeySet::from_raw_repr(x.key_set());
  EXPECT_TRUE(keys.has(DispatchKey::CPU) && keys.has(DispatchKey::AutogradCPU) &&
              keys.has(DispatchKey::ADInplaceOrView));
}

TEST(DeepDive, TypedCallOfTheDispatcher) {
  auto op = find_contiguous();
  Tensor x = image();
  expect_channels_last(c10::Dispatcher::singleton().call<Tensor, const Tensor&, MemoryFormat>(
      op, x, MemoryFormat::ChannelsLast));
  torch::jit::Stack stack;
  torch::jit::push(stack, x, MemoryFormat::ChannelsLast);
  c10::Dispatcher::singleton().callBoxed(op, &stack);
  expect_channels_last(torch::jit::pop(stack).toTensor());
  EXPECT_TRUE(stack.empty());
}

}  // namespace
