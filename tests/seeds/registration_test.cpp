// The deep dive's second half: the expansion of the registration macros, and their arguments.
#include <ATen/NativeFunctions.h>
#include <gtest/gtest.h>
#include <torch/library.h>
#include <torch/torch.h>

#include <string>
#include <vector>

using at::Tensor;
using c10::DispatchKey;
using c10::DispatchKeySet;

namespace {

int wrapped = 0;
Tensor wrapper_contiguous(const Tensor& self, at::MemoryFormat memory_format) {
  ++wrapped;
  return at::native::contiguous(self, memory_format);
}
Tensor wrapper_norm(const Tensor& input, const std::optional<Tensor>& weight,
                    const std::optional<Tensor>& bias, bool training, double momentum) {
  return training || weight.has_value() || bias.has_value() || momentum != 0 ? Tensor() : input;
}

}  // namespace

TORCH_LIBRARY(registration, m) {
  m.def("norm(Tensor input, Tensor? weight, Tensor? bias, bool training, float momentum) -> Tensor",
        {});
  m.def("contiguous(Tensor(a) self, *, MemoryFormat memory_format=contiguous_format) -> Tensor(a)",
        {});
  m.def("mine(Tensor self, int times) -> Tensor");
}

// What TORCH_LIBRARY_IMPL(registration, CompositeImplicitAutograd, m) writes, written out.
static void registration_block(torch::Library&);
static const torch::detail::TorchLibraryInit registration_init(
    torch::Library::IMPL,
    c10::guts::if_constexpr<
        c10::impl::dispatch_key_allowlist_check(c10::DispatchKey::CompositeImplicitAutograd)>(
        []() { return &registration_block; }, []() { return [](torch::Library&) -> void {}; }),
    "registration", c10::make_optional(c10::DispatchKey::CompositeImplicitAutograd),
    "registration_test.cpp", 7156);
static void registration_block(torch::Library& m) {
  m.impl("norm", TORCH_FN(wrapper_norm));
  m.impl("contiguous",
         ::c10::CompileTimeFunctionPointer<
             std::remove_pointer_t<std::remove_reference_t<decltype(wrapper_contiguous)>>,
             wrapper_contiguous>());
}

namespace {

// A boxed kernel that serves all operators: it sees the values, whatever their types.
std::vector<std::string> seen;
void noting_fallback(const c10::OperatorHandle& op, DispatchKeySet dispatch_keys,
                     torch::jit::Stack* stack) {
  seen.push_back(toString(op.operator_name()));
  op.redispatchBoxed(dispatch_keys.remove(DispatchKey::TESTING_ONLY_GenericMode), stack);
}

}  // namespace

TORCH_LIBRARY_IMPL(_, TESTING_ONLY_GenericMode, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&noting_fallback>());
}

namespace {

Tensor call_mine(const Tensor& self, int64_t times) {
  static auto op = c10::Dispatcher::singleton()
                       .findSchemaOrThrow("registration::mine", "")
                       .typed<Tensor(const Tensor&, int64_t)>();
  return op.call(self, times);
}

TEST(Registration, WrittenOutMacro) {
  Tensor x = at::empty({1, 2, 3, 4});
  auto contiguous = c10::Dispatcher::singleton()
                        .findSchemaOrThrow("registration::contiguous", "")
                        .typed<Tensor(const Tensor&, at::MemoryFormat)>();
  int before = wrapped;
  EXPECT_EQ(contiguous.call(x, at::MemoryFormat::ChannelsLast).strides(),
            at::IntArrayRef({24, 1, 8, 2}));
  EXPECT_EQ(wrapped, before + 1);

  auto norm = c10::Dispatcher::singleton()
                  .findSchemaOrThrow("registration::norm", "")
                  .typed<Tensor(const Tensor&, const std::optional<Tensor>&,
                                const std::optional<Tensor>&, bool, double)>();
  EXPECT_TRUE(norm.call(x, c10::nullopt, c10::nullopt, false, 0).is_same(x));
  EXPECT_FALSE(norm.call(x, x, c10::nullopt, false, 0).defined());
}

TEST(Registration, RegisterImplEndsWithItsHandle) {
  Tensor x = at::empty({1});
  EXPECT_THROW(call_mine(x, 1), c10::NotImplementedError);
  {
    c10::RegistrationHandleRAII handle = c10::Dispatcher::singleton().registerImpl(
        c10::OperatorName("registration::mine", ""), c10::make_optional(DispatchKey::CPU),
        c10::KernelFunction::makeFromUnboxedLambda(
            [](const Tensor& self, int64_t times) { return times == 1 ? self : Tensor(); }),
        c10::nullopt, nullptr, "registration_test");
    EXPECT_TRUE(call_mine(x, 1).is_same(x));
    {
      // The newest registration for a key is the one that runs, until it ends.
      auto newer = c10::Dispatcher::singleton().registerImpl(
          c10::OperatorName("registration::mine", ""), DispatchKey::CPU,
          c10::KernelFunction::makeFromUnboxedLambda(
              [](const Tensor&, int64_t) { return Tensor(); }),
          c10::nullopt, nullptr, "registration_test");
      EXPECT_FALSE(call_mine(x, 1).defined());
    }
    EXPECT_TRUE(call_mine(x, 1).is_same(x));
    c10::RegistrationHandleRAII moved = std::move(handle);
    EXPECT_TRUE(call_mine(x, 1).is_same(x));
  }
  EXPECT_THROW(call_mine(x, 1), c10::NotImplementedError);
}

TEST(Registration, HandleRunsAFunctionOnce) {
  int undone = 0;
  {
    c10::RegistrationHandleRAII handle([&undone] { ++undone; });
    c10::RegistrationHandleRAII moved = std::move(handle);
    EXPECT_EQ(undone, 0);
  }
  EXPECT_EQ(undone, 1);
}

TEST(Registration, SignatureIsTakenFromTheFunction) {
  auto from_function = c10::impl::CppSignature::make<decltype(wrapper_contiguous)>();
  auto from_lambda = c10::impl::CppSignature::make<decltype([](const Tensor& a, at::MemoryFormat) {
    return Tensor(a);
  })>();
  EXPECT_EQ(from_function, from_lambda);
  EXPECT_FALSE(from_function == c10::impl::CppSignature::make<Tensor(const Tensor&)>());
}

TEST(Registration, BoxedFallbackServesEveryOperator) {
  Tensor x = at::empty({2, 2});
  seen.clear();
  {
    c10::impl::IncludeDispatchKeyGuard on(DispatchKey::TESTING_ONLY_GenericMode);
    EXPECT_TRUE(c10::impl::tls_is_dispatch_key_included(DispatchKey::TESTING_ONLY_GenericMode));
    at::_ops::clone::call(x, c10::nullopt);
    c10::impl::ExcludeDispatchKeyGuard off(DispatchKey::TESTING_ONLY_GenericMode);
    at::_ops::clone::call(x, c10::nullopt);
  }
  ASSERT_FALSE(seen.empty());
  EXPECT_EQ(seen.front(), "aten::clone");
  EXPECT_EQ(std::count(seen.begin(), seen.end(), "aten::clone"), 1);
}

// A kernel that turns autograd's keys off and calls the operator again reaches the backend.
TEST(Registration, KernelBelowAutograd) {
  torch::Library block(torch::Library::IMPL, "registration", DispatchKey::Autograd, __FILE__,
                       __LINE__);
  int autograd = 0, cpu = 0;
  block.impl("mine", [&autograd](const Tensor& self, int64_t times) {
    ++autograd;
    at::AutoNonVariableTypeMode guard;
    return call_mine(self, times);
  });
  torch::Library backend(torch::Library::IMPL, "registration", DispatchKey::CPU, __FILE__,
                         __LINE__);
  backend.impl("mine", [&cpu](const Tensor& self, int64_t) {
    ++cpu;
    return self;
  });
  Tensor x = at::empty({1});
  EXPECT_TRUE(call_mine(x, 1).is_same(x));
  EXPECT_EQ(autograd, 1);
  EXPECT_EQ(cpu, 1);
}

TEST(Registration, MistakesAreErrors) {
  torch::Library block(torch::Library::IMPL, "registration", DispatchKey::CPU, __FILE__, __LINE__);
  // A kernel that does not fit the schema.
  EXPECT_THROW(block.impl("mine", [](const Tensor& self) { return self; }), c10::Error);
  // A namespace is claimed once.
  EXPECT_THROW(torch::Library(torch::Library::DEF, "registration", c10::nullopt, __FILE__, 1),
               c10::Error);
  // A schema is given once.
  torch::Library fragment(torch::Library::FRAGMENT, "registration", c10::nullopt, __FILE__, 2);
  EXPECT_THROW(fragment.def("mine(Tensor self, int times) -> Tensor"), c10::Error);
}

}  // namespace
