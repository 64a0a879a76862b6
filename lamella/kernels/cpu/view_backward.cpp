// The backwards of select and slice, which write the gradient and the zeros around it in one pass.
#include <cstring>

#include "lamella/kernels/native.h"
#include "lamella/kernels/parallel.h"

namespace lamella::native {

namespace {
// Rows shorter than this many bytes are cheaper to copy as one strided block.
constexpr int64_t kRowBytes = 64;

// A tensor of `sizes` that has `grad` at positions first, first + step, ... along `dim` (`count` of
// them), and zero elsewhere.
Tensor placed(const Tensor& grad, IntArrayRef sizes, int64_t dim, int64_t first, int64_t count,
              int64_t step) {
  Tensor result = new_tensor(sizes, grad.scalar_type(), grad.device());
  if (result.is_meta() || result.numel() == 0) return result;
  auto d = static_cast<size_t>(dim);
  int64_t inner = product(sizes.slice(d + 1)) * grad.element_size();
  int64_t outer = product(sizes.slice(0, d));
  auto* to = static_cast<char*>(result.data_ptr());
  if (step == 1 && inner * sizes[d] >= kRowBytes && grad.is_contiguous()) {
    const auto* from = static_cast<const char*>(grad.const_data_ptr());
    int64_t before = first * inner, middle = count * inner;
    int64_t after = (sizes[d] - first - count) * inner;
    int64_t row = before + middle + after;
    parallel_for(0, outer, kGrainSize * 8 / row + 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        char* at = to + i * row;
        std::memset(at, 0, static_cast<size_t>(before));
        if (middle != 0) std::memcpy(at + before, from + i * middle, static_cast<size_t>(middle));
        std::memset(at + before + middle, 0, static_cast<size_t>(after));
      }
    });
    return result;
  }
  if (result.numel() != 0) std::memset(to, 0, result.nbytes());
  if (count == 0) return result;
  Dims shape(sizes), strides(result.strides());
  int64_t offset = first * strides[d];
  shape[d] = count;
  if (count > 1) strides[d] *= step;  // the stride of a single element is never used
  view_of(result, shape, strides, offset).copy_(grad);
  return result;
}

void check_grad(const char* op, const Tensor& grad, IntArrayRef expected) {
  LAMELLA_CHECK(grad.sizes().equals(expected), op, ": expected 'grad_output' to be of shape ",
                expected, ", got ", grad.sizes());
}
}  // namespace

Tensor select_backward(const Tensor& grad_output, IntArrayRef input_sizes, int64_t dim,
                       int64_t index) {
  auto ndim = static_cast<int64_t>(input_sizes.size());
  LAMELLA_CHECK_INDEX(ndim > 0, "select_backward: expected 'input_sizes' not to be empty");
  dim = maybe_wrap_dim(dim, ndim, "select_backward");
  auto d = static_cast<size_t>(dim);
  int64_t size = input_sizes[d];
  LAMELLA_CHECK_INDEX(index >= -size && index < size, "select_backward: expected 'index' in [",
                      -size, ", ", size - 1, "] for dimension ", dim, " of ", input_sizes, ", got ",
                      index);
  Dims expected(input_sizes);
  expected.erase(d);
  check_grad("select_backward", grad_output, expected);
  return placed(grad_output.unsqueeze(dim), input_sizes, dim, index < 0 ? index + size : index, 1,
                1);
}

Tensor slice_backward(const Tensor& grad_output, IntArrayRef input_sizes, int64_t dim,
                      int64_t start, int64_t end, int64_t step) {
  auto ndim = static_cast<int64_t>(input_sizes.size());
  LAMELLA_CHECK(ndim > 0, "slice_backward: expected 'input_sizes' not to be empty");
  LAMELLA_CHECK(step > 0, "slice_backward: expected a 'step' of at least 1, got ", step);
  dim = maybe_wrap_dim(dim, ndim, "slice_backward");
  auto d = static_cast<size_t>(dim);
  int64_t size = input_sizes[d];
  auto clamp = [&](int64_t at) {
    if (at < 0) at += size;
    return at < 0 ? 0 : at > size ? size : at;
  };
  int64_t first = clamp(start), last = clamp(end);
  int64_t count = last > first ? (last - first - 1) / step + 1 : 0;
  Dims expected(input_sizes);
  expected[d] = count;
  check_grad("slice_backward", grad_output, expected);
  return placed(grad_output, input_sizes, dim, first, count, step);
}

}  // namespace lamella::native
