// Builder functions that move elements.
#include "lamella/graph/builder/data_movement.h"

#include <algorithm>

#include "lamella/graph/builder/broadcasting.h"
#include "lamella/graph/builder/constant.h"
#include "lamella/graph/builder/emission.h"
#include "lamella/graph/hlo/infer.h"

namespace lamella::hlo {
namespace {

// Concatenates the operands of a dynamic slice: the arrays, then the start indices.
std::vector<Op> with_starts(std::initializer_list<Op> first, std::span<const Op> starts) {
  std::vector<Op> ops(first);
  ops.insert(ops.end(), starts.begin(), starts.end());
  return ops;
}

}  // namespace

Op Broadcast(Operand operand, Span<int64_t> broadcast_sizes) {
  return emit("Broadcast", operand, [&](Emission& e) {
    const Shape& shape = e.array(operand, "operand");
    std::vector<int64_t> sizes(broadcast_sizes.begin(), broadcast_sizes.end()), dimensions;
    for (int64_t d = 0; d < shape.rank(); ++d) {
      dimensions.push_back(static_cast<int64_t>(sizes.size()));
      sizes.push_back(shape.dimension(d));
    }
    AttributeList attributes = e.attributes();
    attributes.integers(AttributeKey::Dimensions, dimensions);
    return e.add(Opcode::Broadcast, {operand}, std::move(attributes),
                 Shape::array(shape.element_type(), std::move(sizes)));
  });
}
Op BroadcastInDim(Operand operand, Span<int64_t> out_dim_size, Span<int64_t> broadcast_dimensions) {
  return emit("BroadcastInDim", operand, [&](Emission& e) {
    return broadcast_in_dim(e, operand, out_dim_size, broadcast_dimensions);
  });
}

Op Reshape(Operand operand, Span<int64_t> new_sizes) {
  return emit("Reshape", operand, [&](Emission& e) {
    const Shape& shape = e.array(operand, "operand");
    std::vector<int64_t> sizes(new_sizes.begin(), new_sizes.end());
    auto open = std::find(sizes.begin(), sizes.end(), -1);
    if (open != sizes.end()) {
      int64_t others = 1;
      bool overflows = false;
      for (auto at = sizes.begin(); at != sizes.end(); ++at) {
        overflows |= at != open && __builtin_mul_overflow(others, *at, &others);
      }
      LAMELLA_EXPECT(!overflows && others > 0 && shape.elements() % others == 0,
                     "'new_sizes' to divide ", shape.elements(), " elements, got ",
                     braced(new_sizes));
      *open = shape.elements() / others;
    }
    return e.add(Opcode::Reshape, {operand}, e.attributes(),
                 Shape::array(shape.element_type(), std::move(sizes)));
  });
}
Op Reshape(Operand operand, Span<int64_t> dimensions, Span<int64_t> new_sizes) {
  return emit("Reshape", operand, [&](Emission& e) {
    bool in_order = std::is_sorted(dimensions.begin(), dimensions.end()) &&
                    static_cast<int64_t>(dimensions.size()) == e.array(operand, "operand").rank();
    Op ordered = in_order ? Op(operand) : Transpose(e.at(operand), dimensions);
    return Reshape(e.at(ordered), new_sizes);
  });
}
Op Reshape(const Shape& shape, Operand operand) {
  return emit("Reshape", operand, [&](Emission& e) {
    return e.add(Opcode::Reshape, {operand}, e.attributes(), shape);
  });
}
Op Collapse(Operand operand, Span<int64_t> dimensions) {
  return emit("Collapse", operand, [&](Emission& e) -> Op {
    const Shape& shape = e.array(operand, "operand");
    for (size_t n = 0; n < dimensions.size(); ++n) {
      require_dimension(shape, dimensions[n], "dimensions");
      LAMELLA_EXPECT(n == 0 || dimensions[n] == dimensions[n - 1] + 1,
                     "'dimensions' to follow each other, got ", braced(dimensions));
    }
    if (dimensions.size() <= 1) return operand;
    std::vector<int64_t> sizes;
    for (int64_t d = 0; d < shape.rank(); ++d) {
      if (d > dimensions.front() && d <= dimensions.back()) {
        sizes.back() *= shape.dimension(d);
      } else {
        sizes.push_back(shape.dimension(d));
      }
    }
    return Reshape(e.at(operand), sizes);
  });
}
Op DynamicReshape(Operand operand, Span<Op> dim_sizes, Span<int64_t> new_size_bounds,
                  const std::vector<bool>& dims_are_dynamic) {
  return emit("DynamicReshape", operand, [&](Emission& e) {
    const Shape& shape = e.array(operand, "operand");
    LAMELLA_EXPECT(dim_sizes.size() == new_size_bounds.size() &&
                       dims_are_dynamic.size() == new_size_bounds.size(),
                   "as many 'dim_sizes' and 'dims_are_dynamic' as ", new_size_bounds.size(),
                   " bounds, got ", dim_sizes.size(), " and ", dims_are_dynamic.size());
    Shape result = Shape::array(shape.element_type(), copy_of(new_size_bounds));
    LAMELLA_EXPECT(result.elements() == shape.elements(), "'new_size_bounds' of ", shape.elements(),
                   " elements, got ", braced(new_size_bounds));
    for (size_t d = 0; d < dims_are_dynamic.size(); ++d) {
      if (dims_are_dynamic[d]) result.set_dynamic(static_cast<int64_t>(d));
    }
    return e.add(Opcode::DynamicReshape, with_starts({operand}, dim_sizes), e.attributes(), result);
  });
}
Op Transpose(Operand operand, Span<int64_t> permutation) {
  return emit("Transpose", operand, [&](Emission& e) {
    AttributeList attributes = e.attributes();
    attributes.integers(AttributeKey::Dimensions, permutation);
    return e.add(Opcode::Transpose, {operand}, std::move(attributes));
  });
}
Op Rev(Operand operand, Span<int64_t> dimensions) {
  return emit("Rev", operand, [&](Emission& e) {
    AttributeList attributes = e.attributes();
    attributes.integers(AttributeKey::Dimensions, dimensions);
    return e.add(Opcode::Reverse, {operand}, std::move(attributes));
  });
}

Op Slice(Operand operand, Span<int64_t> start_indices, Span<int64_t> limit_indices,
         Span<int64_t> strides) {
  return emit("Slice", operand, [&](Emission& e) {
    const Shape& shape = e.array(operand, "operand");
    auto rank = static_cast<size_t>(shape.rank());
    LAMELLA_EXPECT(
        start_indices.size() == rank && limit_indices.size() == rank && strides.size() == rank,
        rank, " starts, limits and strides for ", shape.to_string(false), ", got ",
        start_indices.size(), ", ", limit_indices.size(), " and ", strides.size());
    std::vector<SliceDimension> ranges;
    for (size_t d = 0; d < rank; ++d) {
      ranges.push_back({start_indices[d], limit_indices[d], strides[d]});
    }
    AttributeList attributes = e.attributes();
    attributes.slice(ranges);
    return e.add(Opcode::Slice, {operand}, std::move(attributes));
  });
}
Op SliceInDim(Operand operand, int64_t start_index, int64_t limit_index, int64_t stride,
              int64_t dimno) {
  return emit("SliceInDim", operand, [&](Emission& e) {
    const Shape& shape = e.array(operand, "operand");
    require_dimension(shape, dimno, "dimno");
    std::vector<int64_t> starts(static_cast<size_t>(shape.rank()), 0);
    std::vector<int64_t> limits = copy_of(shape.dimensions());
    std::vector<int64_t> strides(starts.size(), 1);
    auto at = static_cast<size_t>(dimno);
    starts[at] = start_index;
    limits[at] = limit_index;
    strides[at] = stride;
    return Slice(e.at(operand), starts, limits, strides);
  });
}

Op DynamicSlice(Operand operand, Span<Op> start_indices, Span<int64_t> slice_sizes) {
  return emit("DynamicSlice", operand, [&](Emission& e) {
    AttributeList attributes = e.attributes();
    attributes.integers(AttributeKey::DynamicSliceSizes, slice_sizes);
    return e.add(Opcode::DynamicSlice, with_starts({operand}, start_indices),
                 std::move(attributes));
  });
}
Op DynamicUpdateSlice(Operand operand, Op update, Span<Op> start_indices) {
  return emit("DynamicUpdateSlice", operand, [&](Emission& e) {
    return e.add(Opcode::DynamicUpdateSlice, with_starts({operand, update}, start_indices));
  });
}

namespace {

// Splits an array of start indices into scalars.
std::vector<Op> split_starts(Emission& e, Op starts, int64_t rank) {
  const Shape& shape = e.array(starts, "start_indices");
  if (shape.is_scalar()) return {starts};  // {i} converts to an Op as well as to a list of one
  LAMELLA_EXPECT(shape.rank() == 1 && shape.dimension(0) == rank, "'start_indices' to hold ", rank,
                 " integers, got ", shape.to_string(false));
  std::vector<Op> scalars;
  for (int64_t d = 0; d < rank; ++d) {
    scalars.push_back(Reshape(e.at(SliceInDim(e.at(starts), d, d + 1, 1, 0)), {}));
  }
  return scalars;
}

}  // namespace

Op DynamicSlice(Operand operand, Op start_indices, Span<int64_t> slice_sizes) {
  return emit("DynamicSlice", operand, [&](Emission& e) {
    int64_t rank = e.array(operand, "operand").rank();
    return DynamicSlice(e.at(operand), split_starts(e, start_indices, rank), slice_sizes);
  });
}
Op DynamicUpdateSlice(Operand operand, Op update, Op start_indices) {
  return emit("DynamicUpdateSlice", operand, [&](Emission& e) {
    int64_t rank = e.array(operand, "operand").rank();
    return DynamicUpdateSlice(e.at(operand), update, split_starts(e, start_indices, rank));
  });
}

Op ConcatInDim(Within builder, Span<Op> operands, int64_t dimension) {
  return emit("ConcatInDim", builder, [&](Emission& e) {
    AttributeList attributes = e.attributes();
    attributes.integers(AttributeKey::Dimensions, std::vector<int64_t>{dimension});
    return e.add(Opcode::Concatenate, operands, std::move(attributes));
  });
}
Op Pad(Operand operand, Op padding_value, const PaddingConfig& padding_config) {
  return emit("Pad", operand, [&](Emission& e) {
    std::vector<PaddingDimension> padding;
    for (const auto& d : padding_config.dimensions()) {
      padding.push_back({d.edge_padding_low(), d.edge_padding_high(), d.interior_padding()});
    }
    AttributeList attributes = e.attributes();
    attributes.padding(padding);
    return e.add(Opcode::Pad, {operand, padding_value}, std::move(attributes));
  });
}
Op PadInDim(Operand operand, Op padding_value, int64_t dimno, int64_t pad_lo, int64_t pad_hi) {
  return emit("PadInDim", operand, [&](Emission& e) {
    const Shape& shape = e.array(operand, "operand");
    require_dimension(shape, dimno, "dimno");
    PaddingConfig config = MakeNoPaddingConfig(shape.rank());
    auto* dimension = config.mutable_dimensions(static_cast<int>(dimno));
    dimension->set_edge_padding_low(pad_lo);
    dimension->set_edge_padding_high(pad_hi);
    return Pad(e.at(operand), padding_value, config);
  });
}

Op Gather(Operand input, Op start_indices, const GatherDimensionNumbers& dimension_numbers,
          Span<int64_t> slice_sizes, bool indices_are_sorted) {
  return emit("Gather", input, [&](Emission& e) {
    AttributeList a = e.attributes();
    a.integers(AttributeKey::OffsetDims, dimension_numbers.offset_dims());
    a.integers(AttributeKey::CollapsedSliceDims, dimension_numbers.collapsed_slice_dims());
    a.integers(AttributeKey::StartIndexMap, dimension_numbers.start_index_map());
    if (dimension_numbers.operand_batching_dims_size() != 0) {
      a.integers(AttributeKey::OperandBatchingDims, dimension_numbers.operand_batching_dims());
      a.integers(AttributeKey::StartIndicesBatchingDims,
                 dimension_numbers.start_indices_batching_dims());
    }
    a.integer(AttributeKey::IndexVectorDim, dimension_numbers.index_vector_dim());
    a.integers(AttributeKey::SliceSizes, slice_sizes);
    if (indices_are_sorted) a.flag(AttributeKey::IndicesAreSorted, true);
    return e.add(Opcode::Gather, {input, start_indices}, std::move(a));
  });
}

Op GetDimensionSize(Operand operand, int64_t dimension) {
  return emit("GetDimensionSize", operand, [&](Emission& e) {
    require_dimension(e.array(operand, "operand"), dimension, "dimension");
    AttributeList attributes = e.attributes();
    attributes.integers(AttributeKey::Dimensions, std::vector<int64_t>{dimension});
    return e.add(Opcode::GetDimensionSize, {operand}, std::move(attributes));
  });
}
Op SetDimensionSize(Operand operand, Op val, int64_t dimension) {
  return emit("SetDimensionSize", operand, [&](Emission& e) {
    Shape shape = e.array(operand, "operand");
    require_dimension(shape, dimension, "dimension");
    shape.set_dynamic(dimension);
    AttributeList attributes = e.attributes();
    attributes.integers(AttributeKey::Dimensions, std::vector<int64_t>{dimension});
    return e.add(Opcode::SetDimensionSize, {operand, val}, std::move(attributes), shape);
  });
}
Op RemoveDynamicDimension(Operand operand, int64_t dimension) {
  return emit("RemoveDynamicDimension", operand, [&](Emission& e) {
    const Shape& shape = e.array(operand, "operand");
    require_dimension(shape, dimension, "dimension");
    Op full = ConstantR0<int32_t>(e.within(), static_cast<int32_t>(shape.dimension(dimension)));
    // Setting the full size makes the dimension static; other dimensions keep their state.
    Shape fixed = shape.with_dimensions(copy_of(shape.dimensions()));
    for (int64_t d = 0; d < shape.rank(); ++d) {
      if (d != dimension && shape.is_dynamic(d)) fixed.set_dynamic(d);
    }
    AttributeList attributes = e.attributes();
    attributes.integers(AttributeKey::Dimensions, std::vector<int64_t>{dimension});
    return e.add(Opcode::SetDimensionSize, {operand, full}, std::move(attributes), fixed);
  });
}

}  // namespace lamella::hlo
