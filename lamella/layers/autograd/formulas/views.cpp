// Derivatives of views and copies.
#include "lamella/layers/autograd/formulas/views.h"

#include <algorithm>

#include "lamella/api/functions.h"
#include "lamella/api/tensor_operators.h"
#include "lamella/core/error.h"
#include "lamella/core/wrap_dim.h"

namespace lamella {

Tensor adjoint_of(const Tensor& tensor) { return conj_of(tensor.transpose(-2, -1)); }
Tensor scaled(const Tensor& tensor, const Scalar& number) {
  return number.equal(1) ? tensor : tensor.mul(number);
}

Tensor sum_to(const Tensor& grad, IntArrayRef sizes) {
  if (grad.sizes().equals(sizes)) return grad;
  auto lead = grad.sizes().size() - sizes.size();
  std::vector<int64_t> dims;
  for (size_t d = 0; d < grad.sizes().size(); ++d) {
    if (d < lead || (sizes[d - lead] == 1 && grad.sizes()[d] != 1)) {
      dims.push_back(static_cast<int64_t>(d));
    }
  }
  Tensor sum = dims.empty() ? grad : grad.sum(IntArrayRef(dims), true);
  return lead == 0 ? sum : sum.reshape(sizes);
}

Tensor permute_backward(const Tensor& grad, IntArrayRef dims) {
  std::vector<int64_t> inverse(dims.size());
  for (size_t i = 0; i < dims.size(); ++i) {
    inverse[static_cast<size_t>(maybe_wrap_dim(dims[i], grad.dim(), "permute"))] =
        static_cast<int64_t>(i);
  }
  return grad.permute(inverse);
}

// ---- as_strided ----

namespace {

// Sizes and strides over memory cells that are counted from `offset`.
struct Layout {
  IntArrayRef sizes, strides;
  int64_t offset;

  bool empty() const {
    return std::any_of(sizes.begin(), sizes.end(), [](int64_t size) { return size == 0; });
  }
  int64_t last_cell() const {
    int64_t last = offset;
    for (size_t d = 0; d < sizes.size(); ++d) last += (sizes[d] - 1) * strides[d];
    return last;
  }
  // False only if no two positions share a cell.
  bool may_overlap() const {
    std::vector<size_t> order;
    for (size_t d = 0; d < sizes.size(); ++d) {
      if (sizes[d] > 1) order.push_back(d);
    }
    std::sort(order.begin(), order.end(),
              [&](size_t a, size_t b) { return strides[a] < strides[b]; });
    int64_t reach = 0;
    for (size_t d : order) {
      if (strides[d] <= reach) return true;
      reach += (sizes[d] - 1) * strides[d];
    }
    return false;
  }
  Tensor of(const Tensor& cells) const { return cells.as_strided(sizes, strides, offset); }
};

// Two layouts over the same memory, from the first cell that either uses on.
struct Layouts {
  Layout self, view;
  int64_t cells;

  Layouts(IntArrayRef self_sizes, IntArrayRef self_strides, int64_t self_offset, IntArrayRef size,
          IntArrayRef stride, std::optional<int64_t> offset)
      : self{self_sizes, self_strides, self_offset},
        view{size, stride, offset.value_or(self_offset)} {
    int64_t start = std::min(self.offset, view.offset);
    self.offset -= start;
    view.offset -= start;
    cells =
        std::max(self.empty() ? 0 : self.last_cell() + 1, view.empty() ? 0 : view.last_cell() + 1);
  }
};

// The sum of `values`, laid out so, in each of `count` cells.
Tensor summed_in_cells(const Tensor& values, const Layout& layout, int64_t count) {
  Tensor cells = values.new_zeros({count});
  if (!layout.may_overlap()) {
    layout.of(cells).copy_(values);
    return cells;
  }
  Tensor numbers = lamella::arange(count, TensorOptions(kLong).device(values.device()));
  return cells.index_add(0, layout.of(numbers).reshape({-1}), values.reshape({-1}));
}

}  // namespace

Tensor as_strided_backward(const Tensor& grad, IntArrayRef self_sizes, IntArrayRef self_strides,
                           int64_t self_offset, IntArrayRef size, IntArrayRef stride,
                           std::optional<int64_t> offset) {
  Layouts layouts(self_sizes, self_strides, self_offset, size, stride, offset);
  if (layouts.self.empty() || layouts.view.empty()) return grad.new_zeros(self_sizes);
  Tensor cells = summed_in_cells(grad, layouts.view, layouts.cells);
  if (layouts.self.may_overlap()) {
    Tensor ones = lamella::ones({1}, grad.options()).expand(self_sizes);
    Tensor sharers = summed_in_cells(ones, layouts.self, layouts.cells);
    cells = cells.div(sharers.clamp_min(1));
  }
  return layouts.self.of(cells);
}

Tensor as_strided_forward(const Tensor& self_t, const Tensor& self_p, IntArrayRef size,
                          IntArrayRef stride, std::optional<int64_t> offset) {
  if (self_t.strides().equals(self_p.strides()) &&
      self_t.storage_offset() == self_p.storage_offset()) {
    return self_t.as_strided(size, stride, offset);
  }
  Layouts layouts(self_p.sizes(), self_p.strides(), self_p.storage_offset(), size, stride, offset);
  if (layouts.view.empty() || layouts.self.empty()) return self_t.new_zeros(size);
  Tensor cells = self_t.new_zeros({layouts.cells});
  if (layouts.self.may_overlap()) {
    Tensor numbers = lamella::arange(layouts.cells, TensorOptions(kLong).device(self_t.device()));
    cells.index_copy_(0, layouts.self.of(numbers).reshape({-1}), self_t.reshape({-1}));
  } else {
    layouts.self.of(cells).copy_(self_t);
  }
  return layouts.view.of(cells);
}

Tensor as_strided_scatter_self_backward(const Tensor& grad, IntArrayRef self_sizes,
                                        IntArrayRef self_strides, int64_t self_offset,
                                        IntArrayRef size, IntArrayRef stride,
                                        std::optional<int64_t> offset) {
  Layouts layouts(self_sizes, self_strides, self_offset, size, stride, offset);
  if (layouts.self.empty() || layouts.view.empty()) return grad;
  // Which elements of self were not overwritten?
  Tensor kept = lamella::ones({layouts.cells}, TensorOptions(kBool).device(grad.device()));
  layouts.view.of(kept).zero_();
  return grad.masked_fill(layouts.self.of(kept).logical_not(), 0);
}
Tensor as_strided_scatter_source_backward(const Tensor& grad, IntArrayRef self_sizes,
                                          IntArrayRef self_strides, int64_t self_offset,
                                          IntArrayRef size, IntArrayRef stride,
                                          std::optional<int64_t> offset) {
  Layouts layouts(self_sizes, self_strides, self_offset, size, stride, offset);
  if (layouts.self.empty() || layouts.view.empty()) return grad.new_zeros(size);
  return layouts.view.of(summed_in_cells(grad, layouts.self, layouts.cells));
}

Tensor as_strided_scatter_forward(const Tensor& self_t, const Tensor& self_p, const Tensor& src_t,
                                  IntArrayRef size, IntArrayRef stride,
                                  std::optional<int64_t> offset) {
  Layouts layouts(self_p.sizes(), self_p.strides(), self_p.storage_offset(), size, stride, offset);
  if (layouts.self.empty() || layouts.view.empty()) return self_t;
  // Inside vmap they are batched where either tangent is.
  Tensor cells = self_t.new_zeros({layouts.cells}) + src_t.new_zeros({layouts.cells});
  layouts.self.of(cells).copy_(self_t);
  layouts.view.of(cells).copy_(src_t);
  return layouts.self.of(cells);
}

// ---- Splitting ----

namespace {
// cat of the gradients, zeros where there is none: part i has size `part(i)` along `dim`.
template <class Part>
Tensor joined(TensorList grads, int64_t dim, IntArrayRef sizes, const TensorOptions& options,
              Part&& part) {
  dim = maybe_wrap_dim(dim, static_cast<int64_t>(sizes.size()), "split");
  std::vector<Tensor> parts;
  parts.reserve(grads.size());
  for (size_t i = 0; i < grads.size(); ++i) {
    if (grads[i].defined()) {
      parts.push_back(grads[i]);
      continue;
    }
    std::vector<int64_t> shape(sizes.begin(), sizes.end());
    shape[static_cast<size_t>(dim)] = part(i);
    parts.push_back(lamella::zeros(shape, options));
  }
  return lamella::cat(parts, dim);
}
}  // namespace

Tensor split_backward(TensorList grads, int64_t split_size, int64_t dim, IntArrayRef sizes,
                      const TensorOptions& options) {
  int64_t size =
      sizes[static_cast<size_t>(maybe_wrap_dim(dim, static_cast<int64_t>(sizes.size()), "split"))];
  return joined(grads, dim, sizes, options, [&](size_t i) {
    return std::min(split_size, size - static_cast<int64_t>(i) * split_size);
  });
}
Tensor split_with_sizes_backward(TensorList grads, IntArrayRef split_sizes, int64_t dim,
                                 IntArrayRef sizes, const TensorOptions& options) {
  return joined(grads, dim, sizes, options, [&](size_t i) { return split_sizes[i]; });
}
Tensor unbind_backward(TensorList grads, int64_t dim) {
  auto first =
      std::find_if(grads.begin(), grads.end(), [](const Tensor& g) { return g.defined(); });
  LAMELLA_CHECK(first != grads.end(), "unbind: expected a gradient for at least one output");
  std::vector<Tensor> parts(grads.begin(), grads.end());
  for (Tensor& part : parts) {
    if (!part.defined()) part = lamella::zeros_like(*first);
  }
  return lamella::stack(parts, dim);
}

// ---- Copies ----

Tensor zeros_for(const Tensor& grad, IntArrayRef sizes) { return grad.new_zeros({}).expand(sizes); }
Tensor copied_tangent(const Tensor& tangent, const Tensor& self) {
  return to_copy_backward(tangent, self.options()).expand(self.sizes()).clone();
}

Tensor to_copy_backward(const Tensor& grad, const TensorOptions& options) {
  bool to_real = grad.is_complex() && !is_complex(options.dtype());
  return (to_real ? lamella::real(grad) : grad).to(options);
}

Tensor repeat_backward(const Tensor& grad, IntArrayRef repeats, IntArrayRef sizes) {
  if (std::any_of(repeats.begin(), repeats.end(), [](int64_t n) { return n == 0; })) {
    return grad.new_zeros(sizes);
  }
  // Each repeated dimension becomes a pair (repetition, element), and the repetitions are summed.
  size_t lead = repeats.size() - sizes.size();
  std::vector<int64_t> shape, dims;
  for (size_t d = 0; d < repeats.size(); ++d) {
    if (repeats[d] != 1) {
      dims.push_back(static_cast<int64_t>(shape.size()));
      shape.push_back(repeats[d]);
    }
    if (d >= lead) shape.push_back(sizes[d - lead]);
  }
  Tensor paired = grad.reshape(shape);
  return dims.empty() ? paired : paired.sum(IntArrayRef(dims));
}

Tensor roll_backward(const Tensor& grad, IntArrayRef shifts, IntArrayRef dims) {
  std::vector<int64_t> back;
  for (int64_t shift : shifts) back.push_back(-shift);
  return grad.roll(back, dims);
}

Tensor constant_pad_backward(const Tensor& grad, IntArrayRef pad) {
  std::vector<int64_t> crop;
  for (int64_t n : pad) crop.push_back(-n);
  return lamella::constant_pad_nd(grad, crop, 0);
}

}  // namespace lamella
