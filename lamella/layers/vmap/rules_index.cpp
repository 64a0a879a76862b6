// Rules for reading and writing by indices: advanced indexing, gather and scatter, selections along
// a dimension, positions in the flattened tensor, masks.
#include "lamella/layers/vmap/rules_common.h"

namespace lamella::vmap {
namespace {

// ---- Advanced indexing ------------------------------------------------------------------------
//
// Note [Indices under vmap]
//   Indexing replaces the indexed dimensions by the `width` dimensions to which the indices
//   broadcast: in place if the indexed dimensions are adjacent, else in front. If no index is
//   batched, the batch is one more dimension without an index; it ends up behind the new dimensions
//   if those go to the front. If some index is batched, the batch is indexed by arange(batch),
//   which pairs each example with its own indices; the result then begins with the batch and the
//   new dimensions.

struct Indexed {
  Tensor self;                  // batch in front
  std::vector<Tensor> indices;  // by dimension of self; undefined: not indexed
  bool pairs = false;           // some index is batched, so the batch is indexed as well
  int64_t before = 0;           // dimensions of one example in front of the first index
  int64_t width = 0;
  bool adjacent = true;
  int64_t rank = 0;  // of the result for one example
};

bool is_mask(const Tensor& index) {
  return index.scalar_type() == kBool || index.scalar_type() == kByte;
}

Indexed indexed(BatchedCall& call, const char* op, const In& self, const std::vector<In>& indices) {
  Indexed r;
  r.self = front(call, self);
  std::vector<In> given;
  for (const In& index : indices) {
    if (!index.defined() || !is_mask(index.value)) {
      given.push_back(index);
      continue;
    }
    LAMELLA_CHECK(!index.batched, op,
                  ": expected masks in 'indices' to be the same for all examples under vmap, as "
                  "results of different shapes cannot be stacked; use lamella.where");
    Tensor mask = index.value;
    if (mask.dim() == 0) {
      r.self = r.self.unsqueeze(static_cast<int64_t>(given.size()) + 1);
      mask = mask.unsqueeze(0);
    }
    for (const Tensor& places : mask.nonzero().unbind(1)) given.push_back({places, false});
  }
  const int64_t dims = r.self.dim() - 1;
  LAMELLA_CHECK_INDEX(static_cast<int64_t>(given.size()) <= dims, op, ": expected at most ", dims,
                      " entries in 'indices' for a tensor of ", self.sizes(), ", got ",
                      given.size());
  int64_t taken = 0, last = -1;
  for (size_t i = 0; i < given.size(); ++i) {
    if (!given[i].defined()) continue;
    auto at = static_cast<int64_t>(i);
    if (taken == 0) r.before = at;
    r.adjacent &= taken == 0 || last == at - 1;
    last = at;
    ++taken;
    r.width = std::max(r.width, given[i].rank());
    r.pairs |= given[i].batched;
  }
  r.rank = dims - taken + r.width;
  if (r.pairs) {
    Sizes shape(static_cast<size_t>(r.width) + 1, 1);
    shape[0] = call.batch_size();
    r.indices.push_back(
        lamella::arange(call.batch_size(), TensorOptions(kLong).device(r.self.device()))
            .view(shape));
  } else {
    r.indices.emplace_back();
  }
  for (const In& index : given) r.indices.push_back(aligned(index, r.width));
  return r;
}

// True if the new dimensions must be moved from behind the batch to the place of the indexed ones;
// moves() gives their positions before and after.
bool is_moved(const Indexed& r) { return r.pairs && r.adjacent && r.before > 0; }
std::pair<Sizes, Sizes> moves(const Indexed& r) {
  Sizes made, wanted;
  for (int64_t d = 1; d <= r.width; ++d) {
    made.push_back(d);
    wanted.push_back(d + r.before);
  }
  return {made, wanted};
}

Tensor index(BatchedCall& call, In self, std::vector<In> indices) {
  Indexed r = indexed(call, "index", self, indices);
  Tensor picked = lamella::index(r.self, r.indices);
  if (!r.pairs) return r.adjacent ? picked : picked.movedim(r.width, 0);
  if (!is_moved(r)) return picked;
  auto [made, wanted] = moves(r);
  return picked.movedim(made, wanted);
}

// True for writes of one value through a mask; mask and value may differ between examples.
bool is_one_value_by_mask(const std::vector<In>& indices, const In& values) {
  if (indices.empty() || values.numel() != 1) return false;
  for (const In& index : indices) {
    if (index.defined() != (&index == &indices[0])) return false;
  }
  return is_mask(indices[0].value) && indices[0].batched;
}
Tensor put_by_mask(BatchedCall& call, const In& self, const In& mask, const In& values,
                   bool accumulate) {
  const int64_t rank = self.rank();
  Tensor x = front(call, self), where = mask.value.to(kBool);
  for (int64_t d = mask.rank(); d < rank; ++d) where = where.unsqueeze(-1);
  Sizes shape(static_cast<size_t>(rank) + 1, 1);
  if (values.batched) shape[0] = call.batch_size();
  Tensor value = values.value.to(x.scalar_type()).reshape(shape);
  return lamella::where(where, accumulate ? x.add(value) : value, x);
}

Tensor index_put(BatchedCall& call, In self, std::vector<In> indices, In values, bool accumulate) {
  if (is_one_value_by_mask(indices, values)) {
    return put_by_mask(call, self, indices[0], values, accumulate);
  }
  Indexed r = indexed(call, "index_put", self, indices);
  LAMELLA_CHECK(values.rank() <= r.rank, "index_put: expected 'values' to have at most ", r.rank,
                " dimensions, got ", values.sizes());
  Tensor source = front(call, values, r.rank);
  if (!r.pairs && !r.adjacent) source = source.movedim(0, r.width);
  if (is_moved(r)) {
    auto [made, wanted] = moves(r);
    source = source.movedim(wanted, made);
  }
  if (!call.plan().writes()) return lamella::index_put(r.self, r.indices, source, accumulate);
  return r.self.index_put_(r.indices, source, accumulate);
}

// ---- Along a dimension ------------------------------------------------------------------------

// gather's result has the shape of `index`, scatter's that of self. 0-dimensional tensors get a
// dimension for the call.
void along_dim(BatchedCall& call, uint32_t result_like) {
  const int64_t rank = call.dim(0);
  const bool scalar = call.dim(result_like) == 0;
  for (uint32_t i : call.plan().facts->tensors) {
    if (!call.has(i)) continue;
    Tensor whole = call.front(i);
    call.set(i, call.dim(i) == 0 ? whole.unsqueeze(1) : whole);
  }
  call.set_value(1, IValue(call.shifted(call.integer(1), rank)));
  if (!scalar) return call.run();
  call.run_and([](Tensor result) { return result.squeeze(1); });
}
void gather(BatchedCall& call) { along_dim(call, 2); }
void scatter(BatchedCall& call) { along_dim(call, 0); }

// Expands a one-dimensional index along `dim` over the other dimensions of `like`. Shapes are those
// of one example; dim is not negative.
Tensor in_every_line(const Tensor& index, const Tensor& like, int64_t dim) {
  if (like.dim() == 0) return index.reshape({}).to(kLong);
  Sizes line(static_cast<size_t>(like.dim()), 1);
  Sizes shape(like.sizes().begin(), like.sizes().end());
  line[static_cast<size_t>(dim)] = shape[static_cast<size_t>(dim)] = index.numel();
  return index.reshape(line).expand(shape).to(kLong);
}
void check_line(const char* op, const Tensor& index) {
  LAMELLA_CHECK_INDEX(index.dim() <= 1, op, ": expected 'index' to have at most 1 dimension, got ",
                      index.sizes());
}
// Calls the operator itself if all examples share the index; returns false otherwise.
bool has_common_index(BatchedCall& call, const char* op) {
  if (call.is_batched(2)) return false;
  check_line(op, call.tensor(2));
  const int64_t rank = call.dim(0);
  for (uint32_t i : call.plan().facts->tensors) {
    if (i == 2 || !call.has(i)) continue;
    const int64_t own = call.dim(i);
    Tensor whole = call.front(i);
    if (own == 0 && (rank == 0 || i == 3)) whole = whole.unsqueeze(1);
    call.set(i, whole);
  }
  call.set_value(1, IValue(call.shifted(call.integer(1), rank)));
  if (rank > 0) {
    call.run();
  } else {
    call.run_and([](Tensor result) { return result.squeeze(1); });
  }
  return true;
}

Tensor index_select_each(const Tensor& self, int64_t dim, const Tensor& index) {
  check_line("index_select", index);
  dim = maybe_wrap_dim(dim, self.dim(), "index_select");
  return self.gather(dim, in_every_line(index, self, dim));
}
Tensor index_add_each(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                      const Scalar& alpha) {
  check_line("index_add", index);
  dim = maybe_wrap_dim(dim, self.dim(), "index_add");
  Tensor scaled = alpha.equal(1) ? source : source.mul(alpha).to(self.scalar_type());
  return self.scatter_add(dim, in_every_line(index, self, dim), scaled);
}
Tensor index_copy_each(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) {
  check_line("index_copy", index);
  dim = maybe_wrap_dim(dim, self.dim(), "index_copy");
  return self.scatter(dim, in_every_line(index, self, dim), source);
}
Tensor index_reduce_each(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                         std::string_view reduce, bool include_self) {
  check_line("index_reduce", index);
  dim = maybe_wrap_dim(dim, self.dim(), "index_reduce");
  return self.scatter_reduce(dim, in_every_line(index, self, dim), source, reduce, include_self);
}
// A mask over `self` of the slices along `dim` that `index` selects.
Tensor lines_at(const Tensor& self, int64_t dim, const Tensor& index) {
  Tensor nowhere = lamella::zeros(self.sizes(), self.options().dtype(kBool));
  return nowhere.scatter(dim, in_every_line(index, self, dim), Scalar(true));
}
Tensor index_fill_number_each(const Tensor& self, int64_t dim, const Tensor& index,
                              const Scalar& value) {
  check_line("index_fill", index);
  dim = maybe_wrap_dim(dim, self.dim(), "index_fill");
  return self.masked_fill(lines_at(self, dim, index), value);
}
Tensor index_fill_each(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& value) {
  check_line("index_fill", index);
  LAMELLA_CHECK(value.dim() == 0, "index_fill: expected 'value' to have no dimensions, got ",
                value.sizes());
  dim = maybe_wrap_dim(dim, self.dim(), "index_fill");
  return self.masked_fill(lines_at(self, dim, index), value);
}

// Calls the operator itself if all examples share the index, else `each`.
template <auto each>
void by_line(BatchedCall& call) {
  if (!has_common_index(call, call.plan().name.c_str())) decomposed<each>(call);
}
void index_fill(BatchedCall& call) {
  // The operator takes one value and one index.
  if (call.is_batched(2) || call.is_batched(3)) return decomposed<&index_fill_each>(call);
  Tensor self = call.front(0);
  const bool scalar = call.dim(0) == 0;
  call.set_value(1, IValue(call.shifted(call.integer(1), call.dim(0))));
  call.set(0, scalar ? self.unsqueeze(1) : self);
  call.run_and([&](Tensor result) { return scalar ? result.squeeze(1) : result; });
}

// ---- Positions in the flattened tensor --------------------------------------------------------

Tensor counted_from_front(const Tensor& index, int64_t size) {
  Tensor flat = index.reshape({-1}).to(kLong);
  return lamella::where(flat.lt(0), flat.add(size), flat);
}
Tensor take(const Tensor& self, const Tensor& index) {
  Tensor flat = self.reshape({-1});
  return flat.gather(0, counted_from_front(index, self.numel())).view(index.sizes());
}
Tensor put(const Tensor& self, const Tensor& index, const Tensor& source, bool accumulate) {
  LAMELLA_CHECK(source.numel() == index.numel(), "put: expected 'source' to have ", index.numel(),
                " elements, got ", source.sizes());
  Tensor flat = self.reshape({-1}), values = source.reshape({-1});
  Tensor places = counted_from_front(index, self.numel());
  return (accumulate ? flat.scatter_add(0, places, values) : flat.scatter(0, places, values))
      .view(self.sizes());
}

// ---- Masks ------------------------------------------------------------------------------------

Tensor masked_fill(const Tensor& self, const Tensor& mask, const Tensor& value) {
  LAMELLA_CHECK(value.dim() == 0, "masked_fill: expected 'value' to have no dimensions, got ",
                value.sizes());
  return lamella::where(mask, value.to(self.scalar_type()), self);
}
Tensor masked_fill_number(const Tensor& self, const Tensor& mask, const Scalar& value) {
  return lamella::masked_fill(self, mask, value);
}
// The n-th true position of the mask gets the n-th element of the source.
Tensor masked_scatter(const Tensor& self, const Tensor& mask, const Tensor& source) {
  LAMELLA_CHECK(mask.scalar_type() == kBool, "masked_scatter: expected 'mask' to be bool, got ",
                mask.scalar_type());
  std::vector<Tensor> both = lamella::broadcast_tensors({self, mask});
  if (source.numel() == 0) return both[0].clone();
  Tensor flat = both[1].reshape({-1});
  Tensor order = flat.cumsum(0).sub(1).masked_fill(flat.logical_not(), 0);
  Tensor values = source.reshape({-1}).gather(0, order).view(both[0].sizes());
  return lamella::where(both[1], values, both[0]);
}

// A mask that all examples share selects equally many elements of each.
void masked_select(BatchedCall& call) {
  if (call.is_batched(1)) return refuse_rule(call);
  In self = input(call, 0);
  std::vector<Tensor> both =
      lamella::broadcast_tensors({aligned(self, call.dim(1)), call.tensor(1).unsqueeze(0)});
  Tensor mask = both[1].select(0, 0);
  Tensor flat = both[0].reshape({call.batch_size(), mask.numel()});
  give_value(call, 0, lamella::index(flat, {Tensor(), mask.reshape({-1})}));
}

constexpr NamedRule kRules[] = {
    {"masked_select", &masked_select},
    {"index", &typed<&index>},
    {"index_put", &typed<&index_put>},
    {"gather", &gather},
    {"scatter", &scatter},
    {"index_select", &by_line<&index_select_each>},
    {"index_add", &by_line<&index_add_each>},
    {"index_copy", &by_line<&index_copy_each>},
    {"index_reduce", &by_line<&index_reduce_each>},
    {"index_fill_number", &by_line<&index_fill_number_each>},
    {"index_fill", &index_fill},
    {"take", &decomposed<&take>},
    {"put", &decomposed<&put>},
    {"masked_fill", &decomposed<&masked_fill>},
    {"masked_fill_number", &decomposed<&masked_fill_number>},
    {"masked_scatter", &decomposed<&masked_scatter>},
};

}  // namespace

NamedRules index_rules() { return kRules; }

}  // namespace lamella::vmap
