// Derivatives of indexing, joining and sorting.
#pragma once
#include <array>
#include <string_view>
#include <tuple>
#include <vector>

#include "lamella/api/tensor.h"

namespace lamella {

// Zeros of `sizes` with `grad` added where indices picked it from.
Tensor index_backward(const Tensor& grad, IntArrayRef sizes, TensorList indices);
// The gradient of the elements that index_put overwrote.
Tensor index_put_backward(const Tensor& grad, TensorList indices);
Tensor gather_backward(const Tensor& grad, IntArrayRef sizes, int64_t dim, const Tensor& index);
Tensor take_backward(const Tensor& grad, IntArrayRef sizes, const Tensor& index);
Tensor put_source_backward(const Tensor& grad, const Tensor& index, IntArrayRef source_sizes);
Tensor masked_select_backward(const Tensor& grad, IntArrayRef sizes, const Tensor& mask);

// The gradient of src in scatter and scatter_add. src may be larger than index; elements that are
// not read get zeros.
Tensor scatter_source_backward(const Tensor& grad, int64_t dim, const Tensor& index,
                               IntArrayRef src_sizes);
// The gradient of source in index_add and index_copy; a source without dimensions stays one.
Tensor index_source_backward(const Tensor& grad, int64_t dim, const Tensor& index,
                             IntArrayRef source_sizes);
// The sum over the filled elements, each counted once.
Tensor index_fill_value_backward(const Tensor& grad, int64_t dim, const Tensor& index);
Tensor masked_fill_value_backward(const Tensor& grad, const Tensor& mask);

// (self, src); undefined where it is not wanted.
std::tuple<Tensor, Tensor> scatter_reduce_backward(const Tensor& grad, const Tensor& self,
                                                   int64_t dim, const Tensor& index,
                                                   const Tensor& src, std::string_view reduce,
                                                   bool include_self, const Tensor& result,
                                                   std::array<bool, 2> wanted);
Tensor scatter_reduce_forward(const Tensor& self_p, const Tensor& self_t, int64_t dim,
                              const Tensor& index, const Tensor& src_p, const Tensor& src_t,
                              std::string_view reduce, bool include_self, const Tensor& result);

// The gradients of index_reduce, by the rules of scatter_reduce.
std::tuple<Tensor, Tensor> index_reduce_backward(const Tensor& grad, const Tensor& self,
                                                 int64_t dim, const Tensor& index,
                                                 const Tensor& source, std::string_view reduce,
                                                 bool include_self, const Tensor& result,
                                                 std::array<bool, 2> wanted);
Tensor index_reduce_forward(const Tensor& self_p, const Tensor& self_t, int64_t dim,
                            const Tensor& index, const Tensor& source_p, const Tensor& source_t,
                            std::string_view reduce, bool include_self, const Tensor& result);

// The parts of `grad` that come from tensors of these sizes.
std::vector<Tensor> cat_backward(const Tensor& grad, ArrayRef<IntArrayRef> sizes, int64_t dim);
std::vector<Tensor> block_diag_backward(const Tensor& grad, ArrayRef<IntArrayRef> sizes);

// The tangent of values that were picked along `dim`.
Tensor picked_along(const Tensor& tangent, int64_t dim, const Tensor& indices, bool keepdim);

}  // namespace lamella
