// Views: new sizes, strides and offsets over the same storage, on every device.
#include "lamella/core/checked_size.h"
#include "lamella/core/detach_hook.h"
#include "lamella/kernels/native.h"

namespace lamella::native {

namespace {
constexpr int64_t kMax = INT64_MAX;

// The view of `self` at `index` of dimension `dim`, without that dimension.
Tensor drop_dim(const Tensor& self, int64_t dim, int64_t index) {
  auto d = static_cast<size_t>(dim);
  int64_t offset = self.storage_offset() + index * self.strides()[d];
  // Copies elements one by one, as in slice().
  Dims sizes, strides;
  for (size_t i = 0; i < self.sizes().size(); ++i) {
    if (i == d) continue;
    sizes.push_back(self.sizes()[i]);
    strides.push_back(self.strides()[i]);
  }
  return view_of(self, sizes, strides, offset);
}

struct Shape {
  Dims sizes, strides;
};

// The stride of every step-th element of a dimension that keeps `size` elements. The stride of a
// single element is never used, so any value that fits is valid.
int64_t stepped(int64_t stride, int64_t step, int64_t size) {
  int64_t result = 0;
  bool over = __builtin_mul_overflow(stride, step, &result);
  return over && size <= 1 ? stride : result;
}

template <class Drop>
Shape squeezed(const Tensor& self, Drop&& drop) {
  Shape shape;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (self.sizes()[d] == 1 && drop(d)) continue;
    shape.sizes.push_back(self.sizes()[d]);
    shape.strides.push_back(self.strides()[d]);
  }
  return shape;
}
Shape unsqueezed(const Tensor& self, int64_t dim) {
  auto d = static_cast<size_t>(maybe_wrap_dim(dim, self.dim() + 1, "unsqueeze"));
  Shape shape{Dims(self.sizes()), Dims(self.strides())};
  int64_t stride = d < shape.sizes.size() ? shape.sizes[d] * shape.strides[d] : 1;
  shape.sizes.insert(d, 1);
  shape.strides.insert(d, stride);
  return shape;
}
Shape transposed(const Tensor& self, int64_t dim0, int64_t dim1, const char* op) {
  auto a = static_cast<size_t>(maybe_wrap_dim(dim0, self.dim(), op));
  auto b = static_cast<size_t>(maybe_wrap_dim(dim1, self.dim(), op));
  Shape shape{Dims(self.sizes()), Dims(self.strides())};
  if (a != b) {
    std::swap(shape.sizes[a], shape.sizes[b]);
    std::swap(shape.strides[a], shape.strides[b]);
  }
  return shape;
}
Tensor view_as_shape(const Tensor& self, const Shape& shape) {
  return view_of(self, shape.sizes, shape.strides, self.storage_offset());
}
// The strides of `self` viewed in `shape`; false if that needs a copy. For a contiguous tensor they
// follow from the shape, unless its last dimension has size 1, whose stride may be anything.
bool view_strides(const Tensor& self, const Dims& shape, Dims& strides) {
  IntArrayRef own = self.strides();
  if (self.is_contiguous() && self.numel() != 0 && (own.empty() || own.back() == 1)) {
    contiguous_strides(shape, strides.grow_uninitialised(shape.size()));
    return true;
  }
  return compute_view_strides(self.sizes(), own, shape, strides);
}
// Whether a shape has these many elements and no -1. An overflow is left to infer_size().
bool holds(IntArrayRef size, int64_t numel) {
  int64_t product = 1;
  for (int64_t one : size) {
    if (one < 0 || __builtin_mul_overflow(product, one, &product)) return false;
  }
  return product == numel;
}
Tensor& become_shape(Tensor& self, const Shape& shape) {
  set_sizes_and_strides(TensorImpl::of(self), shape.sizes, shape.strides, self.storage_offset());
  return self;
}
void check_matrix_or_less(const Tensor& self, const char* op) {
  LAMELLA_CHECK(self.dim() <= 2, op, ": expected 'self' to have at most 2 dimensions, got ",
                self.sizes());
}
}  // namespace

Tensor alias(const Tensor& self) {
  return view_of(self, self.sizes(), self.strides(), self.storage_offset());
}
Tensor detach(const Tensor& self) { return Tensor(make_detached(self)); }
Tensor& detach_(Tensor& self) {
  if (detach_history != nullptr) detach_history(self.impl());
  return self;
}
// Both return new tensors, to which autograd can attach a history.
Tensor lift(const Tensor& self) { return alias(self); }
Tensor lift_fresh(const Tensor& self) { return alias(self); }

Tensor view(const Tensor& self, IntArrayRef size) {
  if (self.is_contiguous() && self.numel() != 0 && holds(size, self.numel()) &&
      (self.dim() == 0 || self.strides().back() == 1)) {
    Dims strides;
    contiguous_strides(size, strides.grow_uninitialised(size.size()));
    return view_of(self, size, strides, self.storage_offset());
  }
  Dims shape = infer_size("view", size, self.numel());
  Dims strides;
  LAMELLA_CHECK(view_strides(self, shape, strides), "view: expected a 'size' that strides ",
                self.strides(), " of shape ", self.sizes(), " allow, got ", size,
                "; reshape copies where it must");
  return view_of(self, shape, strides, self.storage_offset());
}
Tensor _unsafe_view(const Tensor& self, IntArrayRef size) { return view(self, size); }
Tensor _reshape_alias(const Tensor& self, IntArrayRef size, IntArrayRef stride) {
  LAMELLA_CHECK(size.size() == stride.size(),
                "_reshape_alias: expected as many 'stride' as 'size', got ", stride, " for ", size);
  return Tensor(make_checked_view(self, size, stride, self.storage_offset()));
}

Tensor reshape(const Tensor& self, IntArrayRef shape) {
  if (self.is_contiguous() && holds(shape, self.numel())) return self.view(shape);
  Dims sizes = infer_size("reshape", shape, self.numel());
  Dims strides;
  if (self.is_contiguous() || compute_view_strides(self.sizes(), self.strides(), sizes, strides)) {
    return self.view(sizes);
  }
  return lamella::_unsafe_view(self.clone(MemoryFormat::Contiguous), sizes);
}
Tensor reshape_as(const Tensor& self, const Tensor& other) { return self.reshape(other.sizes()); }
Tensor view_as(const Tensor& self, const Tensor& other) { return self.view(other.sizes()); }

Tensor as_strided(const Tensor& self, IntArrayRef size, IntArrayRef stride,
                  std::optional<int64_t> storage_offset) {
  return Tensor(
      make_checked_view(self, size, stride, storage_offset.value_or(self.storage_offset())));
}
const Tensor& as_strided_(const Tensor& self, IntArrayRef size, IntArrayRef stride,
                          std::optional<int64_t> storage_offset) {
  int64_t offset = storage_offset.value_or(self.storage_offset());
  make_checked_view(self, size, stride, offset);  // called only for its checks
  set_sizes_and_strides(TensorImpl::of(self), size, stride, offset);
  return self;
}

Tensor expand(const Tensor& self, IntArrayRef size, bool implicit) {
  LAMELLA_CHECK(static_cast<int64_t>(size.size()) >= self.dim(), "expand: expected at least ",
                self.dim(), " entries in 'size' for a tensor of ", self.sizes(), ", got ", size);
  Dims sizes(size);
  Dims strides(size.size(), 0);
  size_t lead = size.size() - static_cast<size_t>(self.dim());
  for (size_t i = 0; i < size.size(); ++i) {
    if (i < lead) {
      LAMELLA_CHECK(size[i] >= 0, "expand: expected -1 in 'size' only for dimensions of 'self', ",
                    "got ", size, " for a tensor of ", self.sizes());
      continue;
    }
    int64_t have = self.sizes()[i - lead];
    if (size[i] == -1) sizes[i] = have;
    LAMELLA_CHECK(sizes[i] >= 0, "expand: expected sizes of at least -1, got ", size);
    LAMELLA_CHECK(sizes[i] == have || have == 1, "expand: expected 'self' to be expandable to ",
                  size, ", got ", self.sizes());
    strides[i] = sizes[i] == have ? self.strides()[i - lead] : 0;
  }
  checked_numel(sizes, "expand");
  // New leading dimensions of a contiguous tensor keep the strides of one, where size 1 allows it.
  for (size_t i = self.dim() == 0 ? 0 : lead; i-- > 0;) {
    if (sizes[i] == 1) strides[i] = i + 1 < sizes.size() ? sizes[i + 1] * strides[i + 1] : 1;
  }
  return view_of(self, sizes, strides, self.storage_offset());
}
Tensor expand_as(const Tensor& self, const Tensor& other) { return self.expand(other.sizes()); }
Tensor broadcast_to(const Tensor& self, IntArrayRef size) { return self.expand(size); }

Tensor sum_to_size(const Tensor& self, IntArrayRef size) {
  LAMELLA_CHECK(is_expandable(size, self.sizes()),
                "sum_to_size: expected a 'size' that is expandable to ", self.sizes(), ", got ",
                size);
  if (self.sizes().equals(size)) return self;
  size_t lead = self.sizes().size() - size.size();
  Dims dims;
  for (size_t d = 0; d < self.sizes().size(); ++d) {
    if (d < lead || (size[d - lead] == 1 && self.sizes()[d] != 1)) {
      dims.push_back(static_cast<int64_t>(d));
    }
  }
  Tensor sum = dims.empty() ? self : self.sum(dims.ref(), true);
  return lead == 0 ? sum : sum.reshape(size);
}

Tensor permute(const Tensor& self, IntArrayRef dims) {
  LAMELLA_CHECK(static_cast<int64_t>(dims.size()) == self.dim(), "permute: expected ", self.dim(),
                " entries in 'dims' for a tensor of ", self.sizes(), ", got ", dims);
  DimSet(static_cast<const char*>("permute"), "dims", dims, self.dim());
  Dims sizes, strides;
  for (int64_t d : dims) {
    auto from = static_cast<size_t>(maybe_wrap_dim(d, self.dim(), "permute"));
    sizes.push_back(self.sizes()[from]);
    strides.push_back(self.strides()[from]);
  }
  return view_of(self, sizes, strides, self.storage_offset());
}

Tensor transpose(const Tensor& self, int64_t dim0, int64_t dim1) {
  return view_as_shape(self, transposed(self, dim0, dim1, "transpose"));
}
Tensor& transpose_(Tensor& self, int64_t dim0, int64_t dim1) {
  return become_shape(self, transposed(self, dim0, dim1, "transpose_"));
}
Tensor swapaxes(const Tensor& self, int64_t axis0, int64_t axis1) {
  return self.transpose(axis0, axis1);
}
Tensor swapdims(const Tensor& self, int64_t dim0, int64_t dim1) {
  return self.transpose(dim0, dim1);
}
Tensor t(const Tensor& self) {
  check_matrix_or_less(self, "t");
  return self.dim() < 2 ? alias(self) : transpose(self, 0, 1);
}
Tensor& t_(Tensor& self) {
  check_matrix_or_less(self, "t_");
  return self.dim() < 2 ? self : transpose_(self, 0, 1);
}
Tensor adjoint(const Tensor& self) {
  LAMELLA_CHECK(self.dim() >= 2 || self.dim() == 0,
                "adjoint: expected 'self' to have at least 2 dimensions, got ", self.sizes());
  return self.dim() == 0 ? self.conj() : self.transpose(-2, -1).conj();
}
Tensor mT(const Tensor& self) {
  LAMELLA_CHECK(self.dim() >= 2 || self.dim() == 0,
                "mT: expected 'self' to have at least 2 dimensions, got ", self.sizes());
  return self.dim() == 0 ? self : self.transpose(-2, -1);
}
Tensor mH(const Tensor& self) {
  LAMELLA_CHECK(self.dim() >= 2 || self.dim() == 0,
                "mH: expected 'self' to have at least 2 dimensions, got ", self.sizes());
  return self.adjoint();
}
Tensor numpy_T(const Tensor& self) {
  Dims dims;
  for (int64_t d = self.dim(); d-- > 0;) dims.push_back(d);
  return self.permute(dims);
}
Tensor matrix_H(const Tensor& self) {
  LAMELLA_CHECK(self.dim() == 2 || self.dim() == 0,
                "matrix_H: expected 'self' to be a matrix, got ", self.sizes());
  return self.adjoint();
}

Tensor unsqueeze(const Tensor& self, int64_t dim) {
  return view_as_shape(self, unsqueezed(self, dim));
}
Tensor& unsqueeze_(Tensor& self, int64_t dim) { return become_shape(self, unsqueezed(self, dim)); }

Tensor squeeze(const Tensor& self) {
  return view_as_shape(self, squeezed(self, [](int64_t) { return true; }));
}
Tensor squeeze(const Tensor& self, int64_t dim) {
  int64_t only = maybe_wrap_dim(dim, self.dim(), "squeeze");
  return view_as_shape(self, squeezed(self, [=](int64_t d) { return d == only; }));
}
Tensor squeeze(const Tensor& self, IntArrayRef dim) {
  DimSet dims("squeeze", "dim", dim, self.dim());
  return view_as_shape(self, squeezed(self, [&](int64_t d) { return dims.has(d); }));
}
Tensor& squeeze_(Tensor& self) {
  return become_shape(self, squeezed(self, [](int64_t) { return true; }));
}
Tensor& squeeze_(Tensor& self, int64_t dim) {
  int64_t only = maybe_wrap_dim(dim, self.dim(), "squeeze_");
  return become_shape(self, squeezed(self, [=](int64_t d) { return d == only; }));
}
Tensor& squeeze_(Tensor& self, IntArrayRef dim) {
  DimSet dims("squeeze_", "dim", dim, self.dim());
  return become_shape(self, squeezed(self, [&](int64_t d) { return dims.has(d); }));
}

Tensor select(const Tensor& self, int64_t dim, int64_t index) {
  LAMELLA_CHECK_INDEX(self.dim() > 0,
                      "select: expected 'self' to have at least 1 dimension, got a tensor with 0");
  dim = maybe_wrap_dim(dim, self.dim(), "select");
  int64_t size = self.sizes()[static_cast<size_t>(dim)];
  LAMELLA_CHECK_INDEX(index >= -size && index < size, "select: expected 'index' in [", -size, ", ",
                      size - 1, "] for dimension ", dim, " of ", self.sizes(), ", got ", index);
  return drop_dim(self, dim, index < 0 ? index + size : index);
}

Tensor slice(const Tensor& self, int64_t dim, std::optional<int64_t> start,
             std::optional<int64_t> end, int64_t step) {
  LAMELLA_CHECK(self.dim() > 0,
                "slice: expected 'self' to have at least 1 dimension, got a tensor with 0");
  LAMELLA_CHECK(step > 0, "slice: expected a 'step' of at least 1, got ", step);
  auto d = static_cast<size_t>(maybe_wrap_dim(dim, self.dim(), "slice"));
  int64_t size = self.sizes()[d];
  auto clamp = [&](int64_t at) {
    if (at < 0) at += size;
    return at < 0 ? 0 : at > size ? size : at;
  };
  int64_t first = clamp(start.value_or(0));
  int64_t last = clamp(end.value_or(kMax));
  if (last < first) last = first;
  int64_t length = last - first;
  int64_t stride = self.strides()[d];
  int64_t offset = self.storage_offset() + first * stride;
  if (step != 1) {  // the division costs as much as the rest of this function
    length = length / step + (length % step != 0 ? 1 : 0);
    stride = stepped(stride, step, length);
  }
  // Copies elements one by one: a block copy would be a call, which costs more for few elements.
  Dims sizes, strides;
  const size_t dims = self.sizes().size();
  int64_t *to_sizes = sizes.grow_uninitialised(dims),
          *to_strides = strides.grow_uninitialised(dims);
  for (size_t i = 0; i < dims; ++i) {
    to_sizes[i] = self.sizes()[i];
    to_strides[i] = self.strides()[i];
  }
  to_sizes[d] = length;
  to_strides[d] = stride;
  return view_of(self, sizes, strides, offset);
}

Tensor narrow(const Tensor& self, int64_t dim, int64_t start, int64_t length) {
  LAMELLA_CHECK(self.dim() > 0,
                "narrow: expected 'self' to have at least 1 dimension, got a tensor with 0");
  LAMELLA_CHECK(length >= 0, "narrow: expected a 'length' of at least 0, got ", length);
  dim = maybe_wrap_dim(dim, self.dim(), "narrow");
  int64_t size = self.sizes()[static_cast<size_t>(dim)];
  LAMELLA_CHECK_INDEX(start >= -size && start <= size, "narrow: expected 'start' in [", -size, ", ",
                      size, "], got ", start);
  if (start < 0) start += size;
  LAMELLA_CHECK(length <= size - start, "narrow: expected 'start' + 'length' of at most ", size,
                ", got ", start, " + ", length);
  return self.slice(dim, start, start + length, 1);
}
Tensor narrow(const Tensor& self, int64_t dim, const Tensor& start, int64_t length) {
  LAMELLA_CHECK(start.dim() == 0 && is_integral(start.scalar_type(), false),
                "narrow: expected 'start' to be an integer without dimensions, got ",
                start.scalar_type(), " ", start.sizes());
  return self.narrow(dim, start.item().toLong(), length);
}

Tensor unfold(const Tensor& self, int64_t dimension, int64_t size, int64_t step) {
  int64_t dim = maybe_wrap_dim(dimension, self.dim(), "unfold");
  auto d = static_cast<size_t>(dim);
  int64_t extent = self.dim() == 0 ? 1 : self.sizes()[d];
  LAMELLA_CHECK(size >= 0 && size <= extent, "unfold: expected 'size' in [0, ", extent,
                "] for dimension ", dim, " of ", self.sizes(), ", got ", size);
  LAMELLA_CHECK(step > 0, "unfold: expected a 'step' of at least 1, got ", step);
  Dims sizes(self.sizes()), strides(self.strides());
  int64_t stride = self.dim() == 0 ? 1 : strides[d];
  if (self.dim() != 0) {
    sizes[d] = (extent - size) / step + 1;
    strides[d] = stepped(stride, step, sizes[d]);
  }
  sizes.push_back(size);
  strides.push_back(stride);
  return view_of(self, sizes, strides, self.storage_offset());
}

Tensor diagonal(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
  auto a = static_cast<size_t>(maybe_wrap_dim(dim1, self.dim(), "diagonal"));
  auto b = static_cast<size_t>(maybe_wrap_dim(dim2, self.dim(), "diagonal"));
  LAMELLA_CHECK(a != b, "diagonal: expected 'dim1' and 'dim2' to differ, got ", dim1, " and ",
                dim2);
  Dims sizes(self.sizes()), strides(self.strides());
  int64_t rows = offset < 0 ? sizes[a] + offset : sizes[a];
  int64_t columns = offset > 0 ? sizes[b] - offset : sizes[b];
  int64_t length = rows < columns ? rows : columns;
  if (length < 0) length = 0;
  int64_t start = self.storage_offset();
  if (length > 0) start += offset >= 0 ? offset * strides[b] : -offset * strides[a];
  int64_t stride = strides[a] + strides[b];
  sizes.erase(a > b ? a : b);
  strides.erase(a > b ? a : b);
  sizes.erase(a > b ? b : a);
  strides.erase(a > b ? b : a);
  sizes.push_back(length);
  strides.push_back(stride);
  return view_of(self, sizes, strides, start);
}

Tensor movedim(const Tensor& self, IntArrayRef source, IntArrayRef destination) {
  LAMELLA_CHECK(source.size() == destination.size(),
                "movedim: expected as many 'destination' as 'source', got ", destination, " for ",
                source);
  DimSet from("movedim", "source", source, self.dim());
  DimSet to("movedim", "destination", destination, self.dim());
  if (self.dim() == 0) return self.alias();
  Dims order(static_cast<size_t>(self.dim()), -1);
  for (size_t i = 0; i < source.size(); ++i) {
    order[static_cast<size_t>(maybe_wrap_dim(destination[i], self.dim()))] =
        maybe_wrap_dim(source[i], self.dim());
  }
  int64_t next = 0;
  for (int64_t& d : order) {
    if (d >= 0) continue;
    while (from.has(next)) ++next;
    d = next++;
  }
  return self.permute(order);
}
Tensor movedim(const Tensor& self, int64_t source, int64_t destination) {
  return movedim(self, IntArrayRef(source), IntArrayRef(destination));
}
Tensor moveaxis(const Tensor& self, IntArrayRef source, IntArrayRef destination) {
  return movedim(self, source, destination);
}
Tensor moveaxis(const Tensor& self, int64_t source, int64_t destination) {
  return movedim(self, source, destination);
}

Tensor flatten(const Tensor& self, int64_t start_dim, int64_t end_dim) {
  int64_t first = maybe_wrap_dim(start_dim, self.dim(), "flatten");
  int64_t last = maybe_wrap_dim(end_dim, self.dim(), "flatten");
  LAMELLA_CHECK(first <= last, "flatten: expected 'start_dim' not to come after 'end_dim', got ",
                start_dim, " and ", end_dim);
  if (self.dim() == 0) return self.reshape({1});
  if (first == last) return self;
  Dims shape;
  CheckedSize merged(1, "flatten");
  for (int64_t d = 0; d < self.dim(); ++d) {
    int64_t size = self.sizes()[static_cast<size_t>(d)];
    if (d < first || d > last) {
      shape.push_back(size);
    } else {
      merged *= size;
      if (d == last) shape.push_back(merged.value());
    }
  }
  return self.reshape(shape);
}
Tensor unflatten(const Tensor& self, int64_t dim, IntArrayRef sizes) {
  auto d = static_cast<size_t>(maybe_wrap_dim(dim, self.dim(), "unflatten"));
  LAMELLA_CHECK(!sizes.empty(), "unflatten: expected 'sizes' not to be empty");
  Dims part = infer_size("unflatten", sizes, self.sizes()[d]);
  Dims shape;
  for (size_t i = 0; i < static_cast<size_t>(self.dim()); ++i) {
    if (i == d) {
      shape.append_all(part);
    } else {
      shape.push_back(self.sizes()[i]);
    }
  }
  return self.view(shape);
}
Tensor ravel(const Tensor& self) { return self.contiguous().view({-1}); }

}  // namespace lamella::native
