// Generators under PyTorch's names: those of the library, drawn from by hand, and classes of a
// program's own, whose keys choose the kernels.
#include <ATen/ATen.h>
#include <ATen/Utils.h>
#include <ATen/core/PhiloxRNGEngine.h>
#include <ATen/native/DistributionTemplates.h>
#include <ATen/native/cpu/DistributionTemplates.h>
#include <c10/core/GeneratorImpl.h>
#include <gtest/gtest.h>
#include <torch/library.h>

#include <mutex>
#include <string>

namespace {

using at::Tensor;

// The first line of an error's text.
template <class F>
std::string error_of(F&& call) {
  try {
    call();
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    return text.substr(0, text.find('\n'));
  }
  return "no error";
}

// Counts up from a number.
struct Counter : c10::GeneratorImpl {
  explicit Counter(uint64_t first, at::Device device = at::kCPU)
      : GeneratorImpl(device, c10::DispatchKeySet(c10::DispatchKey::CustomRNGKeyId)), next(first) {}
  uint32_t random() { return static_cast<uint32_t>(next++); }
  uint64_t random64() { return next++; }
  void set_current_seed(uint64_t seed) override { next = seed; }
  uint64_t current_seed() const override { return next; }
  uint64_t seed() override { return next = 7; }
  void set_offset(uint64_t offset) override { next += offset; }
  uint64_t get_offset() const override { return 0; }
  void set_state(const c10::TensorImpl& state) override { next = state.numel(); }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    return at::zeros({static_cast<int64_t>(next)}).getIntrusivePtr();
  }
  Counter* clone_impl() const override { return new Counter(next); }
  static at::DeviceType device_type() { return at::kCPU; }
  uint64_t next;
};
// Adds nothing but a name.
struct Derived : at::CPUGeneratorImpl {
  using at::CPUGeneratorImpl::CPUGeneratorImpl;
};

Tensor& random_(Tensor& self, std::optional<at::Generator> generator) {
  namespace templates = at::native::templates;
  return templates::random_impl<templates::cpu::RandomKernel, Counter>(self, generator);
}
int64_t which(std::optional<at::Generator>) { return 1; }
int64_t which_counted(std::optional<at::Generator> generator) {
  return 100 + static_cast<int64_t>(at::check_generator<Counter>(generator)->next);
}
TORCH_LIBRARY(generator_test, m) { m.def("which(Generator? generator) -> int"); }
TORCH_LIBRARY_IMPL(generator_test, CPU, m) { m.impl("which", which); }
TORCH_LIBRARY_IMPL(generator_test, CustomRNGKeyId, m) { m.impl("which", which_counted); }
TORCH_LIBRARY_IMPL(aten, CustomRNGKeyId, m) { m.impl("random_", random_); }

TEST(LibraryGenerator, IsDrawnFromInStepWithItsOperators) {
  at::Generator generator = at::detail::createCPUGenerator(5);
  auto* by_hand = at::check_generator<at::CPUGeneratorImpl>(generator);
  EXPECT_EQ(by_hand, generator.unsafeGetGeneratorImpl());
  at::Generator copy = generator.clone();
  std::lock_guard lock(copy.mutex());  // the copy's alone
  EXPECT_EQ(
      at::rand({1}, generator).item<float>(),
      at::uniform_real_distribution<float>(0, 1)(at::check_generator<at::CPUGeneratorImpl>(copy)));
  EXPECT_EQ(by_hand->random64(), copy.get<at::CPUGeneratorImpl>()->random64());
  EXPECT_EQ(generator.device(), at::Device(at::kCPU));
}

TEST(LibraryGenerator, HasSeedsAndStates) {
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(9);
  EXPECT_EQ(generator.current_seed(), 9);
  Tensor state = generator.get_state(), first = at::rand({4}, generator);
  generator.set_state(state);
  EXPECT_TRUE(at::equal(first, at::rand({4}, generator)));
  generator.set_current_seed(9);
  EXPECT_TRUE(at::equal(first, at::rand({4}, generator)));
  const uint64_t fresh = generator.seed();
  EXPECT_EQ(fresh, generator.current_seed());
  EXPECT_EQ(error_of([&] { generator.set_state(at::zeros({3})); }),
            "set_state: expected 'new_state' to be a contiguous uint8 tensor on cpu");
  EXPECT_EQ(error_of([&] { generator.get_offset(); }),
            "get_offset: expected a generator with an offset, got one on cpu");
}

TEST(GeneratorClass, ChoosesKernelsByItsKeys) {
  static auto call = c10::Dispatcher::singleton()
                         .findSchemaOrThrow("generator_test::which", "")
                         .typed<int64_t(std::optional<at::Generator>)>();
  EXPECT_EQ(call.call(std::nullopt), 1);
  EXPECT_EQ(call.call(at::detail::getDefaultCPUGenerator()), 1);
  at::Generator counter = at::make_generator<Counter>(3);
  EXPECT_EQ(call.call(counter), 103);
  torch::jit::Stack stack{c10::IValue(counter)};
  c10::Dispatcher::singleton().findSchemaOrThrow("generator_test::which", "").callBoxed(&stack);
  EXPECT_EQ(stack[0].toInt(), 103);
  EXPECT_TRUE(at::equal(at::empty({2, 2}, at::kLong).random_(counter),
                        at::arange(3, 7, at::kLong).view({2, 2})));
  EXPECT_EQ(counter.current_seed(), 7);
  EXPECT_EQ(counter.clone().get_state().numel(), 7);
}

TEST(GeneratorClass, IsRefusedWhereItIsNotKnown) {
  at::Generator counter = at::make_generator<Counter>(3);
  EXPECT_EQ(error_of([&] { at::empty({2}).uniform_(0, 1, counter); }),
            "aten::uniform_: no kernel for CustomRNGKeyId");
  EXPECT_EQ(at::make_generator<Derived>(4).current_seed(), 4);
  EXPECT_EQ(error_of([&] { at::empty({2}).uniform_(0, 1, at::make_generator<Derived>(4)); }),
            "Generator: expected a generator of Lamella, got one of a class of its own");
  EXPECT_EQ(error_of([&] { at::check_generator<at::CPUGeneratorImpl>(counter); }),
            "check_generator: expected a generator of class N7lamella16CPUGeneratorImplE on cpu, "
            "got another on cpu");
  EXPECT_EQ(error_of([&] { at::check_generator<Counter>(std::nullopt); }),
            "check_generator: expected a generator, got none");
}

TEST(Distributions, CheckBounds) {
  at::Generator counter = at::make_generator<Counter>(0);
  namespace templates = at::native::templates;
  auto from_to = [&](at::ScalarType type, int64_t from, std::optional<int64_t> to) {
    Tensor self = at::empty({3}, type);
    return templates::random_from_to_impl<templates::cpu::RandomFromToKernel, Counter>(self, from,
                                                                                       to, counter);
  };
  EXPECT_TRUE(at::equal(from_to(at::kInt, 5, 7), at::tensor({5, 6, 5}, at::kInt)));
  EXPECT_EQ(error_of([&] { from_to(at::kInt, 7, 7); }), "random_: expected from < to, got 7 and 7");
  EXPECT_EQ(error_of([&] { from_to(at::kByte, -1, 7); }),
            "random_: expected bounds that uint8 holds, got -1 and 6");
  EXPECT_EQ(templates::representable((1 << 24) + 1, 24, true), (1 << 24) + 2);
  EXPECT_EQ(templates::representable(-(1 << 24) - 1, 24, true), -(1 << 24));
  EXPECT_EQ(templates::representable((1 << 24) + 1, 24, false), 1 << 24);
}

TEST(Philox, CountsOverItsSubsequence) {
  at::Philox4_32 one(1, 0, ~uint64_t{0}), two(1, 1, 0);
  one.incr();
  EXPECT_EQ(one(), two());
  EXPECT_EQ(at::Philox4_32(1, 1, 0)(), lamella::philox(1, 1, 0).word[0]);
}

}  // namespace
