// Combinations of tensors: block_diag, cartesian_prod, combinations.
#include "lamella/core/checked_size.h"
#include "lamella/kernels/native.h"

namespace lamella::native {

Tensor block_diag(TensorList tensors) {
  if (tensors.empty()) return lamella::empty({1, 0}, TensorOptions());
  std::vector<Tensor> blocks;
  CheckedSize total(0, "block_diag");
  ScalarType dtype = tensors[0].scalar_type();
  for (const Tensor& tensor : tensors) {
    LAMELLA_CHECK(tensor.dim() <= 2, "block_diag: expected 'tensors' to have at most 2 ",
                  "dimensions, got ", tensor.sizes(), " at position ", blocks.size());
    blocks.push_back(lamella::atleast_2d(tensor));
    total += blocks.back().size(1);
    dtype = lamella::promote_types(dtype, tensor.scalar_type());
  }
  // Each block is padded with zeros on both sides to a band of whole rows.
  int64_t before = 0, columns = total.value();
  for (Tensor& block : blocks) {
    int64_t width = block.size(1);
    block = lamella::constant_pad_nd(block.to(dtype), {before, columns - before - width}, 0);
    before += width;
  }
  return lamella::cat(blocks, 0);
}

Tensor cartesian_prod(TensorList tensors) {
  LAMELLA_CHECK(!tensors.empty(), "cartesian_prod: expected 'tensors' not to be empty");
  for (const Tensor& tensor : tensors) {
    LAMELLA_CHECK(tensor.dim() == 1, "cartesian_prod: expected 'tensors' to have 1 dimension, got ",
                  tensor.sizes());
  }
  if (tensors.size() == 1) return tensors[0];
  std::vector<Tensor> grid = lamella::meshgrid(tensors, "ij");
  for (Tensor& axis : grid) axis = axis.flatten();
  return lamella::stack(grid, 1);
}

Tensor combinations(const Tensor& self, int64_t r, bool with_replacement) {
  LAMELLA_CHECK(self.dim() == 1, "combinations: expected 'self' to have 1 dimension, got ",
                self.sizes());
  LAMELLA_CHECK(r >= 0, "combinations: expected 'r' of at least 0, got ", r);
  if (r == 0) return self.new_empty({0});
  LAMELLA_CHECK(r <= static_cast<int64_t>(kMaxDims), "combinations: expected 'r' of at most ",
                kMaxDims, ", got ", r);
  int64_t n = self.numel();
  // All r-tuples of positions, of which the ascending (or non-descending) ones are kept.
  std::vector<Tensor> axes(static_cast<size_t>(r),
                           lamella::arange(n, TensorOptions(kLong).device(self.device())));
  std::vector<Tensor> grid = lamella::meshgrid(axes, "ij");
  Tensor keep = lamella::ones_like(grid[0], TensorOptions(kBool));
  for (size_t i = 1; i < grid.size(); ++i) {
    Tensor ordered = with_replacement ? grid[i - 1].le(grid[i]) : grid[i - 1].lt(grid[i]);
    keep = keep.logical_and(ordered);
  }
  std::vector<Tensor> columns;
  for (const Tensor& axis : grid) columns.push_back(self.index({axis.masked_select(keep)}));
  return lamella::stack(columns, 1);
}

}  // namespace lamella::native
