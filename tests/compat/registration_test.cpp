// PyTorch's interface of registration and boxing: kernels called by hand, stacks, errors of
// RegisterOperators, blocks that are values, listeners.
#include <ATen/ATen.h>
#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/op_registration/op_registration.h>
#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>
#include <torch/library.h>

namespace {

using c10::IValue;
using c10::KernelFunction;
using c10::OperatorHandle;
using Values = std::vector<IValue>;

OperatorHandle find(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
}
template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const c10::Error& error) {
    return error.what();
  }
  return "";
}

void boxed_difference(const OperatorHandle&, torch::jit::Stack* stack) {
  int64_t a = 0, b = 0;
  torch::jit::pop(*stack, a, b);
  torch::jit::push(stack, a - b);
}
void boxed_with_keys(const OperatorHandle&, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  torch::jit::drop(*stack, 2);
  torch::jit::push(stack, keys.has(c10::DispatchKey::CPU));
}
int64_t difference(int64_t a, int64_t b) { return a - b; }
struct Scale final : c10::OperatorKernel {
  explicit Scale(int64_t by) : by(by) {}
  int64_t operator()(int64_t a, int64_t b) { return by * (a - b); }
  int64_t by;
};
at::Tensor& add_to(at::Tensor& x, const at::Scalar& by) { return x.add_(by); }

TEST(KernelValues, AreCalledOnStacksAndOnValues) {
  static auto registry = torch::RegisterOperators().op("kernel_values::none() -> ()");
  OperatorHandle op = find("kernel_values::none");
  const c10::DispatchKeySet cpu(c10::DispatchKey::CPU);
  auto check = [&](const KernelFunction& kernel, int64_t expected) {
    Values stack{"below", 9, 4};
    kernel.callBoxed(op, cpu, &stack);
    ASSERT_EQ(stack.size(), 2);
    EXPECT_EQ(stack[1].toInt(), expected);
    EXPECT_EQ((kernel.call<int64_t, int64_t, int64_t>(op, cpu, 9, 4)), expected);
    EXPECT_TRUE(kernel.isValid());
  };
  check(KernelFunction::makeFromBoxedFunction<&boxed_difference>(), 5);
  check(KernelFunction::makeFromUnboxedFunction(TORCH_FN(difference)), 5);
  check(KernelFunction::makeFromUnboxedRuntimeFunction(&difference), 5);
  check(KernelFunction::makeFromUnboxedLambda([](int64_t a, int64_t b) { return a * b; }), 36);
  check(KernelFunction::makeFromUnboxedFunctor<false, Scale>(std::make_unique<Scale>(3)), 15);
  Values stack{1, 2};
  KernelFunction::makeFromBoxedFunction<&boxed_with_keys>().callBoxed(op, cpu, &stack);
  EXPECT_TRUE(stack.at(0).toBool());
  EXPECT_FALSE(KernelFunction::makeFallthrough().isValidUnboxed());

  at::Tensor x = at::zeros({2});
  auto in_place = KernelFunction::makeFromUnboxedFunction(TORCH_FN(add_to));
  at::Tensor& same = in_place.call<at::Tensor&, at::Tensor&, at::Scalar>(op, cpu, x, 2.5);
  EXPECT_EQ(&same, &x);
  EXPECT_EQ(x.sum().item<float>(), 5);
}

TEST(KernelValues, AStackIsAVectorOfValues) {
  static_assert(std::is_same_v<torch::jit::Stack, std::vector<IValue>>);
  Values stack;
  torch::jit::push(stack, 1, 2.5, "three");
  EXPECT_EQ(torch::jit::peek(stack, 1, 2).toStringRef(), "three");
  EXPECT_EQ(torch::jit::last(stack, 2)[0].toDouble(), 2.5);
  Values two = torch::jit::pop(stack, 2);
  EXPECT_EQ(two.at(1).toStringRef(), "three");
  EXPECT_EQ(torch::jit::pop(stack).toInt(), 1);
  Values arguments{at::ones({2, 2}), at::ones({2, 2}), 3};
  OperatorHandle add = c10::Dispatcher::singleton().findSchemaOrThrow("aten::add", "Tensor");
  add.callBoxed(&arguments);
  ASSERT_EQ(arguments.size(), 1);
  EXPECT_EQ(arguments[0].toTensor().sum().item<float>(), 16);
}

TEST(Registration, TakesEachTypeOfArgument) {
  auto registry =
      torch::RegisterOperators()
          .op("argument_types::strings(str[] x) -> str",
              [](c10::ArrayRef<std::string> x) { return x[0] + x.back(); })
          .op("argument_types::pair(str[2] x) -> str",
              [](std::array<std::string, 2> x) { return x[1] + x[0]; })
          .op("argument_types::map(Dict(str, int) x) -> int",
              [](std::unordered_map<std::string, int64_t> x) { return x.at("a") - x.at("b"); })
          .op("argument_types::maps(Dict(str, int)[] x) -> int",
              [](std::vector<std::unordered_map<std::string, int64_t>> x) {
                return x.at(1).at("a");
              })
          .op("argument_types::complex", [](at::Scalar z) { return z.toComplexDouble().imag(); });
  auto call = [](const char* name, IValue argument) {
    Values stack{std::move(argument)};
    find(name).callBoxed(&stack);
    return stack.at(0);
  };
  c10::Dict<std::string, int64_t> dict;
  dict.insert("a", 7);
  dict.insert("b", 5);
  using Map = std::unordered_map<std::string, int64_t>;
  EXPECT_EQ(call("argument_types::strings", std::vector<std::string>{"x", "y"}).toStringRef(),
            "xy");
  EXPECT_EQ(call("argument_types::strings", c10::ArrayRef<std::string>({"p", "q"})).toStringRef(),
            "pq");
  EXPECT_EQ(call("argument_types::pair", c10::List<std::string>({"x", "y"})).toStringRef(), "yx");
  EXPECT_EQ(call("argument_types::map", dict).toInt(), 2);
  EXPECT_EQ(call("argument_types::map", Map{{"a", 1}, {"b", 4}}).toInt(), -3);
  EXPECT_EQ(call("argument_types::maps", std::vector<Map>{{}, {{"a", 6}}}).toInt(), 6);
  EXPECT_EQ(call("argument_types::complex", c10::complex<double>(1, -2)).toDouble(), -2);
}

TEST(Registration, ReportsWhatIsWrong) {
  using torch::RegisterOperators;
  auto options = [] { return RegisterOperators::options(); };
  EXPECT_EQ(error_of([&] {
              RegisterOperators().op("wrong::f(Tensor x) -> Tensor", [](int64_t x) { return x; });
            }).substr(0, 53),
            "wrong::f: expected a kernel (Tensor) -> Tensor for it");
  EXPECT_EQ(error_of([&] { RegisterOperators().op("wrong::f"); }),
            "Cannot infer operator schema in registration of operator wrong::f because there is no "
            "kernel specified.");
  EXPECT_EQ(error_of([&] { RegisterOperators().op(options()); }).substr(0, 55),
            "In operator registration: Tried to register an operator");
  EXPECT_EQ(error_of([&] {
              RegisterOperators().op("wrong::f",
                                     options().kernel<&boxed_difference>(c10::DispatchKey::CPU));
            }),
            "Cannot infer operator schema for this kind of kernel in registration of operator "
            "wrong::f because there is no kernel whose types tell it; write the schema out");
  EXPECT_EQ(error_of([&] {
              RegisterOperators().op(
                  "wrong::f", options()
                                  .kernel(c10::DispatchKey::CPU, &difference)
                                  .kernel(c10::DispatchKey::CUDA, [](int64_t a) { return a; }));
            }),
            "wrong::f: expected kernels of one signature. Mismatch in kernel C++ signatures of CPU "
            "and CUDA");
  EXPECT_EQ(error_of([&] {
              RegisterOperators().op("wrong::f(int a, int b) -> int",
                                     options()
                                         .kernel(c10::DispatchKey::CPU, &difference)
                                         .kernel<&difference>(c10::DispatchKey::CPU));
            }),
            "In operator registration: Tried to register multiple kernels with same dispatch key "
            "CPU for operator schema wrong::f(int a, int b) -> int");
  EXPECT_EQ(
      error_of([&] { RegisterOperators().op("f() -> ()"); }),
      "RegisterOperators: expected a schema, or a name such as 'mine::twice', got 'f() -> ()'");
  EXPECT_FALSE(c10::Dispatcher::singleton().findSchema({"wrong::f", ""}).has_value());
  // The same schema may be stated by two registrations, and ends with the last of them.
  auto one = std::make_unique<RegisterOperators>(RegisterOperators().op(
      "shared::f(int a, int b) -> int", options().catchAllKernel<&difference>()));
  auto two = RegisterOperators().op("shared::f(int a, int b) -> int");
  one.reset();
  EXPECT_TRUE(c10::Dispatcher::singleton().findSchema({"shared::f", ""}).has_value());
}

TEST(Registration, WhatABoxedKernelLeavesForNoReturnsIsDropped) {
  auto block = MAKE_TORCH_LIBRARY(leaves);
  block.def("nothing(Tensor x) -> ()");
  block.def("one(Tensor x) -> int");
  auto count = [](const OperatorHandle&, torch::jit::Stack* stack) { stack->push_back(7); };
  block.impl("nothing", c10::DispatchKey::CPU, count);
  block.impl("one", c10::DispatchKey::CPU, count);
  Values stack{at::ones({})};
  find("leaves::nothing").callBoxed(&stack);
  EXPECT_TRUE(stack.empty());
  find("leaves::nothing").typed<void(const at::Tensor&)>().call(at::ones({}));
  stack = {at::ones({})};
  EXPECT_EQ(error_of([&] { find("leaves::one").callBoxed(&stack); }),
            "leaves::one: expected its boxed kernel to leave 1 values on the stack, got 2");
}

struct Counts : c10::OpRegistrationListener {
  explicit Counts(int* to) : to(to) {}
  void onOperatorRegistered(const OperatorHandle& op) override {
    if (op.operator_name().name == "listened::f") ++to[0];
  }
  void onOperatorDeregistered(const OperatorHandle& op) override {
    if (op.operator_name().name == "listened::f") ++to[1];
  }
  int* to;
};
TEST(Registration, BlocksAreValuesAndListenersHearOfThem) {
  auto& dispatcher = c10::Dispatcher::singleton();
  int counts[2] = {0, 0};
  auto listening = dispatcher.addRegistrationListener(std::make_unique<Counts>(counts));
  EXPECT_FALSE(dispatcher.findOp({"listened::f", ""}).has_value());
  auto cpu = MAKE_TORCH_LIBRARY_IMPL(listened, CPU);
  cpu.impl("f", [](const at::Tensor& x) { return x + 1; });
  EXPECT_TRUE(dispatcher.findOp({"listened::f", ""}).has_value());
  const size_t dangling = dispatcher.findDanglingImpls().size();
  EXPECT_GE(dangling, 1);
  EXPECT_EQ(counts[0], 0);
  {
    auto block = MAKE_TORCH_LIBRARY(listened);
    block.def("f(Tensor x) -> Tensor");
    EXPECT_EQ(counts[0], 1);
    EXPECT_EQ(dispatcher.findDanglingImpls().size(), dangling - 1);
    // A second kernel for the key takes the place of the first.
    cpu.impl("f", [](const at::Tensor& x) { return x + 10; });
    at::Tensor x = at::zeros({});
    EXPECT_EQ(find("listened::f").typed<at::Tensor(const at::Tensor&)>().call(x).item<float>(), 10);
    block.impl("f", c10::DeviceType::CUDA, [](const at::Tensor& x) { return x; });
    EXPECT_TRUE(find("listened::f").hasKernelForDispatchKey(c10::DispatchKey::CUDA));
  }
  EXPECT_EQ(counts[1], 1);
  auto names = dispatcher.getRegistrationsForDispatchKey(c10::DispatchKey::CPU);
  EXPECT_GT(dispatcher.getRegistrationsForDispatchKey(std::nullopt).size(), names.size());
}

TEST(Registration, ReadsSchemasAndFindsDifferences) {
  auto a = torch::jit::parseSchema("read::f(Tensor x, int n=1) -> (Tensor, int)");
  auto b = torch::jit::parseSchema("other::g(Tensor y, int m) -> (Tensor, int)");
  auto c = torch::jit::parseSchema("read::f(Tensor x, float n) -> (Tensor, int)");
  EXPECT_FALSE(c10::findSchemaDifferences(a, b).has_value());
  EXPECT_EQ(*c10::findSchemaDifferences(a, c),
            "expected equal types of argument 2, got int and float");
}

TEST(TensorObjects, AreMadeOverMemoryAndShowTheirKeys) {
  auto* allocator = c10::GetCPUAllocator();
  auto storage = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), 8,
                                                       allocator->allocate(8), allocator, true);
  at::Tensor x = at::detail::make_tensor<c10::TensorImpl>(
      storage, c10::DispatchKeySet(c10::DispatchKey::CUDA), caffe2::TypeMeta::Make<float>());
  EXPECT_TRUE(x.key_set().has(c10::DispatchKey::CUDA));
  EXPECT_TRUE(x.key_set().has(c10::DispatchKey::AutogradCUDA));
  x.unsafeGetTensorImpl()->set_sizes_contiguous({2, 1});
  EXPECT_EQ(x.sizes(), at::IntArrayRef({2, 1}));
  EXPECT_EQ(x.strides(), at::IntArrayRef({1, 1}));
  EXPECT_EQ(x.storage().nbytes(), 8U);
  x.unsafeGetTensorImpl()->set_sizes_and_strides({1}, {1}, 1);
  EXPECT_EQ(x.data_ptr(), static_cast<float*>(storage->mutable_data()) + 1);
  EXPECT_TRUE(x.key_set().has(c10::DispatchKey::CUDA));
  EXPECT_THROW(x.unsafeGetTensorImpl()->set_sizes_contiguous({3}), c10::Error);
  EXPECT_THROW(x.unsafeGetTensorImpl()->set_sizes_and_strides({1, 1}, {1}), c10::Error);
  x.unsafeGetTensorImpl()->remove_autograd_key();
  EXPECT_FALSE(x.key_set().has(c10::DispatchKey::AutogradCUDA));
  EXPECT_EQ(c10::legacyExtractDispatchKey(x.key_set()), c10::DispatchKey::CUDA);
  EXPECT_EQ(storage.use_count(), 2);
  x.reset();
  EXPECT_EQ(storage.use_count(), 1);
}

TEST(TensorObjects, AreMadeWithoutMemoryAndAsViews) {
  const c10::DispatchKeySet cpu(c10::DispatchKey::CPU);
  at::Tensor none(c10::make_intrusive<c10::TensorImpl, c10::UndefinedTensorImpl>(
      c10::DispatchKey::XLA, caffe2::TypeMeta::Make<float>(), at::Device(at::kXLA, 0)));
  EXPECT_EQ(none.device(), at::Device(at::kXLA, 0));
  EXPECT_EQ(none.numel(), 0);
  at::Tensor x = at::arange(6, at::kFloat);
  at::Tensor view = at::detail::make_tensor<c10::TensorImpl>(
      c10::TensorImpl::VIEW, c10::Storage(x.storage()), cpu, x.dtype());
  view.unsafeGetTensorImpl()->set_sizes_and_strides({3}, {2});
  EXPECT_TRUE(view.is_alias_of(x));
  EXPECT_EQ(view.sum().item<float>(), 6);
  auto* allocator = c10::GetCPUAllocator();
  c10::Storage storage(c10::Storage::use_byte_size_t(), 8, allocator, true);
  EXPECT_EQ(storage.nbytes(), 8U);
  at::Tensor y = at::detail::make_tensor<c10::TensorImpl>(storage, cpu, x.dtype());
  y.unsafeGetTensorImpl()->set_sizes_contiguous({2});
  y.fill_(3);
  EXPECT_EQ(static_cast<const float*>(storage.data())[1], 3);
  EXPECT_TRUE(y.storage().is_alias_of(storage));
  EXPECT_FALSE(y.is_view());
  EXPECT_EQ(at::Tensor().unsafeGetTensorImpl(), c10::UndefinedTensorImpl::singleton());
}

}  // namespace
