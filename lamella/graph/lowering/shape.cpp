// Lowering rules of operators that move elements: views and their copies, concatenations, padding,
// and the gradients of views.
#include <algorithm>
#include <numeric>

#include "lamella/graph/lowering/lowering.h"

namespace lamella::hlo::lowering {
namespace {

Op self(const Call& c) { return c.op("self"); }
Ops same(Call& c) { return {self(c)}; }
Ops reshaped(Call& c) { return {c.reshape(self(c), c.sizes())}; }

Sizes counted(int64_t rank) {
  Sizes dims(static_cast<size_t>(rank));
  std::iota(dims.begin(), dims.end(), 0);
  return dims;
}
Op transposed(const Call& c, Op x, const Sizes& permutation) {
  return permutation == counted(c.rank_of(x)) ? x : Transpose(x, permutation);
}

Ops view(Call& c) {
  // A view with another dtype reinterprets bits, and stays a call.
  if (c.has("dtype")) return {};
  return reshaped(c);
}
Ops expand(Call& c) { return {c.broadcast(self(c), c.sizes())}; }

Ops permute(Call& c) {
  Sizes dims = c.integers("dims");
  for (int64_t& d : dims) d += d < 0 ? c.rank_of(self(c)) : 0;
  return {transposed(c, self(c), dims)};
}
Ops swapped(const Call& c, int64_t a, int64_t b) {
  Sizes dims = counted(c.rank_of(self(c)));
  if (!dims.empty()) std::swap(dims[static_cast<size_t>(a)], dims[static_cast<size_t>(b)]);
  return {transposed(c, self(c), dims)};
}
Ops transpose(Call& c) {
  int64_t rank = c.rank_of(self(c));
  return swapped(c, c.dimension("dim0", rank), c.dimension("dim1", rank));
}
Ops t(Call& c) { return c.rank_of(self(c)) < 2 ? same(c) : swapped(c, 0, 1); }

// The bounds of a slice, normalized from Python's conventions.
struct Range {
  int64_t dim, start, end, step;
};
Range range_of(const Call& c, int64_t rank, std::span<const int64_t> sizes) {
  Range r{};
  r.dim = c.dimension("dim", rank);
  int64_t size = sizes[static_cast<size_t>(r.dim)];
  auto place = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size); };
  r.start = place(c.integer("start", 0));
  r.end = std::max(r.start, c.has("end") ? place(c.integer("end")) : size);
  r.step = c.integer("step", 1);
  return r;
}
Op sliced(Op x, const Range& r) { return SliceInDim(x, r.start, r.end, r.step, r.dim); }

Ops slice(Call& c) {
  Sizes sizes = c.sizes_of(self(c));
  return {sliced(self(c), range_of(c, c.rank_of(self(c)), sizes))};
}
Ops select(Call& c) {
  Sizes sizes = c.sizes_of(self(c));
  int64_t dim = c.dimension("dim", c.rank_of(self(c)));
  int64_t index = c.integer("index");
  if (index < 0) index += sizes[static_cast<size_t>(dim)];
  return {c.reshape(SliceInDim(self(c), index, index + 1, 1, dim), c.sizes())};
}
Ops narrow(Call& c) {
  int64_t dim = c.dimension("dim", c.rank_of(self(c)));
  int64_t start = c.integer("start");
  if (start < 0) start += c.sizes_of(self(c))[static_cast<size_t>(dim)];
  return {SliceInDim(self(c), start, start + c.integer("length"), 1, dim)};
}

// Splits a dimension into parts of the results' sizes.
Ops split(Call& c) {
  int64_t dim = c.dimension("dim", c.rank_of(self(c)));
  Ops parts;
  int64_t start = 0;
  for (size_t i = 0; i < c.result_count(); ++i) {
    int64_t size = c.result(i).dimension(dim);
    parts.push_back(SliceInDim(self(c), start, start + size, 1, dim));
    start += size;
  }
  return parts;
}
Ops unbind(Call& c) {
  int64_t dim = c.dimension("dim", c.rank_of(self(c)));
  Ops parts;
  for (size_t i = 0; i < c.result_count(); ++i) {
    auto at = static_cast<int64_t>(i);
    parts.push_back(c.reshape(SliceInDim(self(c), at, at + 1, 1, dim), c.sizes(i)));
  }
  return parts;
}

// ---- Concatenation and repetition ---------------------------------------------------------------

Ops cat(Call& c) {
  int64_t rank = c.result().rank();
  Ops parts;
  for (Op part : c.ops("tensors")) {
    // Operands of another rank, which must be empty, are skipped.
    if (c.rank_of(part) != rank) continue;
    parts.push_back(c.convert(part, c.result().element_type()));
  }
  if (parts.empty()) return {};
  return {parts.size() == 1 ? parts[0] : ConcatInDim(c.builder(), parts, c.dimension("dim", rank))};
}
Ops stack(Call& c) {
  int64_t dim = c.dimension("dim", c.result().rank());
  Ops parts;
  for (Op part : c.ops("tensors")) {
    Sizes sizes = c.sizes_of(part);
    sizes.insert(sizes.begin() + dim, 1);
    parts.push_back(c.convert(c.reshape(part, sizes), c.result().element_type()));
  }
  return {parts.size() == 1 ? parts[0] : ConcatInDim(c.builder(), parts, dim)};
}
Ops repeat(Call& c) {
  Sizes counts = c.integers("repeats");
  Sizes sizes = c.sizes_of(self(c));
  sizes.insert(sizes.begin(), counts.size() - sizes.size(), 1);
  // Adds a dimension before each dimension, and repeats it.
  Sizes wide, places;
  for (size_t d = 0; d < sizes.size(); ++d) {
    wide.push_back(counts[d]);
    places.push_back(static_cast<int64_t>(wide.size()));
    wide.push_back(sizes[d]);
  }
  return {c.reshape(BroadcastInDim(c.reshape(self(c), sizes), wide, places), c.sizes())};
}
Ops flip(Call& c) {
  if (c.integers("dims").empty()) return same(c);
  return {Rev(self(c), c.dimensions("dims", c.rank_of(self(c))))};
}
Ops roll(Call& c) {
  Sizes shifts = c.integers("shifts"), dims = c.integers("dims");
  Op x = self(c);
  Sizes sizes = c.sizes_of(x);
  bool flat = dims.empty();
  if (flat) {
    x = Reshape(x, {c.result().elements()});
    dims = {0};
  }
  for (size_t i = 0; i < dims.size(); ++i) {
    int64_t d = dims[i] < 0 ? dims[i] + c.rank_of(x) : dims[i];
    int64_t size = c.sizes_of(x)[static_cast<size_t>(d)];
    if (size == 0) return same(c);
    int64_t shift = ((shifts[i] % size) + size) % size;
    if (shift == 0) continue;
    x = ConcatInDim(
        c.builder(),
        Ops{SliceInDim(x, size - shift, size, 1, d), SliceInDim(x, 0, size - shift, 1, d)}, d);
  }
  return {c.reshape(x, sizes)};
}

// ---- Padding, and writing a part ----------------------------------------------------------------

Op padded(const Call& c, Op x, Op value, const std::vector<std::array<int64_t, 3>>& edges) {
  PaddingConfig config;
  for (const std::array<int64_t, 3>& edge : edges) {
    auto* one = config.add_dimensions();
    one->set_edge_padding_low(edge[0]);
    one->set_edge_padding_high(edge[1]);
    one->set_interior_padding(edge[2]);
  }
  return Pad(x, c.convert(value, c.type_of(x)), config);
}
Ops constant_pad(Call& c) {
  Sizes pad = c.integers("pad");
  int64_t rank = c.rank_of(self(c));
  std::vector<std::array<int64_t, 3>> edges(static_cast<size_t>(rank), {0, 0, 0});
  for (size_t i = 0; 2 * i < pad.size(); ++i) {
    edges[static_cast<size_t>(rank) - 1 - i] = {pad[2 * i], pad[2 * i + 1], 0};
  }
  return {padded(c, self(c), c.constant(c.type_of(self(c)), c.number("value", 0)), edges)};
}
Ops block_diag(Call& c) {
  int64_t before = 0;
  Ops bands;
  for (Op part : c.ops("tensors")) {
    Sizes sizes = c.sizes_of(part);
    sizes.insert(sizes.begin(), 2 - sizes.size(), 1);
    part = c.convert(c.reshape(part, sizes), c.result().element_type());
    int64_t after = c.sizes()[1] - before - sizes[1];
    bands.push_back(
        padded(c, part, c.constant(c.type_of(part), 0), {{0, 0, 0}, {before, after, 0}}));
    before += sizes[1];
  }
  if (bands.empty()) return {};
  return {bands.size() == 1 ? bands[0] : ConcatInDim(c.builder(), bands, 0)};
}

// An array of `sizes` with `part` in the range, and zeros elsewhere.
Op spread(const Call& c, Op part, const Range& r, const Sizes& sizes) {
  Sizes have = c.sizes_of(part);
  int64_t count = have[static_cast<size_t>(r.dim)];
  int64_t covered = count == 0 ? 0 : (count - 1) * r.step + 1;
  std::vector<std::array<int64_t, 3>> edges(have.size(), {0, 0, 0});
  edges[static_cast<size_t>(r.dim)] = {
      r.start, sizes[static_cast<size_t>(r.dim)] - r.start - covered, r.step - 1};
  return padded(c, part, c.constant(c.type_of(part), 0), edges);
}
// x with the elements in the range replaced by `part`.
Op with_part(const Call& c, Op x, Op part, const Range& r) {
  Sizes sizes = c.sizes_of(x), have = c.sizes_of(part);
  if (have[static_cast<size_t>(r.dim)] == 0) return x;
  if (r.step == 1) {
    Ops starts(sizes.size(), c.constant(ElementType::S32, 0));
    starts[static_cast<size_t>(r.dim)] = c.constant(ElementType::S32, r.start);
    return DynamicUpdateSlice(x, part, starts);
  }
  Op there = spread(c, c.full(ElementType::PRED, have, true), r, sizes);
  return Select(there, spread(c, part, r, sizes), x);
}
Ops slice_scatter(Call& c) {
  Sizes sizes = c.sizes_of(self(c));
  Range r = range_of(c, c.rank_of(self(c)), sizes);
  Op part = c.convert(c.op("src"), c.type_of(self(c)));
  Sizes want = c.sizes_of(sliced(self(c), r));
  return {with_part(c, self(c), c.broadcast(part, want), r)};
}
Range one_of(const Call& c, const Sizes& sizes) {
  Range r{c.dimension("dim", static_cast<int64_t>(sizes.size())), c.integer("index"), 0, 1};
  if (r.start < 0) r.start += sizes[static_cast<size_t>(r.dim)];
  r.end = r.start + 1;
  return r;
}
Ops select_scatter(Call& c) {
  Sizes sizes = c.sizes_of(self(c));
  Range r = one_of(c, sizes);
  Sizes part = sizes;
  part[static_cast<size_t>(r.dim)] = 1;
  Op source = c.convert(c.op("src"), c.type_of(self(c)));
  return {with_part(c, self(c), c.reshape(source, part), r)};
}
Ops select_backward(Call& c) {
  Sizes sizes = c.sizes();
  Range r = one_of(c, sizes);
  Sizes part = sizes;
  part[static_cast<size_t>(r.dim)] = 1;
  return {spread(c, c.reshape(c.op("grad_output"), part), r, sizes)};
}
Ops slice_backward(Call& c) {
  Sizes sizes = c.sizes();
  return {spread(c, c.op("grad_output"), range_of(c, c.result().rank(), sizes), sizes)};
}

// ---- Triangles and diagonals --------------------------------------------------------------------

// A Pred mask that compares column - row with `diagonal`.
Op places(const Call& c, const Sizes& sizes, int64_t diagonal, ComparisonDirection direction) {
  auto rank = static_cast<int64_t>(sizes.size());
  Op row = c.iota(ElementType::S64, sizes, rank - 2);
  Op column = c.iota(ElementType::S64, sizes, rank - 1);
  return Compare(Sub(column, row), c.full(ElementType::S64, sizes, diagonal), direction);
}
template <ComparisonDirection kDirection>
Ops triangle(Call& c) {
  Sizes sizes = c.sizes();
  Op kept = places(c, sizes, c.integer("diagonal", 0), kDirection);
  return {Select(kept, self(c), c.like(self(c), 0))};
}
Ops trace(Call& c) {
  Op x = self(c);
  Op kept = places(c, c.sizes_of(x), 0, ComparisonDirection::kEq);
  Op widened = c.convert(x, Call::wide(c.result().element_type()));
  return {c.sum(Select(kept, widened, c.like(widened, 0)), {0, 1})};
}
// The diagonal of two dimensions, as a strided slice of the flattened square around it.
Ops diagonal(Call& c) {
  Op x = self(c);
  int64_t rank = c.rank_of(x), offset = c.integer("offset", 0);
  int64_t first = c.dimension("dim1", rank, 0), second = c.dimension("dim2", rank, 1);
  Sizes order;
  for (int64_t d = 0; d < rank; ++d) {
    if (d != first && d != second) order.push_back(d);
  }
  order.push_back(first);
  order.push_back(second);
  x = transposed(c, x, order);
  int64_t length = c.result().dimension(rank - 2);
  int64_t row = std::max<int64_t>(0, -offset), column = std::max<int64_t>(0, offset);
  if (length == 0) return {c.full(c.type_of(x), c.sizes(), 0)};
  x = SliceInDim(SliceInDim(x, row, row + length, 1, rank - 2), column, column + length, 1,
                 rank - 1);
  // In row-major order, every (length + 1)-th element is on the diagonal.
  Sizes flat = c.sizes_of(x);
  flat.pop_back();
  flat.back() = length * length;
  return {SliceInDim(Reshape(x, flat), 0, length * length, length + 1, rank - 2)};
}

// ---- Copies -------------------------------------------------------------------------------------

Ops copy(Call& c) {
  Op source = c.convert(c.op("src"), c.result().element_type());
  return {c.broadcast(source, c.sizes())};
}
Ops view_as_real(Call& c) {
  Op x = self(c);
  Sizes sizes = c.sizes_of(x);
  sizes.push_back(1);
  return {ConcatInDim(c.builder(), Ops{Reshape(Real(x), sizes), Reshape(Imag(x), sizes)},
                      static_cast<int64_t>(sizes.size()) - 1)};
}
Ops view_as_complex(Call& c) {
  Op x = self(c);
  int64_t last = c.rank_of(x) - 1;
  return {Complex(c.reshape(SliceInDim(x, 0, 1, 1, last), c.sizes()),
                  c.reshape(SliceInDim(x, 1, 2, 1, last), c.sizes()))};
}

const Rule kShape[] = {
    {"aten::view", view},
    {"aten::view_copy", view},
    {"aten::_unsafe_view", reshaped},
    {"aten::_reshape_alias", reshaped},
    {"aten::reshape", reshaped},
    {"aten::flatten", reshaped},
    {"aten::unsqueeze", reshaped},
    {"aten::unsqueeze_copy", reshaped},
    {"aten::squeeze", reshaped},
    {"aten::squeeze_copy", reshaped},
    {"aten::expand", expand},
    {"aten::expand_copy", expand},
    {"aten::permute", permute},
    {"aten::permute_copy", permute},
    {"aten::transpose", transpose},
    {"aten::transpose_copy", transpose},
    {"aten::t", t},
    {"aten::t_copy", t},
    {"aten::slice", slice},
    {"aten::slice_copy", slice},
    {"aten::select", select},
    {"aten::select_copy", select},
    {"aten::narrow", narrow},
    {"aten::narrow_copy", narrow},
    {"aten::split", split},
    {"aten::split_copy", split},
    {"aten::split_with_sizes", split},
    {"aten::split_with_sizes_copy", split},
    {"aten::unsafe_split", split},
    {"aten::unsafe_split_with_sizes", split},
    {"aten::unbind", unbind},
    {"aten::unbind_copy", unbind},
    {"aten::cat", cat},
    {"aten::stack", stack},
    {"aten::block_diag", block_diag},
    {"aten::repeat", repeat},
    {"aten::flip", flip},
    {"aten::roll", roll},
    {"aten::constant_pad_nd", constant_pad},
    {"aten::slice_scatter", slice_scatter},
    {"aten::select_scatter", select_scatter},
    {"aten::slice_backward", slice_backward},
    {"aten::select_backward", select_backward},
    {"aten::tril", triangle<ComparisonDirection::kLe>},
    {"aten::triu", triangle<ComparisonDirection::kGe>},
    {"aten::trace", trace},
    {"aten::diagonal", diagonal},
    {"aten::diagonal_copy", diagonal},
    {"aten::alias", same},
    {"aten::alias_copy", same},
    {"aten::detach", same},
    {"aten::detach_copy", same},
    {"aten::lift", same},
    {"aten::lift_fresh", same},
    {"aten::clone", same},
    {"aten::contiguous", same},
    {"aten::_to_copy", same},
    {"aten::to", same},
    {"aten::copy", copy},
    {"aten::view_as_real", view_as_real},
    {"aten::view_as_real_copy", view_as_real},
    {"aten::view_as_complex", view_as_complex},
    {"aten::view_as_complex_copy", view_as_complex},
};

}  // namespace

std::span<const Rule> shape_rules() { return kShape; }

}  // namespace lamella::hlo::lowering
