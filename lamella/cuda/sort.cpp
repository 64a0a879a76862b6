// sort, topk, and the distinct values that follow from sorting.
#include <algorithm>

#include "lamella/cuda/call.h"
#include "lamella/cuda/driver.h"
#include "lamella/cuda/families.h"
#include "lamella/cuda/kernels/sort_parameters.h"

namespace lamella::cuda {
namespace {

// Contiguous lines sorted along their last dimension: elements and int64 indices.
struct Sorted {
  Tensor values, indices;
};
bool sort_by_digits(int device, const Tensor& lines, bool descending, const Sorted& result) {
  const auto bytes = static_cast<int64_t>(lines.itemsize());
  const char* suffix = suffix_of_bytes(lines.itemsize());
  void* count = find_kernel(device, "radix_counts", suffix);
  void* pass = find_kernel(device, "radix_pass", suffix);
  if (count == nullptr || pass == nullptr) return false;
  RadixParameters p{};
  p.length = lines.size(-1);
  p.lines = lines.numel() / p.length;
  p.tiles = (p.length + kRadixTile - 1) / kRadixTile;
  const int64_t blocks = p.lines * p.tiles, busy = 8 * Driver::facts(device).multiprocessors;
  if (p.length > INT32_MAX || blocks > INT32_MAX) return false;
  p.parts = std::min(p.tiles, (busy + p.lines - 1) / p.lines);
  const ScalarType dtype = lines.scalar_type();
  p.infinity = dtype == ScalarType::Half       ? 0x7c00
               : dtype == ScalarType::BFloat16 ? 0x7f80
               : dtype == ScalarType::Float    ? 0x7f800000
               : dtype == ScalarType::Double   ? 0x7ff0000000000000
                                               : 0;
  p.is_signed = is_integral(dtype, false) && dtype != kByte ? 1 : 0;
  p.descending = descending ? 1 : 0;
  p.from = address_of(lines);
  const int64_t counted = p.lines * bytes * 256, words = bytes + counted + blocks * 256;
  const TensorOptions ints = lines.options().dtype(ScalarType::Int);
  const Tensor zeros = lamella::zeros({words}, ints), more = lamella::empty({blocks * 256}, ints);
  p.tickets = address_of(zeros);
  p.counts = p.tickets + static_cast<uint64_t>(bytes) * 4;
  p.status = p.counts + static_cast<uint64_t>(counted) * 4;
  p.next_status = address_of(more);
  Shape shape;
  shape.block[0] = kRadixThreads;
  shape.grid[0] = static_cast<unsigned>(std::min<int64_t>(p.lines * p.parts, INT32_MAX));
  launch(device, count, "radix_counts", &p, shape);
  shape.grid[0] = static_cast<unsigned>(blocks);
  // Elements go to and fro between the result and a copy, indices between two halves.
  const Tensor copy = lamella::empty_like(lines);
  const Tensor indices = lamella::empty({2, bytes == 1 ? 0 : lines.numel()}, ints);
  for (p.pass = 0; p.pass < bytes; ++p.pass) {
    p.is_last = p.pass + 1 == bytes ? 1 : 0;
    p.to = address_of((bytes - p.pass) % 2 == 1 ? result.values : copy);
    p.to_index = p.is_last != 0 ? address_of(result.indices) : address_of(indices[p.pass % 2]);
    launch(device, pass, "radix_pass", &p, shape);
    p.from = p.to;
    p.from_index = p.to_index;
    std::swap(p.status, p.next_status);
  }
  return true;
}
bool sort_lines(int device, const Tensor& given, bool descending, Sorted* result) {
  const char* suffix = suffix_of_type(given.scalar_type());
  if (suffix == nullptr) return false;
  const Tensor lines = given.contiguous();
  *result = {lamella::empty_like(lines),
             lamella::empty(lines.sizes(), lines.options().dtype(ScalarType::Long))};
  if (lines.numel() == 0) return true;
  SortParameters p{};
  p.length = lines.dim() == 0 ? 1 : lines.size(-1);
  if (p.length > kTile) return sort_by_digits(device, lines, descending, *result);
  p.lines = lines.numel() / p.length;
  p.descending = descending ? 1 : 0;
  p.from = address_of(lines);
  p.to = address_of(result->values);
  p.to_index = address_of(result->indices);
  p.tile = 1;
  while (p.tile < p.length) p.tile *= 2;
  const int64_t beside = kTile / p.tile, tiles = (p.lines + beside - 1) / beside;
  Shape shape;
  shape.grid[0] = static_cast<unsigned>(std::min<int64_t>(tiles, INT32_MAX));
  shape.block[0] = kTileThreads;
  return launch_named(device, "sort_tiles", suffix, &p, shape);
}

// The first `count` elements of each sorted line, which are among those of its tiles.
bool sort_first(int device, const Tensor& given, bool descending, int64_t count, Sorted* result) {
  const int64_t length = given.dim() == 0 ? 1 : given.size(-1);
  if (length <= 2 * kTile || 4 * count > kTile || given.numel() == 0) {
    return sort_lines(device, given, descending, result);
  }
  const int64_t whole = length / kTile * kTile, rest = length - whole;
  const Tensor lines = given.reshape({-1, length});
  Tensor found = lines.narrow(1, 0, whole).reshape({-1, kTile}), at;
  Sorted part;
  if (!sort_lines(device, found, descending, &part)) return false;
  const int64_t rows = lines.size(0);
  const Tensor start = lamella::arange(0, whole, kTile, part.indices.options()).unsqueeze(1);
  found = part.values.narrow(1, 0, count).reshape({rows, -1});
  at = part.indices.narrow(1, 0, count).reshape({rows, -1, count}).add(start).reshape({rows, -1});
  if (rest != 0) {
    if (!sort_lines(device, lines.narrow(1, whole, rest), descending, &part)) return false;
    const int64_t few = rest < count ? rest : count;
    found = lamella::cat({found, part.values.narrow(1, 0, few)}, 1);
    at = lamella::cat({at, part.indices.narrow(1, 0, few).add(whole)}, 1);
  }
  if (!sort_first(device, found, descending, count, &part)) return false;
  std::vector<int64_t> shape(given.sizes().begin(), given.sizes().end());
  shape.back() = count;
  result->values = part.values.narrow(1, 0, count).reshape(shape);
  result->indices = at.gather(1, part.indices.narrow(1, 0, count)).reshape(shape);
  return true;
}

// Sorts along a dimension, and gives the first `count` elements of each line.
bool order(Call& call, int64_t dim, bool descending, int64_t count) {
  const Tensor self = call.tensor(0);
  dim = dim < 0 ? dim + (self.dim() == 0 ? 1 : self.dim()) : dim;
  const bool scalar = self.dim() == 0;
  Sorted sorted;
  if (!sort_first(call.device(), scalar ? self : self.movedim(dim, -1), descending, count,
                  &sorted)) {
    return false;
  }
  for (int i = 0; i < 2; ++i) {
    Tensor part = i == 0 ? sorted.values : sorted.indices;
    if (!scalar) part = part.narrow(-1, 0, count).movedim(-1, dim);
    if (part.numel() != 0) lamella::_copy_from(part, call.output(i), false);
  }
  return true;
}
bool sort_body(Call& call) {
  const Tensor self = call.tensor(0);
  const int64_t dim = call.integer(2);
  return order(call, dim, call.flag(3), self.dim() == 0 ? 1 : self.size(dim));
}
bool topk_body(Call& call) { return order(call, call.integer(2), call.flag(3), call.integer(1)); }

// ---- Distinct values ----

using Unique = std::tuple<Tensor, Tensor, Tensor>;

// The runs of equal elements of a 1-d tensor. `order`, if defined, has the elements' places.
Unique runs_of(const Tensor& line, const Tensor& order, bool inverse, bool counts) {
  const int64_t n = line.numel();
  const TensorOptions longs = line.options().dtype(ScalarType::Long);
  if (n == 0)
    return {lamella::empty_like(line), lamella::empty({0}, longs), lamella::empty({0}, longs)};
  const Tensor first = lamella::ones({1}, line.options().dtype(ScalarType::Bool));
  const Tensor begins =
      n == 1 ? first
             : lamella::cat({first, line.narrow(0, 1, n - 1).ne(line.narrow(0, 0, n - 1))}, 0);
  const Tensor starts = begins.nonzero().reshape({-1});
  Tensor groups = lamella::empty({0}, longs), lengths = lamella::empty({0}, longs);
  if (inverse) {
    groups = begins.cumsum(0, ScalarType::Long).sub(1);
    if (order.defined()) groups = lamella::empty_like(order).scatter_(0, order, groups);
  }
  if (counts) {
    const Tensor end = lamella::full({1}, n, longs);
    lengths = lamella::cat({starts.narrow(0, 1, starts.numel() - 1), end}, 0).sub(starts);
  }
  return {line.index_select(0, starts), groups, lengths};
}
Unique unique2(const Tensor& self, bool, bool inverse, bool counts) {
  const Tensor flat = self.reshape({-1});
  if (suffix_of_type(self.scalar_type()) == nullptr) {
    return counted_fallback<lamella::ops::_unique2>(self, true, inverse, counts);
  }
  const auto [line, order] = lamella::sort(flat, true, 0, false);
  auto [values, groups, lengths] = runs_of(line, order, inverse, counts);
  return {values, inverse ? groups.reshape(self.sizes()) : groups, lengths};
}
std::tuple<Tensor, Tensor> unique(const Tensor& self, bool sorted, bool inverse) {
  auto [values, groups, lengths] = lamella::_unique2(self, sorted, inverse, false);
  return {values, groups};
}
Unique unique_consecutive(const Tensor& self, bool inverse, bool counts,
                          std::optional<int64_t> dim) {
  if (dim && (self.dim() != 1 || *dim != 0)) {
    return lamella::unique_dim_consecutive(self, *dim, inverse, counts);
  }
  auto [values, groups, lengths] = runs_of(self.reshape({-1}), Tensor(), inverse, counts);
  return {values, inverse ? groups.reshape(self.sizes()) : groups, lengths};
}
}  // namespace

void register_sort(Library& aten) {
  register_calls<&sort_body>(aten, "sort.values_stable sort.stable");
  register_calls<&topk_body>(aten, "topk topk.values");
  aten.impl("_unique", LAMELLA_FN(&unique));
  aten.impl("_unique2", LAMELLA_FN(&unique2));
  aten.impl("unique_consecutive", LAMELLA_FN(&unique_consecutive));
}

}  // namespace lamella::cuda
