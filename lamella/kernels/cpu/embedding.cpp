// The backward of embedding: sums the rows of the gradient that belong to the same index.
#include <vector>

#include "lamella/core/visit_dtype.h"
#include "lamella/kernels/cpu/selecting.h"
#include "lamella/kernels/native.h"
#include "lamella/kernels/parallel.h"

namespace lamella::native {

namespace {
template <class T, class I>
void add_rows(const T* grad, const I* indices, int64_t count, int64_t width, T* out, int64_t rows,
              int64_t padding, const std::vector<int64_t>& uses) {
  const AddRun add = add_run_on(kCPU, CppTypeToScalarType<T>::value);
  // Each thread writes its own rows, so no row is written by two threads.
  parallel_for(0, rows, kGrainSize / (count * width / (rows + 1) + 1) + 1,
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = 0; i < count; ++i) {
                   auto row = static_cast<int64_t>(indices[i]);
                   if (row == padding || row < begin || row >= end) continue;
                   const T* from = grad + i * width;
                   T* to = out + row * width;
                   if (uses.empty()) {
                     add(to, from, width);
                     continue;
                   }
                   T scale = T(1) / static_cast<T>(uses[static_cast<size_t>(row)]);
                   for (int64_t j = 0; j < width; ++j) to[j] += from[j] * scale;
                 }
               });
}
}  // namespace

Tensor embedding_dense_backward(const Tensor& grad_output, const Tensor& indices,
                                int64_t num_weights, int64_t padding_idx, bool scale_grad_by_freq) {
  const char* op = "embedding_dense_backward";
  LAMELLA_CHECK(indices.scalar_type() == kLong || indices.scalar_type() == kInt, op,
                ": expected 'indices' to be int64 or int32, got ", indices.scalar_type());
  LAMELLA_CHECK(grad_output.dim() == indices.dim() + 1 &&
                    grad_output.sizes().slice(0, indices.sizes().size()).equals(indices.sizes()),
                op, ": expected 'grad_output' to have a row for each index of shape ",
                indices.sizes(), ", got ", grad_output.sizes());
  int64_t width = grad_output.sizes()[indices.sizes().size()], count = indices.numel();
  ScalarType dtype = grad_output.scalar_type();
  LAMELLA_CHECK_NOT_IMPLEMENTED(grad_output.is_floating_point() && !is_float8(dtype), op,
                                ": expected 'grad_output' to be floating point, got ", dtype);
  // Small types are summed in float32.
  ScalarType wide = dtype == kDouble ? kDouble : kFloat;
  Tensor out = new_tensor({num_weights, width}, wide, grad_output.device());
  if (grad_output.is_meta()) return wide == dtype ? out : out.to(dtype);
  out.zero_();
  Tensor grad = grad_output.to(wide).contiguous(), at = indices.contiguous();
  visit_index(at.scalar_type(), op, [&](auto tag) {
    using I = type_of<decltype(tag)>;
    auto* index = static_cast<const I*>(at.const_data_ptr());
    std::vector<int64_t> uses(scale_grad_by_freq ? static_cast<size_t>(num_weights) : 0);
    for (int64_t i = 0; i < count; ++i) {
      auto row = static_cast<int64_t>(index[i]);
      LAMELLA_CHECK_INDEX(row == padding_idx || (row >= 0 && row < num_weights), op,
                          ": expected the elements of 'indices' to be in [0, ", num_weights,
                          "), got ", row);
      if (scale_grad_by_freq && row != padding_idx) ++uses[static_cast<size_t>(row)];
    }
    if (wide == kDouble) {
      add_rows(static_cast<const double*>(grad.const_data_ptr()), index, count, width,
               static_cast<double*>(out.data_ptr()), num_weights, padding_idx, uses);
    } else {
      add_rows(static_cast<const float*>(grad.const_data_ptr()), index, count, width,
               static_cast<float*>(out.data_ptr()), num_weights, padding_idx, uses);
    }
  });
  return wide == dtype ? out : out.to(dtype);
}

}  // namespace lamella::native
