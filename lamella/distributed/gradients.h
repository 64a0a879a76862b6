// What the formulas of derivatives.yaml call.
#pragma once
#include "lamella/lamella.h"

namespace dist {

using lamella::IntArrayRef;
using lamella::OptionalIntArrayRef;
using lamella::Tensor;

// The number of rows of every rank: `sizes`, or `own[0]` for each.
std::vector<int64_t> all_rows(OptionalIntArrayRef sizes, IntArrayRef own, int64_t group);

// Where several ranks have the smallest or largest value, each gets the same part of the gradient.
Tensor all_reduce_backward(const Tensor& grad, const Tensor& self, const Tensor& result,
                           std::string_view op, int64_t group, bool deterministic);
Tensor all_reduce_forward(const Tensor& tangent, const Tensor& self, const Tensor& result,
                          std::string_view op, int64_t group, bool deterministic);
Tensor reduce_scatter_backward(const Tensor& grad, const Tensor& self, const Tensor& result,
                               std::string_view op, OptionalIntArrayRef sizes, int64_t group);
Tensor broadcast_backward(const Tensor& grad, int64_t root, int64_t group);
// The gradient comes from the rank that received `self`.
Tensor send_backward(const Tensor& grad, const Tensor& self, int64_t to, int64_t tag, int64_t group,
                     bool gradient);
// Sends the gradient to the rank that sent the value. `self` of recv is not read and has none.
Tensor recv_backward(const Tensor& grad, int64_t source, int64_t tag, int64_t group, bool gradient);
Tensor scatter_backward(const Tensor& grad, IntArrayRef sizes_of_self, int64_t root,
                        OptionalIntArrayRef sizes, int64_t group);

}  // namespace dist
