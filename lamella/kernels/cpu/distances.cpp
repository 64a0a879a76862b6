// Distances between all rows of two stacks of matrices, and their gradient.
#include "lamella/kernels/distances.h"

#include "lamella/kernels/cpu/simd/distances.h"
#include "lamella/kernels/cpu/simd/gemm.h"
#include "lamella/kernels/parallel.h"

namespace lamella::native {

void check_distances(const Tensor& x1, const Tensor& x2, double p,
                     std::optional<int64_t> compute_mode) {
  LAMELLA_CHECK(x1.dim() >= 2 && x2.dim() >= 2,
                "cdist: expected 'x1' and 'x2' to have at least 2 dimensions, got ", x1.sizes(),
                " and ", x2.sizes());
  LAMELLA_CHECK(x1.size(-1) == x2.size(-1), "cdist: expected 'x2' to have ", x1.size(-1),
                " columns as 'x1' does, got ", x2.sizes());
  LAMELLA_CHECK(p >= 0, "cdist: expected 'p' of at least 0, got ", p);
  int64_t mode = compute_mode.value_or(0);
  LAMELLA_CHECK(mode >= 0 && mode <= 2, "cdist: expected 'compute_mode' from 0 to 2, got ", mode);
}

namespace {
// Distances by a matrix product, as |x|^2 + |y|^2 - 2 x y: far faster for many rows, but distances
// that are small beside the norms lose digits.
Tensor distances_by_product(const Tensor& x1, const Tensor& x2) {
  auto squares = [](const Tensor& x) { return x.mul(x).sum(IntArrayRef(int64_t{-1}), true); };
  Tensor norms = squares(x1).add(squares(x2).transpose(-1, -2));
  Tensor other = x2.transpose(-1, -2);
  Tensor square;
  if (x1.dim() == 2 && x2.dim() == 2) {
    square = lamella::addmm(norms, x1, other, 1, -2);
  } else {
    square = norms.sub(lamella::matmul(x1, other), 2);
  }
  Tensor none = square.le(0);  // rounding makes the square of equal rows 0 or negative
  return square.sqrt_().masked_fill_(none, 0);
}

IntArrayRef stack_of(const Tensor& x) { return x.sizes().slice(0, x.sizes().size() - 2); }

// The operands for all matrices of the stack, and a loop over them.
struct Stack {
  Dims shape;  // without the matrices
  Tensor x1, x2;
  int64_t count, rows, others, columns;

  Stack(const Tensor& first, const Tensor& second)
      : shape(broadcast_shapes(stack_of(first), stack_of(second), "cdist", "x2")),
        rows(first.size(-2)),
        others(second.size(-2)),
        columns(first.size(-1)) {
    if (first.is_meta()) return;
    x1 = spread(first);
    x2 = spread(second);
    count = product(shape.ref());
  }
  Dims with(int64_t m, int64_t n) const {
    Dims whole(shape);
    whole.push_back(m);
    whole.push_back(n);
    return whole;
  }
  Tensor spread(const Tensor& x) const {
    return x.expand(with(x.size(-2), x.size(-1)).ref()).contiguous();
  }

  void run(double p, distances_fn kernel, const Tensor& out, const Tensor& grad,
           const Tensor& distances) const {
    const GemmKernels& packer = *gemm_kernels_on(kCPU, x1.scalar_type());
    const int64_t size = packer.number_bytes;
    auto at = [&](const Tensor& t, int64_t elements) -> void* {
      return t.defined() ? static_cast<char*>(t.data_ptr()) + elements * size : nullptr;
    };
    int64_t work = others * columns + 1, grain = kGrainSize / work + 1;
    int64_t width = (others + packer.lanes - 1) / packer.lanes * packer.lanes;
    int64_t out_columns = out.size(-1);
    parallel_for(0, count, kGrainSize / (rows * work) + 1, [&](int64_t begin, int64_t end) {
      Tensor panels = new_tensor({columns, width}, x1.scalar_type(), kCPU);
      for (int64_t i = begin; i < end; ++i) {
        packer.pack({static_cast<const char*>(at(x2, i * others * columns)), size, columns * size,
                     static_cast<char*>(panels.data_ptr()), others, columns, 0});
        Distances problem{x1.scalar_type(),
                          p,
                          columns,
                          others,
                          packer.columns,
                          at(x1, i * rows * columns),
                          panels.data_ptr(),
                          at(out, i * rows * out_columns),
                          at(grad, i * rows * others),
                          at(distances, i * rows * others)};
        parallel_for(0, rows, grain,
                     [&](int64_t first, int64_t last) { kernel(problem, first, last); });
      }
    });
  }
};
}  // namespace

Tensor _cdist_forward(const Tensor& x1, const Tensor& x2, double p,
                      std::optional<int64_t> compute_mode) {
  check_distances(x1, x2, p, compute_mode);
  ScalarType dtype = x1.scalar_type();
  LAMELLA_CHECK(dtype == kFloat || dtype == kDouble,
                "cdist: expected 'x1' to be float32 or float64, got ", dtype);
  LAMELLA_CHECK(x2.scalar_type() == dtype, "cdist: expected 'x2' to be ", dtype, ", got ",
                x2.scalar_type());
  // 0: by a product if there are many rows, 1: by a product, 2: never.
  constexpr int64_t kMany = 25;
  int64_t mode = compute_mode.value_or(0);
  bool is_large = x1.size(-2) > kMany || x2.size(-2) > kMany;
  bool by_product = p == 2 && (mode == 1 || (mode == 0 && is_large));
  Stack stack(x1, x2);
  if (by_product && !x1.is_meta()) return distances_by_product(x1, x2);
  Tensor out = new_tensor(stack.with(stack.rows, stack.others).ref(), dtype, x1.device());
  if (x1.is_meta() || out.numel() == 0) return out;
  if (stack.columns == 0) return out.zero_();
  stack.run(p, distances_on.get(kCPU), out, Tensor(), Tensor());
  return out;
}

Tensor _cdist_backward(const Tensor& grad, const Tensor& x1, const Tensor& x2, double p,
                       const Tensor& cdist) {
  const char* op = "_cdist_backward";
  check_distances(x1, x2, p, std::nullopt);
  ScalarType dtype = x1.scalar_type();
  LAMELLA_CHECK(dtype == kFloat || dtype == kDouble, op,
                ": expected 'x1' to be float32 or float64, got ", dtype);
  Stack stack(x1, x2);
  Dims shape = stack.with(stack.rows, stack.others);
  LAMELLA_CHECK(x2.scalar_type() == dtype, op, ": expected 'x2' to be ", dtype, ", got ",
                x2.scalar_type());
  for (auto [name, t] : {std::pair("grad", &grad), std::pair("cdist", &cdist)}) {
    LAMELLA_CHECK(t->scalar_type() == dtype && t->sizes().equals(shape.ref()), op, ": expected '",
                  name, "' to be ", dtype, " of shape ", shape.ref(), ", got ", t->scalar_type(),
                  " ", t->sizes());
  }
  if (x1.is_meta()) return new_tensor(x1.sizes(), dtype, kMeta);
  Tensor out = new_tensor(stack.with(stack.rows, stack.columns).ref(), dtype, kCPU);
  if (out.numel() == 0 || stack.others == 0 || p == 0) {
    out.zero_();
  } else {
    stack.run(p, distances_backward_on.get(kCPU), out, grad.contiguous(), cdist.contiguous());
  }
  // Matrices that were broadcast over the stack get the sum of the gradients of their copies.
  Dims spread;
  int64_t extra = out.dim() - x1.dim();
  for (int64_t d = 0; d < out.dim(); ++d) {
    if (d < extra || x1.size(d - extra) != out.size(d)) spread.push_back(d);
  }
  return spread.empty() ? out : out.sum(spread.ref(), true).view(x1.sizes());
}

}  // namespace lamella::native
