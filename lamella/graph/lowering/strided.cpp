// Lowering rules of operators that address elements by memory position: as_strided and its inverse.
//
// Note [Strides as slices]
//   The operand's array is its memory in row-major order. Strides that divide each other, largest
//   first, reshape that memory to an array in which the addressed elements are a slice that begins
//   at the offset. Dimensions of stride 0 are broadcast. Other overlapping strides have no such
//   form and stay a call.
#include <algorithm>
#include <numeric>

#include "lamella/graph/lowering/lowering.h"

namespace lamella::hlo::lowering {
namespace {

struct StridedSlice {
  Sizes cut;           // sizes of the memory as an array
  Sizes start, limit;  // bounds of the slice of that array
  Sizes sorted;        // dimensions of the result that are not broadcast, by descending stride
  int64_t used = 0;    // elements of that array; if more than the memory has, it is padded
};

std::optional<StridedSlice> slice_of(const Sizes& sizes, const Sizes& strides, int64_t offset,
                                     int64_t memory) {
  StridedSlice made;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0 || strides[d] < 0) return std::nullopt;
    if (sizes[d] != 1 && strides[d] != 0) made.sorted.push_back(static_cast<int64_t>(d));
  }
  std::stable_sort(made.sorted.begin(), made.sorted.end(), [&](int64_t a, int64_t b) {
    return strides[static_cast<size_t>(a)] > strides[static_cast<size_t>(b)];
  });
  int64_t outer = 0;
  for (size_t k = 0; k <= made.sorted.size(); ++k) {
    bool is_last = k == made.sorted.size();  // the elements within the smallest stride
    int64_t stride = is_last ? 1 : strides[static_cast<size_t>(made.sorted[k])];
    int64_t size = is_last ? 1 : sizes[static_cast<size_t>(made.sorted[k])];
    int64_t start = offset / stride;
    offset %= stride;
    if (k == 0) {
      outer = stride;
      made.cut.push_back(std::max((memory + stride - 1) / stride, start + size));
      made.used = made.cut[0] * stride;
    } else {
      if (outer % stride != 0 || start + size > outer / stride) return std::nullopt;
      made.cut.push_back(outer / stride);
      outer = stride;
    }
    made.start.push_back(start);
    made.limit.push_back(start + size);
  }
  return made;
}

std::optional<StridedSlice> slice_of(const Call& c, int64_t memory) {
  return slice_of(c.integers("size"), c.integers("stride"), c.integer("storage_offset", 0), memory);
}
Op flat(const Call& c, Op x) { return Reshape(x, {c.shape(x).elements()}); }

Ops as_strided(Call& c) {
  Op x = c.op("self");
  int64_t memory = c.shape(x).elements();
  std::optional<StridedSlice> s = slice_of(c, memory);
  if (!s || memory == 0) return {};
  x = flat(c, x);
  if (s->used > memory) x = PadInDim(x, c.constant(c.type_of(x), 0), 0, 0, s->used - memory);
  Sizes ones(s->cut.size(), 1);
  x = Slice(Reshape(x, s->cut), s->start, s->limit, ones);
  // Transposes the slice to the order of the result; all other dimensions are broadcast.
  Sizes sizes = c.sizes(), kept, order(s->sorted.size()), among = s->sorted;
  std::sort(among.begin(), among.end());
  for (size_t k = 0; k < s->sorted.size(); ++k) {
    auto at = std::find(among.begin(), among.end(), s->sorted[k]) - among.begin();
    order[static_cast<size_t>(at)] = static_cast<int64_t>(k);
    kept.push_back(s->limit[k] - s->start[k]);
  }
  x = Transpose(Reshape(x, kept), order);
  return {BroadcastInDim(x, sizes, among)};
}

Ops as_strided_scatter(Call& c) {
  Op x = c.op("self");
  int64_t memory = c.shape(x).elements();
  std::optional<StridedSlice> s = slice_of(c, memory);
  Sizes strides = c.integers("stride"), given = c.integers("size");
  for (size_t d = 0; d < strides.size(); ++d) {
    if (strides[d] == 0 && given[d] > 1) return {};
  }
  if (!s || s->used > memory) return {};
  Op part = Transpose(c.convert(c.op("src"), c.type_of(x)), [&] {
    // Dimensions of size 1 come last.
    Sizes order = s->sorted;
    for (int64_t d = 0; d < static_cast<int64_t>(given.size()); ++d) {
      if (std::find(order.begin(), order.end(), d) == order.end()) order.push_back(d);
    }
    return order;
  }());
  Sizes place;
  Ops starts;
  for (size_t k = 0; k < s->cut.size(); ++k) {
    place.push_back(s->limit[k] - s->start[k]);
    starts.push_back(c.constant(ElementType::S64, s->start[k]));
  }
  Op written = DynamicUpdateSlice(Reshape(x, s->cut), Reshape(part, place), starts);
  return {Reshape(written, c.sizes_of(x))};
}

const Rule kStrided[] = {
    {"aten::as_strided", as_strided},
    {"aten::as_strided_copy", as_strided},
    {"aten::as_strided_scatter", as_strided_scatter},
};

}  // namespace

std::span<const Rule> strided_rules() { return kStrided; }

}  // namespace lamella::hlo::lowering
