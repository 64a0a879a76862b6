// Derivatives that lamella_add_operators generates and registers, from the first call to the
// gradient.
#include <gtest/gtest.h>

#include "codegen_derive_test/functions.h"
#include "codegen_derive_test/native_functions.h"
#include "lamella/abi/autograd.h"
#include "lamella/lamella.h"
#include "tests/codegen/derive_formulas.h"

using lamella::IntArrayRef;
using lamella::Tensor;
using lamella::TensorList;
using Values = std::vector<float>;

namespace derive {

int scaled_calls = 0;
std::vector<int64_t> scaled_sizes;
std::array<bool, 2> join_mask;

Tensor scaled(const Tensor& grad, IntArrayRef sizes, double factor) {
  ++scaled_calls;
  scaled_sizes = sizes.vec();
  return grad * factor;
}

std::tuple<Tensor, Tensor> join_gradients(const Tensor& grad, bool has_y,
                                          std::array<bool, 2> wanted) {
  join_mask = wanted;
  return {wanted[0] ? grad.clone() : Tensor(), wanted[1] && has_y ? grad * 2 : Tensor()};
}

namespace native {

Tensor scale(const Tensor& self, double factor) { return self * factor; }

std::tuple<Tensor, Tensor> join(const Tensor& x, const std::optional<Tensor>& y, TensorList rest) {
  Tensor sum = x.clone();
  if (y.has_value()) sum = sum + *y * 2;
  for (const Tensor& one : rest) sum = sum + one * 3;
  return {sum, lamella::full({}, static_cast<double>(rest.size()))};
}

Tensor stuck(const Tensor& self) { return self.clone(); }

}  // namespace native
}  // namespace derive

namespace {

Tensor leaf(float value) {
  Tensor t = lamella::full({2}, value, lamella::kFloat);
  lamella::detail::check(lamella_tensor_set_requires_grad(t.impl(), 1));
  return t;
}
bool requires_grad(const Tensor& t) { return lamella_tensor_requires_grad(t.impl()) != 0; }

void backward(const Tensor& root) {
  Tensor ones = lamella::ones_like(root);
  lamella_tensor* roots[] = {root.impl()};
  lamella_tensor* grads[] = {ones.impl()};
  lamella::detail::check(lamella_backward_run(roots, grads, 1, nullptr, 0, 0, nullptr));
}

// Empty: it has none.
Values grad_of(const Tensor& t) {
  const Tensor grad = lamella::TensorBase::adopt(lamella_tensor_grad(t.impl()));
  if (!grad.defined()) return {};
  const Tensor dense = grad.contiguous();
  return Values(dense.data_ptr<float>(), dense.data_ptr<float>() + dense.numel());
}

TEST(Derive, FunctionalForm) {
  const Tensor x = leaf(1);
  const Tensor y = derive::scale(x, 5.0);
  EXPECT_TRUE(requires_grad(y));
  derive::scaled_calls = 0;
  backward(y);
  EXPECT_EQ(grad_of(x), Values({5, 5}));
  EXPECT_EQ(derive::scaled_calls, 1);
  EXPECT_EQ(derive::scaled_sizes, std::vector<int64_t>({2}));
}

TEST(Derive, InPlaceFormSharesIt) {
  const Tensor x = leaf(1);
  Tensor y = derive::scale(x, 2.0);
  derive::scale_(y, 7.0);
  backward(y);
  EXPECT_EQ(grad_of(x), Values({14, 14}));
}

TEST(Derive, SeveralArgumentsAndLists) {
  const Tensor x = leaf(1), y = leaf(2), a = leaf(3), b = leaf(4);
  const auto [first, count] = derive::join(x, y, std::vector<Tensor>{a, b});
  EXPECT_TRUE(requires_grad(first));
  EXPECT_FALSE(requires_grad(count));
  backward(first);
  EXPECT_EQ(derive::join_mask, (std::array<bool, 2>{true, true}));
  EXPECT_EQ(grad_of(x), Values({1, 1}));
  EXPECT_EQ(grad_of(y), Values({2, 2}));
  EXPECT_EQ(grad_of(a), Values({3, 3}));
  EXPECT_EQ(grad_of(b), Values({3, 3}));
}

TEST(Derive, OnlyWhatIsWanted) {
  const Tensor plain = lamella::ones({2}, lamella::kFloat);
  const Tensor x = leaf(1);
  const auto [first, count] = derive::join(x, std::nullopt, std::vector<Tensor>{plain});
  backward(first);
  EXPECT_EQ(derive::join_mask, (std::array<bool, 2>{true, false}));
  EXPECT_EQ(grad_of(x), Values({1, 1}));
  EXPECT_EQ(grad_of(plain), Values());
}

TEST(Derive, NotImplemented) {
  const Tensor y = derive::stuck(leaf(1));
  try {
    backward(y);
    FAIL();
  } catch (const lamella::NotImplementedError& error) {
    EXPECT_EQ(error.msg(), "stuck: the derivative for 'self' is not implemented");
  }
}

}  // namespace
