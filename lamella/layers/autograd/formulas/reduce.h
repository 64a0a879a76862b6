// Helpers for the derivatives of reductions, running sums and softmax. Internal.
#pragma once
#include "lamella/layers/autograd/formulas/common.h"

namespace lamella {

// A reduction's result in a shape that broadcasts against its input: reduced dimensions come back
// with size 1. No dimensions means all.
Tensor with_reduced_dims(const Tensor& x, OptionalIntArrayRef dim, bool keepdim, int64_t ndim);
// The number of elements of `sizes` that a reduction combines into one result.
int64_t reduced_numel(IntArrayRef sizes, OptionalIntArrayRef dim);

Tensor mean_backward(const Tensor& grad, IntArrayRef sizes, OptionalIntArrayRef dim, bool keepdim);

// Products of all other elements along `dim`, computed without division, so zeros are exact.
Tensor product_of_others(const Tensor& self, int64_t dim);
Tensor prod_backward(const Tensor& grad, const Tensor& self, int64_t dim, bool keepdim);
Tensor prod_tangent(const Tensor& self_p, const Tensor& self_t, int64_t dim, bool keepdim,
                    ScalarType dtype);

// Elements that are the extreme share its gradient.
Tensor extreme_backward(const Tensor& grad, const Tensor& self, const Tensor& result,
                        IntArrayRef dim, bool keepdim);
Tensor extreme_tangent(const Tensor& self_p, const Tensor& self_t, const Tensor& result,
                       IntArrayRef dim, bool keepdim);
// The gradient of both extremes along `dim`, or of all elements; either given one may be undefined.
Tensor extremes_backward(const Tensor& grad_min, const Tensor& grad_max, const Tensor& self,
                         const Tensor& min, const Tensor& max, std::optional<int64_t> dim,
                         bool keepdim);
std::vector<int64_t> dims_of(std::optional<int64_t> dim);
// The gradient goes to the first or last element that is the extreme so far.
Tensor running_extreme_backward(const Tensor& grad, IntArrayRef sizes, const Tensor& indices,
                                int64_t dim);
Tensor running_extreme_tangent(const Tensor& self_t, const Tensor& indices, int64_t dim);

Tensor var_backward(const Tensor& grad, const Tensor& self, OptionalIntArrayRef dim,
                    const std::optional<Scalar>& correction, bool keepdim);
Tensor var_tangent(const Tensor& self_p, const Tensor& self_t, OptionalIntArrayRef dim,
                   const std::optional<Scalar>& correction, bool keepdim);
// The gradient of a standard deviation as that of the variance; the other way for tangents.
Tensor deviation_to_variance(const Tensor& x, const Tensor& deviation);

Tensor norm_backward(const Tensor& grad, const Tensor& self, const Scalar& ord,
                     const Tensor& result, OptionalIntArrayRef dim, bool keepdim);
Tensor norm_tangent(const Tensor& self_p, const Tensor& self_t, const Scalar& ord,
                    const Tensor& result, OptionalIntArrayRef dim, bool keepdim);

// The gradient of the distances of order p between the rows of x1 and x2, for x1; for x2, the roles
// change.
Tensor cdist_backward(const Tensor& grad, const Tensor& x1, const Tensor& x2, double p,
                      const Tensor& result);
Tensor cdist_tangent(const Tensor& x1_p, const Tensor& x1_t, const Tensor& x2_p, const Tensor& x2_t,
                     double p, const Tensor& result);

Tensor logsumexp_backward(const Tensor& grad, const Tensor& self, const Tensor& result,
                          IntArrayRef dim, bool keepdim);
Tensor logsumexp_tangent(const Tensor& self_p, const Tensor& self_t, IntArrayRef dim, bool keepdim);

// ---- Along one dimension ----

// Sums from each element to the end.
Tensor sum_to_end(const Tensor& x, int64_t dim);
// Correct for zeros too. If gradients are recorded it takes memory for every pair of elements,
// since only second derivatives depend on how zero products change.
Tensor cumprod_backward(const Tensor& grad, const Tensor& self, int64_t dim, const Tensor& result);
Tensor cumprod_tangent(const Tensor& self_p, const Tensor& self_t, int64_t dim,
                       const Tensor& result);
Tensor logcumsumexp_backward(const Tensor& grad, const Tensor& self, const Tensor& result,
                             int64_t dim);
Tensor logcumsumexp_tangent(const Tensor& self_p, const Tensor& self_t, const Tensor& result,
                            int64_t dim);

Tensor softmax_tangent(const Tensor& self_t, const Tensor& result, int64_t dim);
Tensor log_softmax_tangent(const Tensor& self_t, const Tensor& result, int64_t dim);
// The gradient of the result that softmax's backward is given.
Tensor softmax_double_backward(const Tensor& grad, const Tensor& grad_output, const Tensor& output,
                               int64_t dim);
Tensor log_softmax_double_backward(const Tensor& grad, const Tensor& grad_output,
                                   const Tensor& output, int64_t dim);
Tensor log_softmax_backward_tangent(const Tensor& grad_output_p, const Tensor& grad_output_t,
                                    const Tensor& output_p, const Tensor& output_t, int64_t dim);

}  // namespace lamella
