// Slices of the last dimensions, and lookups by index.
#include "lamella/graph/builder/lib/slicing.h"

#include "lamella/graph/builder/emission.h"
#include "lamella/graph/builder/functions.h"
#include "lamella/graph/hlo/infer.h"

namespace lamella::hlo {
namespace {

// The number of dimensions before the last `count`.
size_t before(Emission& e, Op x, size_t count) {
  const Shape& shape = e.array(x, "x");
  LAMELLA_EXPECT(count <= shape.dimensions().size(), "at most ", shape.rank(), " starts for ",
                 shape.to_string(false), ", got ", count);
  return shape.dimensions().size() - count;
}
// Start indices for all dimensions: zeros for the leading ones, then `starts`.
std::vector<Op> starts_of(Emission& e, Op x, std::span<const Op> starts) {
  Op zero = ConstantR0<int32_t>(e.within(), 0);
  if (!starts.empty()) {
    zero = ConstantR0WithType(e.within(), e.array(starts[0], "starts").element_type(), 0);
  }
  std::vector<Op> all(before(e, x, starts.size()), zero);
  all.insert(all.end(), starts.begin(), starts.end());
  return all;
}
std::vector<Op> constants(Emission& e, std::span<const int64_t> starts) {
  std::vector<Op> ops;
  for (int64_t start : starts) ops.push_back(ConstantR0<int64_t>(e.within(), start));
  return ops;
}

}  // namespace

Op SliceInMinorDims(Operand x, Span<int64_t> start, Span<int64_t> end) {
  return emit("SliceInMinorDims", x, [&](Emission& e) {
    LAMELLA_EXPECT(start.size() == end.size(), "as many ends as ", start.size(), " starts, got ",
                   end.size());
    size_t first = before(e, x, start.size());
    const Shape& shape = e.shape(x);
    std::vector<int64_t> starts(first, 0), limits = copy_of(shape.dimensions().first(first));
    starts.insert(starts.end(), start.begin(), start.end());
    limits.insert(limits.end(), end.begin(), end.end());
    return Slice(e.at(x), starts, limits, std::vector<int64_t>(starts.size(), 1));
  });
}
Op UpdateSlice(Operand x, Op update, Span<int64_t> start) {
  return emit("UpdateSlice", x, [&](Emission& e) {
    return DynamicUpdateSlice(e.at(x), update, constants(e, start));
  });
}
Op UpdateSliceInMinorDims(Operand x, Op update, Span<int64_t> start) {
  return emit("UpdateSliceInMinorDims", x, [&](Emission& e) {
    return DynamicUpdateSlice(e.at(x), update, starts_of(e, x, constants(e, start)));
  });
}
Op DynamicSliceInMinorDims(Operand x, Span<Op> starts, Span<int64_t> sizes) {
  return emit("DynamicSliceInMinorDims", x, [&](Emission& e) {
    size_t first = before(e, x, starts.size());
    std::vector<int64_t> all = copy_of(e.shape(x).dimensions().first(first));
    all.insert(all.end(), sizes.begin(), sizes.end());
    return DynamicSlice(e.at(x), starts_of(e, x, starts), all);
  });
}
Op DynamicUpdateSliceInMinorDims(Operand x, Op update, Span<Op> starts) {
  return emit("DynamicUpdateSliceInMinorDims", x, [&](Emission& e) {
    return DynamicUpdateSlice(e.at(x), update, starts_of(e, x, starts));
  });
}
Op TorchGather(Operand input, Op index, int64_t dim, bool) {
  return emit("TorchGather", input, [&](Emission& e) {
    const Shape& shape = e.array(input, "input");
    const Shape& places = e.array(index, "index");
    LAMELLA_EXPECT(dim >= 0 && dim < shape.rank() && places.rank() == shape.rank(),
                   "'dim' to name a dimension, and 'index' as many dimensions as ",
                   shape.to_string(false), ", got ", dim, " and ", places.to_string(false));
    // Each index vector has all coordinates.
    std::vector<int64_t> one = copy_of(places.dimensions()), sizes;
    one.push_back(1);
    std::vector<Op> coordinates;
    GatherDimensionNumbers numbers;
    numbers.set_index_vector_dim(shape.rank());
    for (int64_t d = 0; d < shape.rank(); ++d) {
      Op coordinate = d == dim ? index : Iota(e.within(), places, d);
      coordinates.push_back(Reshape(e.at(coordinate), one));
      numbers.add_collapsed_slice_dims(d);
      numbers.add_start_index_map(d);
      sizes.push_back(std::min<int64_t>(shape.dimension(d), 1));
    }
    Op vectors = ConcatInDim(e.within(), coordinates, shape.rank());
    return Gather(e.at(input), vectors, numbers, sizes);
  });
}
Op TorchIndexSelect(Operand input, Op index, int64_t dim, int64_t batch_dims) {
  return emit("TorchIndexSelect", input, [&](Emission& e) {
    const Shape& shape = e.array(input, "input");
    const Shape& places = e.array(index, "index");
    LAMELLA_EXPECT(dim >= 0 && dim < shape.rank(), "'dim' to name a dimension of ",
                   shape.to_string(false), ", got ", dim);
    LAMELLA_EXPECT(batch_dims >= 0 && batch_dims <= dim && batch_dims < places.rank() + 1,
                   "'batch_dims' to be at most ", dim, ", got ", batch_dims);
    GatherDimensionNumbers numbers;
    numbers.set_index_vector_dim(places.rank());
    std::vector<int64_t> sizes = copy_of(shape.dimensions());
    // A dimension of size 0 has no element that an empty index could select.
    auto at_most_one = [&](int64_t d) {
      int64_t& size = sizes[static_cast<size_t>(d)];
      size = std::min<int64_t>(size, 1);
    };
    at_most_one(dim);
    for (int64_t d = 0; d < batch_dims; ++d) {
      at_most_one(d);
      numbers.add_operand_batching_dims(d);
      numbers.add_start_indices_batching_dims(d);
    }
    for (int64_t d = 0; d < shape.rank(); ++d) {
      if (d < batch_dims || d == dim) continue;
      numbers.add_offset_dims(d < dim ? d : d + places.rank() - batch_dims - 1);
    }
    numbers.add_collapsed_slice_dims(dim);
    numbers.add_start_index_map(dim);
    return Gather(e.at(input), index, numbers, sizes);
  });
}

}  // namespace lamella::hlo
