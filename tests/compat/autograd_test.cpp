// Gradients as operator libraries for PyTorch define them: functions that return lists, save sizes
// and numbers, and whose backward is a custom function as well.
#include <ATen/core/grad_mode.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/function.h>
#include <torch/extension.h>
#include <torch/library.h>

#include <string>
#include <vector>

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

namespace {

template <class A, class B>
inline constexpr bool same = std::is_same_v<A, B>;
static_assert(same<Variable, at::Tensor> && same<variable_list, torch::autograd::tensor_list>);
static_assert(same<torch::autograd::SavedVariable, lamella::autograd::SavedVariable>);
static_assert(same<torch::autograd::Node, lamella::autograd::GraphNode>);
static_assert(same<torch::NoGradGuard, at::NoGradGuard> && same<c10::GradMode, at::GradMode>);
static_assert(same<at::AutoGradMode, torch::autograd::AutoGradMode>);
static_assert(same<c10::InferenceMode, torch::InferenceMode>);
static_assert(same<torch::autograd::GradMode, torch::GradMode>);

// Code may reopen the namespace.
}  // namespace
namespace torch::autograd {
inline int reopened() { return 1; }
}  // namespace torch::autograd
namespace {

std::vector<int64_t> to_vector(const c10::List<int64_t> list) {
  std::vector<int64_t> result;
  result.reserve(list.size());
  for (size_t i = 0; i < list.size(); i++) result.push_back(list[i]);
  return result;
}

// Sums entries of src into the places that index names.
class IndexSum : public torch::autograd::Function<IndexSum> {
 public:
  static variable_list forward(AutogradContext* ctx, Variable src, Variable index, int64_t dim,
                               torch::optional<Variable> optional_out,
                               torch::optional<int64_t> dim_size) {
    dim = dim < 0 ? src.dim() + dim : dim;
    ctx->saved_data["dim"] = dim;
    ctx->saved_data["src_shape"] = src.sizes();
    std::vector<int64_t> sizes = src.sizes().vec();
    sizes[dim] = dim_size.has_value() ? dim_size.value() : index.max().item<int64_t>() + 1;
    auto out = optional_out.has_value() ? optional_out.value() : torch::zeros(sizes, src.options());
    out.scatter_add_(dim, index, src);
    ctx->save_for_backward({index});
    if (optional_out.has_value()) ctx->mark_dirty({optional_out.value()});
    return {out};
  }

  static variable_list backward(AutogradContext* ctx, variable_list grad_outs) {
    auto grad_out = grad_outs[0];
    auto saved = ctx->get_saved_variables();
    auto index = saved[0];
    auto src_shape = to_vector(ctx->saved_data["src_shape"].toIntList());
    TORCH_CHECK(src_shape[0] == ctx->saved_data["src_shape"].toList()[0].get().toInt());
    auto grad_in = torch::gather(grad_out, ctx->saved_data["dim"].toInt(), index, false);
    return {grad_in, Variable(), Variable(), Variable(), Variable()};
  }
};

torch::Tensor index_sum(torch::Tensor src, torch::Tensor index, int64_t dim,
                        torch::optional<torch::Tensor> out, torch::optional<int64_t> dim_size) {
  return IndexSum::apply(src, index, dim, out, dim_size)[0];
}

TEST(Autograd, IndexSum) {
  torch::Tensor src = torch::ones({3, 2}, torch::requires_grad());
  torch::Tensor index = torch::zeros({3, 2}, torch::kLong);
  torch::Tensor out = index_sum(src, index, 0, torch::nullopt, 2);
  EXPECT_EQ(out.sizes(), at::IntArrayRef({2, 2}));
  EXPECT_EQ(out.detach()[0].sum().item<float>(), 6);
  out.backward(torch::full({2, 2}, 4.0));
  EXPECT_EQ(src.grad().sum().item<float>(), 24);
  // Into a tensor of the caller's.
  torch::Tensor mine = torch::zeros({2, 2});
  EXPECT_TRUE(index_sum(src, index, -2, mine, torch::nullopt).is_same(mine));
  EXPECT_TRUE(mine.requires_grad());
}

// An operator with a backward operator of its own, whose second gradients are refused.
torch::Tensor pool(const at::Tensor& input, double scale, int64_t size, bool aligned) {
  static auto op = c10::Dispatcher::singleton()
                       .findSchemaOrThrow("compat_vision::pool", "")
                       .typed<decltype(pool)>();
  return op.call(input, scale, size, aligned);
}
at::Tensor pool_backward(const at::Tensor& grad, double scale, int64_t height, int64_t width) {
  static auto op = c10::Dispatcher::singleton()
                       .findSchemaOrThrow("compat_vision::_pool_backward", "")
                       .typed<decltype(pool_backward)>();
  return op.call(grad, scale, height, width);
}

class PoolFunction : public torch::autograd::Function<PoolFunction> {
 public:
  static torch::autograd::variable_list forward(torch::autograd::AutogradContext* ctx,
                                                const torch::autograd::Variable& input,
                                                double scale, int64_t size, bool aligned) {
    ctx->saved_data["scale"] = scale;
    ctx->saved_data["size"] = size;
    ctx->saved_data["aligned"] = aligned;
    ctx->saved_data["input_shape"] = input.sizes();
    at::AutoDispatchBelowADInplaceOrView g;
    auto result = pool(input, scale, size, aligned);
    return {result};
  }
  static torch::autograd::variable_list backward(
      torch::autograd::AutogradContext* ctx, const torch::autograd::variable_list& grad_output) {
    auto input_shape = ctx->saved_data["input_shape"].toList();
    EXPECT_TRUE(ctx->saved_data["aligned"].toBool());
    auto result = pool_backward(grad_output[0], ctx->saved_data["scale"].toDouble(),
                                input_shape[0].get().toSymInt(), input_shape[1].get().toSymInt());
    return {result, torch::autograd::Variable(), torch::autograd::Variable(),
            torch::autograd::Variable()};
  }
};
class PoolBackwardFunction : public torch::autograd::Function<PoolBackwardFunction> {
 public:
  static torch::autograd::variable_list forward(torch::autograd::AutogradContext* ctx,
                                                const torch::autograd::Variable& grad, double scale,
                                                int64_t height, int64_t width) {
    at::AutoDispatchBelowADInplaceOrView g;
    return {pool_backward(grad, scale, height, width)};
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 const torch::autograd::variable_list&) {
    TORCH_CHECK(0, "double backwards on pool not supported");
  }
};

at::Tensor pool_autograd(const at::Tensor& input, double scale, int64_t size, bool aligned) {
  return PoolFunction::apply(input, scale, size, aligned)[0];
}
at::Tensor pool_backward_autograd(const at::Tensor& grad, double scale, int64_t height,
                                  int64_t width) {
  return PoolBackwardFunction::apply(grad, scale, height, width)[0];
}
at::Tensor pool_cpu(const at::Tensor& input, double scale, int64_t, bool) {
  return input.sum() * scale;
}
at::Tensor pool_backward_cpu(const at::Tensor& grad, double scale, int64_t height, int64_t width) {
  return (grad * scale).expand({height, width}).contiguous();
}

TORCH_LIBRARY(compat_vision, m) {
  m.def(TORCH_SELECTIVE_SCHEMA(
      "compat_vision::pool(Tensor input, float scale, int size, bool aligned) -> Tensor"));
  m.def(TORCH_SELECTIVE_SCHEMA(
      "compat_vision::_pool_backward(Tensor grad, float scale, int height, int width) -> Tensor"));
}
TORCH_LIBRARY_IMPL(compat_vision, CPU, m) {
  m.impl(TORCH_SELECTIVE_NAME("compat_vision::pool"), TORCH_FN(pool_cpu));
  m.impl(TORCH_SELECTIVE_NAME("compat_vision::_pool_backward"), TORCH_FN(pool_backward_cpu));
}
TORCH_LIBRARY_IMPL(compat_vision, Autograd, m) {
  m.impl(TORCH_SELECTIVE_NAME("compat_vision::pool"), TORCH_FN(pool_autograd));
  m.impl(TORCH_SELECTIVE_NAME("compat_vision::_pool_backward"), TORCH_FN(pool_backward_autograd));
}

TEST(Autograd, BackwardOperatorsOfTheirOwn) {
  torch::Tensor x = torch::ones({2, 3}, torch::requires_grad());
  torch::Tensor y = pool(x, 0.5, 1, true);
  EXPECT_EQ(y.item<float>(), 3);
  torch::Tensor first = torch::autograd::grad({y}, {x}, {}, c10::nullopt, true)[0];
  EXPECT_EQ(first.sizes(), x.sizes());
  EXPECT_EQ(first.detach().sum().item<float>(), 3);
  // The first gradient does not depend on x, but on y's gradient.
  torch::Tensor seed = torch::ones({}, torch::requires_grad());
  torch::Tensor again = torch::autograd::grad({pool(x, 0.5, 1, true)}, {x}, {seed}, true, true)[0];
  ASSERT_TRUE(again.requires_grad());
  try {
    again.backward(torch::ones({2, 3}));
    FAIL() << "expected an error";
  } catch (const c10::Error& error) {
    EXPECT_STREQ(error.what(), "double backwards on pool not supported");
  }
}

TEST(Autograd, MembersOfTensor) {
  torch::Tensor x = torch::ones({2}, torch::dtype(torch::kDouble).requires_grad(true));
  std::vector<double> seen;
  x.register_hook([&](torch::Tensor grad) { seen.push_back(grad.sum().item<double>()); });
  torch::Tensor y = x * torch::full({2}, 3.0);
  EXPECT_TRUE(x.is_leaf() && !y.is_leaf());
  EXPECT_FALSE(x.grad().defined());
  y.backward(torch::ones({2}));
  EXPECT_EQ(seen, std::vector<double>({6}));
  x.mutable_grad().zero_();
  EXPECT_EQ(x.grad().sum().item<double>(), 0);
  torch::autograd::backward({x * x}, {torch::ones({2})});
  EXPECT_EQ(x.grad().sum().item<double>(), 4);
  EXPECT_EQ(torch::autograd::reopened(), 1);
}

}  // namespace
