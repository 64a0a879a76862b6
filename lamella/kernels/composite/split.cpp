// Splitting a tensor into views along a dimension, and joining small lists of tensors by shape.
#include "lamella/core/checked_size.h"
#include "lamella/kernels/native.h"

namespace lamella::native {

namespace {
// The requested number of parts; throws if a vector could not hold as many.
size_t checked_count(const char* op, int64_t count) {
  if (static_cast<size_t>(count) > std::vector<Tensor>().max_size()) {
    throw OutOfMemoryError(str(op, ": could not allocate ", count, " tensors"));
  }
  return static_cast<size_t>(count);
}
std::vector<Tensor> split_runs(const Tensor& self, IntArrayRef lengths, int64_t dim) {
  std::vector<Tensor> parts;
  parts.reserve(lengths.size());
  Dims sizes(self.sizes());
  auto d = static_cast<size_t>(dim);
  int64_t offset = self.storage_offset();
  for (int64_t length : lengths) {
    sizes[d] = length;
    parts.push_back(view_of(self, sizes, self.strides(), offset));
    offset += length * self.strides()[d];
  }
  return parts;
}
}  // namespace

std::vector<Tensor> split(const Tensor& self, int64_t split_size, int64_t dim) {
  LAMELLA_CHECK(self.dim() > 0,
                "split: expected 'self' to have at least 1 dimension, got a tensor with 0");
  LAMELLA_CHECK(split_size >= 0, "split: expected a 'split_size' of at least 0, got ", split_size);
  dim = maybe_wrap_dim(dim, self.dim(), "split");
  int64_t size = self.sizes()[static_cast<size_t>(dim)];
  LAMELLA_CHECK(split_size > 0 || size == 0,
                "split: expected a 'split_size' of 0 only for a dimension of size 0, got ", size);
  if (size == 0) return split_runs(self, IntArrayRef(int64_t{0}), dim);
  int64_t count = (size - 1) / split_size + 1;
  std::vector<int64_t> lengths(checked_count("split", count), split_size);
  lengths.back() = size - (count - 1) * split_size;
  return split_runs(self, lengths, dim);
}
std::vector<Tensor> unsafe_split(const Tensor& self, int64_t split_size, int64_t dim) {
  return split(self, split_size, dim);
}
std::vector<Tensor> split_with_sizes(const Tensor& self, IntArrayRef split_sizes, int64_t dim) {
  LAMELLA_CHECK(self.dim() > 0,
                "split_with_sizes: expected 'self' to have at least 1 dimension, got a tensor "
                "with 0");
  dim = maybe_wrap_dim(dim, self.dim(), "split_with_sizes");
  CheckedSize sum(0, "split_with_sizes");
  for (int64_t length : split_sizes) {
    LAMELLA_CHECK(length >= 0, "split_with_sizes: expected sizes of at least 0, got ", split_sizes);
    sum += length;
  }
  int64_t size = self.sizes()[static_cast<size_t>(dim)];
  LAMELLA_CHECK(sum.value() == size, "split_with_sizes: expected 'split_sizes' to sum to ", size,
                " for dimension ", dim, " of ", self.sizes(), ", got ", split_sizes);
  return split_runs(self, split_sizes, dim);
}
std::vector<Tensor> split(const Tensor& self, IntArrayRef split_size, int64_t dim) {
  return self.split_with_sizes(split_size, dim);
}

std::vector<Tensor> chunk(const Tensor& self, int64_t chunks, int64_t dim) {
  LAMELLA_CHECK(self.dim() > 0,
                "chunk: expected 'self' to have at least 1 dimension, got a tensor with 0");
  LAMELLA_CHECK(chunks > 0, "chunk: expected 'chunks' of at least 1, got ", chunks);
  dim = maybe_wrap_dim(dim, self.dim(), "chunk");
  int64_t size = self.sizes()[static_cast<size_t>(dim)];
  int64_t length = size / chunks + (size % chunks != 0);
  // A dimension of size 0 still gives the requested number of chunks.
  if (length == 0) {
    return self.split_with_sizes(std::vector<int64_t>(checked_count("chunk", chunks), 0), dim);
  }
  return self.split(length, dim);
}
std::vector<Tensor> unsafe_chunk(const Tensor& self, int64_t chunks, int64_t dim) {
  return chunk(self, chunks, dim);
}

std::vector<Tensor> tensor_split(const Tensor& self, int64_t sections, int64_t dim) {
  LAMELLA_CHECK(self.dim() > 0,
                "tensor_split: expected 'self' to have at least 1 dimension, got a tensor with 0");
  LAMELLA_CHECK(sections > 0, "tensor_split: expected 'sections' of at least 1, got ", sections);
  dim = maybe_wrap_dim(dim, self.dim(), "tensor_split");
  int64_t size = self.sizes()[static_cast<size_t>(dim)];
  std::vector<int64_t> lengths(checked_count("tensor_split", sections), size / sections);
  for (int64_t i = 0; i < size % sections; ++i) ++lengths[static_cast<size_t>(i)];
  return self.split_with_sizes(lengths, dim);
}
std::vector<Tensor> tensor_split(const Tensor& self, IntArrayRef indices, int64_t dim) {
  LAMELLA_CHECK(self.dim() > 0,
                "tensor_split: expected 'self' to have at least 1 dimension, got a tensor with 0");
  dim = maybe_wrap_dim(dim, self.dim(), "tensor_split");
  std::vector<Tensor> parts;
  int64_t start = 0;
  for (int64_t end : indices) {
    parts.push_back(self.slice(dim, start, end));
    start = end;
  }
  parts.push_back(self.slice(dim, start, std::nullopt));
  return parts;
}
std::vector<Tensor> tensor_split(const Tensor& self, const Tensor& tensor_indices_or_sections,
                                 int64_t dim) {
  const Tensor& which = tensor_indices_or_sections;
  LAMELLA_CHECK(which.is_cpu() && which.scalar_type() == kLong && which.dim() <= 1,
                "tensor_split: expected 'tensor_indices_or_sections' to be int64 of at most one ",
                "dimension on the CPU, got ", which.scalar_type(), " ", which.sizes());
  if (which.dim() == 0) return self.tensor_split(which.item().toLong(), dim);
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < which.numel(); ++i) indices.push_back(which.select(0, i).item().toLong());
  return self.tensor_split(indices, dim);
}

std::vector<Tensor> unbind(const Tensor& self, int64_t dim) {
  LAMELLA_CHECK_INDEX(self.dim() > 0,
                      "unbind: expected 'self' to have at least 1 dimension, got a tensor with 0");
  dim = maybe_wrap_dim(dim, self.dim(), "unbind");
  auto d = static_cast<size_t>(dim);
  Dims sizes(self.sizes()), strides(self.strides());
  int64_t count = sizes[d], stride = strides[d];
  sizes.erase(d);
  strides.erase(d);
  std::vector<Tensor> parts;
  parts.reserve(checked_count("unbind", count));
  for (int64_t i = 0; i < count; ++i) {
    parts.push_back(view_of(self, sizes, strides, self.storage_offset() + i * stride));
  }
  return parts;
}

namespace {
int64_t split_dim(const Tensor& self, const char* op, int64_t least, int64_t dim) {
  LAMELLA_CHECK(self.dim() >= least, op, ": expected 'self' to have at least ", least,
                " dimensions, got ", self.sizes());
  return dim;
}
void check_divides(const Tensor& self, const char* op, int64_t sections, int64_t dim) {
  int64_t size = self.sizes()[static_cast<size_t>(dim)];
  LAMELLA_CHECK(sections > 0 && size % sections == 0, op, ": expected 'sections' to divide ", size,
                ", the size of dimension ", dim, ", got ", sections);
}
}  // namespace

// Defines an operator along dimension `dim_` of tensors of at least `least` dimensions.
#define LAMELLA_SPLIT_ALONG(name, least, dim_)                              \
  std::vector<Tensor> name(const Tensor& self, int64_t sections) {          \
    int64_t dim = split_dim(self, #name, least, dim_);                      \
    check_divides(self, #name, sections, dim);                              \
    return self.tensor_split(sections, dim);                                \
  }                                                                         \
  std::vector<Tensor> name(const Tensor& self, IntArrayRef indices) {       \
    return self.tensor_split(indices, split_dim(self, #name, least, dim_)); \
  }
LAMELLA_SPLIT_ALONG(hsplit, 1, self.dim() == 1 ? 0 : 1)
LAMELLA_SPLIT_ALONG(vsplit, 2, 0)
LAMELLA_SPLIT_ALONG(dsplit, 3, 2)

std::vector<Tensor> broadcast_tensors(TensorList tensors) {
  Dims shape;
  for (const Tensor& tensor : tensors) {
    shape = broadcast_shapes(shape, tensor.sizes(), "broadcast_tensors", "tensors");
  }
  std::vector<Tensor> out;
  out.reserve(tensors.size());
  for (const Tensor& tensor : tensors) {
    out.push_back(tensor.sizes().equals(shape) ? tensor : tensor.expand(shape));
  }
  return out;
}

std::vector<Tensor> meshgrid(TensorList tensors) { return meshgrid(tensors, "ij"); }
std::vector<Tensor> meshgrid(TensorList tensors, std::string_view indexing) {
  LAMELLA_CHECK(!tensors.empty(), "meshgrid: expected 'tensors' not to be empty");
  LAMELLA_CHECK(indexing == "ij" || indexing == "xy",
                "meshgrid: expected 'indexing' to be 'ij' or 'xy', got '", indexing, "'");
  bool swap = indexing == "xy" && tensors.size() >= 2;
  Dims shape;
  for (const Tensor& tensor : tensors) {
    LAMELLA_CHECK(tensor.dim() <= 1, "meshgrid: expected 'tensors' of at most one dimension, got ",
                  tensor.sizes());
    LAMELLA_CHECK(tensor.scalar_type() == tensors[0].scalar_type(),
                  "meshgrid: expected 'tensors' of one dtype, got ", tensors[0].scalar_type(),
                  " and ", tensor.scalar_type());
    shape.push_back(tensor.numel());
  }
  if (swap) std::swap(shape[0], shape[1]);
  std::vector<Tensor> grids;
  for (size_t i = 0; i < tensors.size(); ++i) {
    size_t at = swap && i < 2 ? 1 - i : i;
    Dims one(tensors.size(), 1);
    one[at] = tensors[i].numel();
    Tensor grid = tensors[i].reshape(one).expand(shape);
    grids.push_back(grid);
  }
  return grids;
}

}  // namespace lamella::native
