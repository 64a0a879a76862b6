// Rules for operators with arguments for dimensions or sizes: views, joining, splitting, and
// operators along a dimension or on the last dimensions.
//
// Note [Rules by the names of arguments]
//   `dims`      puts the batch in front of every tensor and of input_sizes, and shifts arguments
//               named dim, dims, dim0, ... by one. 0-dimensional tensors get a dimension for the
//               call.
//   `new_dim`   the same for operators that add a dimension: dims refer to the result.
//   `inplace_view`   the argument takes the shape that the operator without the `_` gives.
//   `sizes`     puts the batch in front of `size`.
//   `leading`   puts the batch in front of every tensor and pads all examples to one rank; for
//               operators that work on the last dimensions, or element by element.
//   `matrices`  the same for operators on matrices; each example must have two dimensions.
//   `lines`     the same for operators along the last dimension; each example must have one.
//   `pairs`     the same for view_as_complex, whose last dimension is (real, imaginary).
//   `fold1d`, `fold2d`, `fold3d`   for [N, C, spatial...] and [C, spatial...]: the batch is joined
//               with the N samples, or takes their place.
#include "lamella/layers/vmap/rules_common.h"

namespace lamella::vmap {
namespace {

bool is_dim_name(std::string_view name) {
  return name == "dim" || name == "dim0" || name == "dim1" || name == "dim2" || name == "dimension";
}
bool is_tensor(BatchedCall& call, uint32_t i) {
  return call.value(i).tag == LAMELLA_TENSOR && call.has(i);
}

// ---- dims, new_dim -----------------------------------------------------------------------------

void dims_rule(BatchedCall& call, int64_t more) {
  const uint32_t count = call.op()->argument_count;
  int64_t rank = -1;
  bool scalars = more == 0;  // every tensor has no dimensions
  bool by_sizes = false;     // the rank comes from input_sizes
  for (uint32_t i = 0; i < count; ++i) {
    const lamella_value& value = call.value(i);
    if (is_tensor(call, i)) {
      if (rank < 0) rank = call.dim(i);
      scalars &= call.dim(i) == 0;
    } else if (value.tag == LAMELLA_TENSOR_LIST) {
      scalars = false;
      std::vector<Tensor> list;
      for (const In& x : inputs(call, i)) {
        if (rank < 0) rank = x.rank();
        list.push_back(front(call, x));
      }
      call.set(i, list);
    } else if (value.tag == LAMELLA_INT_LIST && call.plan().arguments[i].name == "input_sizes") {
      rank = value.size;
      by_sizes = true;
      Sizes sizes = with_batch(call, call.integers(i));
      if (rank == 0) sizes.push_back(1);
      call.set_value(i, IValue(sizes));
    }
  }
  if (by_sizes) scalars = rank == 0;
  for (uint32_t i = 0; i < count; ++i) {
    const lamella_value& value = call.value(i);
    if (is_tensor(call, i)) {
      if (call.is_batched(i) && !scalars) continue;
      Tensor whole = call.front(i);
      call.set(i, scalars ? whole.unsqueeze(1) : whole);
    } else if (value.tag == LAMELLA_INT && is_dim_name(call.plan().arguments[i].name)) {
      call.set_value(i, IValue(call.shifted(value.as.i, rank + more)));
    } else if (value.tag == LAMELLA_INT_LIST) {
      std::string_view name = call.plan().arguments[i].name;
      if (name != "dims" && name != "dim") continue;
      Sizes dims;
      for (int64_t dim : call.integers(i)) dims.push_back(call.shifted(dim, rank + more));
      call.set_value(i, IValue(IntArrayRef(dims)));
    }
  }
  if (!scalars) return call.run();
  call.run_and([](Tensor result) { return result.dim() > 1 ? result.squeeze(1) : result; });
}
void dims(BatchedCall& call) { dims_rule(call, 0); }
void new_dim(BatchedCall& call) { dims_rule(call, 1); }

// Operators that reshape their argument in place: the batched tensor then wraps the result of the
// out-of-place operator.
void inplace_view(BatchedCall& call) {
  std::string name(call.op()->name);
  name.pop_back();
  const lamella_operator* view = lamella_lookup_operator(name.c_str(), call.op()->overload, 1);
  if (view == nullptr) view = lamella_lookup_operator(name.c_str(), "int", 1);
  LAMELLA_INTERNAL_ASSERT(view != nullptr, name, " is not defined");
  std::vector<lamella_value> arguments;
  for (uint32_t i = 0; i < call.op()->argument_count; ++i) arguments.push_back(call.original(i));
  lamella_value made;
  lamella::detail::check(
      lamella_call_boxed(view, arguments.data(), view->argument_count, &made, 1));
  IValue owned = IValue::adopt(made);
  become(call, 0, TensorBase::borrow(wrapped(owned.toTensor().impl())));
}

// ---- leading, fold -----------------------------------------------------------------------------

// [batch, N, ...] <-> [batch * N, ...]
Tensor joined(const Tensor& x) {
  Sizes sizes{x.size(0) * x.size(1)};
  for (int64_t d = 2; d < x.dim(); ++d) sizes.push_back(x.size(d));
  return x.reshape(sizes);
}
Tensor parted(int64_t batch, const Tensor& x) {
  Sizes sizes{batch, batch == 0 ? x.size(0) : x.size(0) / batch};
  for (int64_t d = 1; d < x.dim(); ++d) sizes.push_back(x.size(d));
  return x.view(sizes);
}

template <int spatial>
void fold(BatchedCall& call) {
  const int64_t batch = call.batch_size();
  bool has_samples = false;
  for (uint32_t i = 0; i < call.op()->argument_count; ++i) {
    const lamella_value& value = call.value(i);
    if (is_tensor(call, i)) {
      // A tensor without channels would take the batch for its channels.
      LAMELLA_CHECK(call.dim(i) > spatial, call.plan().name, ": expected '",
                    call.plan().arguments[i].name, "' to have ", spatial + 1, " or ", spatial + 2,
                    " dimensions, got ", call.dim(i));
      has_samples = call.dim(i) >= spatial + 2;
      Tensor whole = call.front(i);
      call.set(i, has_samples ? joined(whole) : whole);
    } else if (value.tag == LAMELLA_INT_LIST && call.plan().arguments[i].name == "input_size") {
      Sizes sizes = call.integers(i).vec();
      if (!sizes.empty()) sizes[0] *= batch;
      call.set_value(i, IValue(IntArrayRef(sizes)));
    }
  }
  if (!has_samples) return call.run();
  call.run_and([&](Tensor result) { return parted(batch, result); });
}

void leading(BatchedCall& call) {
  const uint32_t count = call.op()->argument_count;
  int format = call.plan().find("memory_format");
  if (format >= 0 && call.has(static_cast<uint32_t>(format))) {
    auto wanted = static_cast<MemoryFormat>(call.integer(static_cast<uint32_t>(format)));
    if (wanted == MemoryFormat::ChannelsLast) return fold<2>(call);
    if (wanted == MemoryFormat::ChannelsLast3d) return fold<3>(call);
  }
  int64_t rank = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (is_tensor(call, i)) rank = std::max(rank, call.dim(i));
  }
  for (uint32_t i = 0; i < count; ++i) {
    if (!is_tensor(call, i) || (call.is_batched(i) && call.dim(i) == rank)) continue;
    call.set(i, aligned({call.front(i), true}, rank));
  }
  call.run();
}

void lines(BatchedCall& call) {
  LAMELLA_CHECK(call.dim(0) >= 1, call.op()->name, ": expected '", call.plan().arguments[0].name,
                "' to have a dimension, got []");
  leading(call);
}
void pairs(BatchedCall& call) {
  LAMELLA_CHECK(call.dim(0) >= 1,
                "view_as_complex: expected the last size of 'self' to be 2, got []");
  leading(call);
}
void matrices(BatchedCall& call) {
  need_matrices(call);
  leading(call);
}

// ---- sizes --------------------------------------------------------------------------------------

void sizes(BatchedCall& call) {
  for (uint32_t i = 0; i < call.op()->argument_count; ++i) {
    if (call.value(i).tag == LAMELLA_INT_LIST && call.plan().arguments[i].name == "size") {
      call.set_value(i, IValue(IntArrayRef(with_batch(call, call.integers(i)))));
    }
  }
  call.run();
}

// Examples stay self.stride(0) apart; `stride` applies within each.
Tensor as_strided(BatchedCall& call, In self, IntArrayRef size, IntArrayRef stride,
                  std::optional<int64_t> storage_offset) {
  LAMELLA_CHECK(size.size() == stride.size(), "as_strided: expected as many 'stride' as 'size', ",
                "got ", stride, " for ", size);
  Sizes strides{self.value.stride(0)};
  strides.insert(strides.end(), stride.begin(), stride.end());
  return self.value.as_strided(with_batch(call, size), strides, storage_offset);
}
Tensor reshape_alias(BatchedCall& call, In self, IntArrayRef size, IntArrayRef) {
  return self.value.view(with_batch(call, size));
}
// Copies each example with its own strides, so that `size` and `stride` address the same elements.
Tensor as_strided_scatter(BatchedCall& call, In self, In src, IntArrayRef size, IntArrayRef stride,
                          std::optional<int64_t> storage_offset) {
  IntArrayRef order = self.value.strides().slice(self.batched ? 1 : 0);
  const int64_t whole = std::max<int64_t>(memory_extent(self.sizes(), order), 1);
  Sizes strides{whole}, wanted{whole};
  strides.insert(strides.end(), order.begin(), order.end());
  wanted.insert(wanted.end(), stride.begin(), stride.end());
  Tensor result = front(call, src).new_empty_strided(with_batch(call, self.sizes()), strides,
                                                     self.value.scalar_type());
  result.copy_(front(call, self));
  const int64_t first = self.value.storage_offset();
  Tensor part =
      result.as_strided(with_batch(call, size), wanted, storage_offset.value_or(first) - first);
  part.copy_(front(call, src));
  return result;
}
Tensor expand(BatchedCall& call, In self, IntArrayRef size, bool implicit) {
  LAMELLA_CHECK(static_cast<int64_t>(size.size()) >= self.rank(), "expand: expected at least ",
                self.rank(), " entries in 'size' for a tensor of ", self.sizes(), ", got ", size);
  Tensor padded = aligned(self, static_cast<int64_t>(size.size()));
  return padded.expand(with_batch(call, size), implicit);
}
Tensor repeat(BatchedCall&, In self, IntArrayRef repeats) {
  LAMELLA_CHECK(static_cast<int64_t>(repeats.size()) >= self.rank(), "repeat: expected at least ",
                self.rank(), " entries in 'repeats' for a tensor of ", self.sizes(), ", got ",
                repeats);
  Sizes all{1};
  all.insert(all.end(), repeats.begin(), repeats.end());
  return aligned(self, static_cast<int64_t>(repeats.size())).repeat(all);
}
Tensor permute(BatchedCall& call, In self, IntArrayRef dims) {
  Sizes all{0};
  for (int64_t dim : dims) all.push_back(call.shifted(dim, self.rank()));
  return self.value.permute(all);
}
Tensor squeeze(BatchedCall&, In self) {
  Sizes all;
  for (int64_t d = 1; d <= self.rank(); ++d) all.push_back(d);
  return self.value.squeeze(all);
}
Tensor t(BatchedCall&, In self) {
  LAMELLA_CHECK(self.rank() <= 2, "t: expected 'self' to have at most 2 dimensions, got ",
                self.sizes());
  return self.rank() < 2 ? self.value.alias() : self.value.transpose(1, 2);
}
Tensor trace(const Tensor& self) {
  LAMELLA_CHECK(self.dim() == 2, "trace: expected 'self' to be a matrix, got ", self.sizes());
  return self.diagonal().sum();
}
Tensor roll(BatchedCall& call, In self, IntArrayRef shifts, IntArrayRef dims) {
  if (dims.empty()) {
    LAMELLA_CHECK(shifts.size() == 1, "roll: expected one of 'shifts' without 'dims', got ",
                  shifts);
    Tensor flat = self.value.reshape({call.batch_size(), self.numel()});
    return flat.roll(shifts, {1}).view(self.value.sizes());
  }
  if (self.rank() == 0) return self.value.clone();
  Sizes all;
  for (int64_t dim : dims) all.push_back(call.shifted(dim, self.rank()));
  return self.value.roll(shifts, all);
}
// Tensors of shape [0] are ignored among tensors of higher rank.
Tensor cat(BatchedCall& call, std::vector<In> tensors, int64_t dim) {
  LAMELLA_CHECK_VALUE(!tensors.empty(), "cat: expected 'tensors' not to be empty");
  auto is_nothing = [](const In& x) { return x.rank() == 1 && x.size(0) == 0; };
  std::vector<Tensor> parts;
  int64_t rank = 1;
  for (const In& x : tensors) {
    if (!is_nothing(x)) rank = x.rank();
  }
  LAMELLA_CHECK(rank > 0,
                "cat: expected 'tensors' to have at least 1 dimension, got a tensor with 0");
  for (const In& x : tensors) {
    if (rank == 1 || !is_nothing(x)) parts.push_back(front(call, x));
  }
  return lamella::cat(parts, call.shifted(dim, rank));
}
Tensor constant_pad_nd(BatchedCall&, In self, IntArrayRef pad, const Scalar& value) {
  LAMELLA_CHECK(static_cast<int64_t>(pad.size()) <= 2 * self.rank(),
                "constant_pad_nd: expected an even number of at most ", 2 * self.rank(),
                " entries in 'pad' for a tensor of ", self.sizes(), ", got ", pad);
  return lamella::constant_pad_nd(self.value, pad, value);
}

Tensor view_dtype(BatchedCall& call, In self, ScalarType dtype) {
  LAMELLA_CHECK(
      self.rank() > 0 || !is_supported(dtype) || element_size(dtype) == self.value.itemsize(),
      "view: expected 'self' to have at least 1 dimension to see ", self.value.scalar_type(),
      " as ", dtype, ", got a tensor with 0");
  return front(call, self).view(dtype);
}

constexpr NamedRule kRules[] = {
    {"dims", &dims},
    {"new_dim", &new_dim},
    {"inplace_view", &inplace_view},
    {"leading", &leading},
    {"matrices", &matrices},
    {"lines", &lines},
    {"pairs", &pairs},
    {"sizes", &sizes},
    {"fold1d", &fold<1>},
    {"fold2d", &fold<2>},
    {"fold3d", &fold<3>},
    {"as_strided", &typed<&as_strided>},
    {"as_strided_scatter", &typed<&as_strided_scatter>},
    {"reshape_alias", &typed<&reshape_alias>},
    {"expand", &typed<&expand>},
    {"repeat", &typed<&repeat>},
    {"permute", &typed<&permute>},
    {"squeeze", &typed<&squeeze>},
    {"t", &typed<&t>},
    {"trace", &decomposed<&trace>},
    {"roll", &typed<&roll>},
    {"cat", &typed<&cat>},
    {"constant_pad_nd", &typed<&constant_pad_nd>},
    {"view_dtype", &typed<&view_dtype>},
};

}  // namespace

NamedRules shape_rules() { return kRules; }

}  // namespace lamella::vmap
