// The tutorial: out-of-tree kernels for existing operators, for another backend.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/library.h>
#include <torch/torch.h>

using torch::Tensor;

namespace {

// A backend of a third party's, for operators that exist already.
int xla_calls = 0;
Tensor xla_empty(at::IntArrayRef size, std::optional<at::ScalarType> dtype,
                 std::optional<at::Layout>, std::optional<at::Device>, std::optional<bool>,
                 std::optional<at::MemoryFormat>) {
  ++xla_calls;
  static float memory[16];
  lamella_tensor* result = nullptr;
  lamella::detail::check(
      lamella_tensor_from_blob(memory, static_cast<int32_t>(size.size()), size.data(), nullptr,
                               static_cast<uint8_t>(dtype.value_or(at::kFloat)),
                               static_cast<uint8_t>(at::kXLA), 0, nullptr, nullptr, &result));
  return Tensor(at::TensorBase::adopt(result));
}
Tensor xla_add(const Tensor& self, const Tensor&, const at::Scalar& alpha) {
  xla_calls += 10 * static_cast<int>(alpha.toLong());
  return self;
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  m.impl("empty.memory_format", TORCH_FN(xla_empty));
  m.impl("add.Tensor", TORCH_FN(xla_add));
}

namespace {

TEST(Tutorial, AnotherBackendForExistingOperators) {
  xla_calls = 0;
  Tensor a = torch::empty({4}, at::device(at::kXLA));
  EXPECT_EQ(xla_calls, 1);
  EXPECT_EQ(a.device().type(), at::kXLA);
  Tensor b = at::add(a, a, 3);
  EXPECT_EQ(xla_calls, 31);
  EXPECT_TRUE(b.is_same(a));
}

// A kernel that serves all backends serves one from outside as well.
TEST(Tutorial, CatchAllKernelServesABackendFromOutside) {
  torch::Library block(torch::Library::DEF, "outside", c10::nullopt, __FILE__, __LINE__);
  block.def("anywhere(Tensor self) -> Tensor", [](const Tensor& self) { return self; });
  auto op = c10::Dispatcher::singleton()
                .findSchemaOrThrow("outside::anywhere", "")
                .typed<Tensor(const Tensor&)>();
  Tensor self = torch::empty({2}, at::device(at::kXLA));
  EXPECT_TRUE(op.call(self).is_same(self));
}

}  // namespace
