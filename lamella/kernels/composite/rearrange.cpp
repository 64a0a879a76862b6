// Repetition and rotation made of other operators: repeat, tile, repeat_interleave, roll, rot90,
// take_along_dim, one_hot, diag.
#include "lamella/api/generated_kernels.h"
#include "lamella/core/checked_size.h"
#include "lamella/kernels/native.h"

namespace lamella::native {

Tensor repeat(const Tensor& self, IntArrayRef repeats) {
  LAMELLA_CHECK(static_cast<int64_t>(repeats.size()) >= self.dim(), "repeat: expected at least ",
                self.dim(), " entries in 'repeats' for a tensor of ", self.sizes(), ", got ",
                repeats);
  // Each dimension becomes a pair (repetition, element); the copies are an expanded view.
  size_t lead = repeats.size() - static_cast<size_t>(self.dim());
  Dims shape, paired, pairs;
  for (size_t d = 0; d < repeats.size(); ++d) {
    LAMELLA_CHECK(repeats[d] >= 0, "repeat: expected 'repeats' of at least 0, got ", repeats);
    int64_t size = d < lead ? 1 : self.sizes()[d - lead];
    shape.push_back((CheckedSize(repeats[d], "repeat") * size).value());
    if (repeats[d] != 1) {
      paired.push_back(1);
      pairs.push_back(repeats[d]);
    }
    paired.push_back(size);
    pairs.push_back(size);
  }
  Tensor result = lamella::empty(shape, self.options());
  if (result.numel() == 0) return result;
  result.view(pairs).copy_(self.reshape(paired).expand(pairs));
  return result;
}
Tensor tile(const Tensor& self, IntArrayRef dims) {
  Dims repeats(dims);
  while (repeats.ndim() < self.dim()) repeats.insert(0, 1);
  return self.repeat(repeats);
}

Tensor repeat_interleave(const Tensor& self, const Tensor& repeats, std::optional<int64_t> dim,
                         std::optional<int64_t> output_size) {
  Tensor input = dim ? self : self.flatten();
  int64_t along = maybe_wrap_dim(dim.value_or(0), input.dim(), "repeat_interleave");
  Tensor counts = repeats;
  int64_t size = input.dim() == 0 ? 1 : input.sizes()[static_cast<size_t>(along)];
  if (counts.dim() == 0 || (counts.dim() == 1 && counts.numel() == 1)) {
    counts = counts.reshape({1}).expand({size});
  } else {
    LAMELLA_CHECK(counts.dim() == 1 && counts.numel() == size,
                  "repeat_interleave: expected 'repeats' to be of shape [", size, "], got ",
                  counts.sizes());
  }
  return input.index_select(along, lamella::repeat_interleave(counts, output_size));
}
Tensor repeat_interleave(const Tensor& self, int64_t repeats, std::optional<int64_t> dim,
                         std::optional<int64_t> output_size) {
  LAMELLA_CHECK(repeats >= 0, "repeat_interleave: expected 'repeats' of at least 0, got ", repeats);
  Tensor input = dim ? self : self.flatten();
  int64_t along = maybe_wrap_dim(dim.value_or(0), input.dim(), "repeat_interleave");
  if (input.dim() == 0) return input.repeat({repeats});
  Dims shape(input.sizes());
  auto d = static_cast<size_t>(along);
  Dims spread(shape);
  spread.insert(d + 1, repeats);
  shape[d] = (CheckedSize(shape[d], "repeat_interleave") * repeats).value();
  LAMELLA_CHECK(!output_size || *output_size == shape[d],
                "repeat_interleave: expected 'output_size' to be ", shape[d], ", got ",
                output_size);
  return input.unsqueeze(along + 1).expand(spread).clone(MemoryFormat::Contiguous).reshape(shape);
}

Tensor roll(const Tensor& self, IntArrayRef shifts, IntArrayRef dims) {
  LAMELLA_CHECK(!shifts.empty(), "roll: expected 'shifts' not to be empty");
  if (dims.empty() && shifts.size() == 1) {
    return self.reshape({-1}).roll(shifts, IntArrayRef(int64_t{0})).reshape(self.sizes());
  }
  LAMELLA_CHECK(shifts.size() == dims.size(), "roll: expected as many 'shifts' as 'dims', got ",
                shifts, " for ", dims);
  LAMELLA_CHECK_INDEX(self.dim() > 0 || dims.empty(), "roll: expected 'dims' to be empty for a ",
                      "tensor with 0 dimensions, got ", dims);
  if (self.numel() == 0) return self.clone(MemoryFormat::Preserve);
  Tensor result = self;
  for (size_t i = 0; i < dims.size(); ++i) {
    int64_t dim = maybe_wrap_dim(dims[i], self.dim(), "roll");
    int64_t size = self.sizes()[static_cast<size_t>(dim)];
    int64_t shift = shifts[i] % size;
    int64_t start = shift > 0 ? size - shift : -shift;
    result =
        lamella::cat({result.narrow(dim, start, size - start), result.narrow(dim, 0, start)}, dim);
  }
  return result;
}
Tensor rot90(const Tensor& self, int64_t k, IntArrayRef dims) {
  LAMELLA_CHECK(dims.size() == 2, "rot90: expected two 'dims', got ", dims);
  LAMELLA_CHECK(self.dim() >= 2, "rot90: expected 'self' to have at least 2 dimensions, got ",
                self.sizes());
  DimSet(static_cast<const char*>("rot90"), "dims", dims, self.dim());
  switch ((k % 4 + 4) % 4) {
    case 1:
      return self.flip({dims[1]}).transpose_(dims[0], dims[1]);
    case 2:
      return self.flip(dims);
    case 3:
      return self.flip({dims[0]}).transpose_(dims[0], dims[1]);
    default:
      return self.clone(MemoryFormat::Contiguous);
  }
}
Tensor fliplr(const Tensor& self) {
  LAMELLA_CHECK(self.dim() >= 2, "fliplr: expected 'self' to have at least 2 dimensions, got ",
                self.sizes());
  return self.flip({1});
}
Tensor flipud(const Tensor& self) {
  LAMELLA_CHECK(self.dim() >= 1,
                "flipud: expected 'self' to have at least 1 dimension, got a tensor with 0");
  return self.flip({0});
}

namespace {
std::pair<Tensor, Tensor> along_dim(const Tensor& self, const Tensor& indices, int64_t& dim) {
  LAMELLA_CHECK(self.dim() == indices.dim(), "take_along_dim: expected 'indices' to have ",
                self.dim(), " dimensions as 'self' does, got ", indices.sizes());
  LAMELLA_CHECK(indices.scalar_type() == kLong,
                "take_along_dim: expected 'indices' to be int64, got ", indices.scalar_type());
  dim = maybe_wrap_dim(dim, self.dim(), "take_along_dim");
  Dims self_shape(self.sizes()), index_shape(indices.sizes());
  auto d = static_cast<size_t>(dim);
  if (self.dim() > 0) self_shape[d] = index_shape[d] = 1;
  Dims shape = broadcast_shapes(self_shape, index_shape, "take_along_dim", "indices");
  self_shape = index_shape = shape;
  if (self.dim() > 0) {
    self_shape[d] = self.sizes()[d];
    index_shape[d] = indices.sizes()[d];
  }
  // Unlike gather's indices, negative positions count from the end.
  int64_t size = self.dim() == 0 ? 1 : self.sizes()[d];
  Tensor at = lamella::where(indices.lt(0), indices.add(size), indices);
  return {self.expand(self_shape), at.expand(index_shape)};
}
}  // namespace

Tensor take_along_dim(const Tensor& self, const Tensor& indices, std::optional<int64_t> dim) {
  if (!dim) return self.reshape({-1}).gather(0, indices.reshape({-1}));
  int64_t d = *dim;
  auto [source, where] = along_dim(self, indices, d);
  return source.gather(d, where);
}
Tensor& take_along_dim_out(const Tensor& self, const Tensor& indices, std::optional<int64_t> dim,
                           Tensor& out) {
  if (!dim) return lamella::gather_out(out, self.reshape({-1}), 0, indices.reshape({-1}));
  int64_t d = *dim;
  auto [source, where] = along_dim(self, indices, d);
  return lamella::gather_out(out, source, d, where);
}

Tensor one_hot(const Tensor& self, int64_t num_classes) {
  LAMELLA_CHECK(self.scalar_type() == kLong, "one_hot: expected 'self' to be int64, got ",
                self.scalar_type());
  if (self.numel() == 0) {
    LAMELLA_CHECK(num_classes > 0, "one_hot: expected 'num_classes' for a tensor without ",
                  "elements, got ", num_classes);
  } else if (!self.is_meta()) {
    LAMELLA_CHECK(self.min().item().toLong() >= 0, "one_hot: expected 'self' not to be negative");
    int64_t most = self.max().item().toLong();
    if (num_classes == -1) num_classes = (CheckedSize(most, "one_hot") + 1).value();
    LAMELLA_CHECK(num_classes >= 1, "one_hot: expected 'num_classes' of at least 1, got ",
                  num_classes);
    LAMELLA_CHECK(most < num_classes, "one_hot: expected 'self' to be below ", num_classes,
                  ", got ", most);
  }
  LAMELLA_CHECK(num_classes >= 1, "one_hot: expected 'num_classes' of at least 1 on meta, got ",
                num_classes);
  Dims shape(self.sizes());
  shape.push_back(num_classes);
  Tensor result = lamella::zeros(shape, self.options());
  result.scatter_(-1, self.unsqueeze(-1), 1);
  return result;
}

Tensor diag(const Tensor& self, int64_t diagonal) {
  LAMELLA_CHECK(self.dim() == 1 || self.dim() == 2,
                "diag: expected 'self' to have 1 or 2 dimensions, got ", self.sizes());
  if (self.dim() == 2) return self.diagonal(diagonal).clone();
  return lamella::diag_embed(self, diagonal);
}
Tensor diagflat(const Tensor& self, int64_t offset) {
  return lamella::diag_embed(self.reshape({-1}), offset);
}
Tensor& diag_out(const Tensor& self, int64_t diagonal, Tensor& out) {
  Tensor result = lamella::diag(self, diagonal);
  ::lamella::detail::assign_out("diag", "out", out, result);
  return out;
}

}  // namespace lamella::native
