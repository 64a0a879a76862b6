// Shape inference of gather and scatter. Source: XLA's operation semantics.
#include "lamella/graph/hlo/infer.h"

namespace lamella::hlo {
namespace {

// The sizes of the index array without the dimension that holds the index vectors.
std::vector<int64_t> batch_sizes(const Instruction& i, const Shape& indices) {
  int64_t vector_dim = i.integer(AttributeKey::IndexVectorDim);
  LAMELLA_HLO_REQUIRE(is_integral(indices.element_type()), i,
                      "expected indices to be integers, got ", indices.to_string(false));
  LAMELLA_HLO_REQUIRE(vector_dim >= 0 && vector_dim <= indices.rank(), i,
                      "expected index_vector_dim to be at most ", indices.rank(), ", got ",
                      vector_dim);
  std::vector<int64_t> sizes = copy_of(indices.dimensions());
  if (vector_dim < indices.rank()) sizes.erase(sizes.begin() + vector_dim);
  return sizes;
}
// The attributes that describe the indexed array; gather and scatter have different names for them.
struct IndexedArray {
  AttributeKey dropped;           // its dimensions that the windows lack
  AttributeKey batching;          // its batch dimensions, in step with `indices_batching`
  AttributeKey map;               // the dimension that each component of an index vector indexes
  AttributeKey indices_batching;  // the batch dimensions of the index array
};
void require_indexed(const Instruction& i, const IndexedArray& array, const Shape& operand,
                     const Shape& indices) {
  for (AttributeKey key : {array.dropped, array.batching, array.map}) {
    require_dimensions(i, key, i.integers(key), operand.rank());
  }
  require_dimensions(i, array.indices_batching, i.integers(array.indices_batching), indices.rank());
  int64_t vector_dim = i.integer(AttributeKey::IndexVectorDim);
  int64_t length = vector_dim < indices.rank() ? indices.dimension(vector_dim) : 1;
  auto map = i.integers(array.map);
  LAMELLA_HLO_REQUIRE(static_cast<int64_t>(map.size()) == length, i, "expected ",
                      attribute_name(array.map), " to have ", length, " entries, got ",
                      braced(map));
  auto batching = i.integers(array.batching);
  auto along = i.integers(array.indices_batching);
  LAMELLA_HLO_REQUIRE(along.size() == batching.size(), i, "expected ",
                      attribute_name(array.indices_batching), " to name ", batching.size(),
                      " dimensions as ", attribute_name(array.batching), ", got ", braced(along));
  for (size_t n = 0; n < along.size(); ++n) {
    LAMELLA_HLO_REQUIRE(along[n] != vector_dim, i, "expected ",
                        attribute_name(array.indices_batching), " to leave out dimension ",
                        vector_dim, ", which holds the index vectors, got ", braced(along));
    LAMELLA_HLO_REQUIRE(indices.dimension(along[n]) == operand.dimension(batching[n]), i,
                        "expected dimension ", along[n], " of the indices to be ",
                        operand.dimension(batching[n]), " as dimension ", batching[n],
                        " of the operand, got ", indices.dimension(along[n]));
  }
  for (int64_t d : batching) {
    LAMELLA_HLO_REQUIRE(!contains(map, d) && !contains(i.integers(array.dropped), d), i,
                        "expected dimension ", d, " to be named by ",
                        attribute_name(array.batching), " alone, got ",
                        attribute_name(contains(map, d) ? array.map : array.dropped));
  }
}
// Throws unless the dimensions are in ascending order.
void require_sorted(const Instruction& i, AttributeKey key) {
  auto dimensions = i.integers(key);
  LAMELLA_HLO_REQUIRE(std::is_sorted(dimensions.begin(), dimensions.end()), i, "expected ",
                      attribute_name(key), " in ascending order, got ", braced(dimensions));
}

}  // namespace

Shape infer_gather(const Instruction& i) {
  const Shape& operand = array_operand(i, 0);
  const Shape& indices = array_operand(i, 1);
  auto offset = i.integers(AttributeKey::OffsetDims);
  auto collapsed = i.integers(AttributeKey::CollapsedSliceDims);
  auto batching = i.integers(AttributeKey::OperandBatchingDims);
  auto sizes = i.integers(AttributeKey::SliceSizes);
  std::vector<int64_t> batch = batch_sizes(i, indices);
  require_indexed(i,
                  {AttributeKey::CollapsedSliceDims, AttributeKey::OperandBatchingDims,
                   AttributeKey::StartIndexMap, AttributeKey::StartIndicesBatchingDims},
                  operand, indices);
  LAMELLA_HLO_REQUIRE(static_cast<int64_t>(sizes.size()) == operand.rank(), i,
                      "expected slice_sizes to have ", operand.rank(), " sizes, got ",
                      braced(sizes));
  std::vector<int64_t> slice;
  for (int64_t d = 0; d < operand.rank(); ++d) {
    int64_t size = sizes[static_cast<size_t>(d)];
    LAMELLA_HLO_REQUIRE(size >= 0 && size <= operand.dimension(d), i,
                        "expected slice_sizes to be at most those of ", operand.to_string(false),
                        ", got ", braced(sizes));
    bool dropped = contains(collapsed, d) || contains(batching, d);
    LAMELLA_HLO_REQUIRE(!dropped || size <= 1, i, "expected slice_sizes to be 1 in dimension ", d,
                        ", which is collapsed, got ", size);
    if (!dropped) slice.push_back(size);
  }
  int64_t rank = static_cast<int64_t>(batch.size() + slice.size());
  LAMELLA_HLO_REQUIRE(offset.size() == slice.size(), i, "expected offset_dims to name ",
                      slice.size(), " dimensions, got ", braced(offset));
  require_dimensions(i, AttributeKey::OffsetDims, offset, rank);
  require_sorted(i, AttributeKey::OffsetDims);
  std::vector<int64_t> result;
  size_t next_slice = 0, next_batch = 0;
  for (int64_t d = 0; d < rank; ++d) {
    result.push_back(contains(offset, d) ? slice[next_slice++] : batch[next_batch++]);
  }
  return operand.with_dimensions(std::move(result));
}

Shape infer_scatter(const Instruction& i) {
  LAMELLA_HLO_REQUIRE(i.operands.size() >= 3 && i.operands.size() % 2 == 1, i,
                      "expected operands, indices and as many updates as operands, got ",
                      i.operands.size());
  size_t count = i.operands.size() / 2;
  const Shape& operand = array_operand(i, 0);
  const Shape& indices = array_operand(i, count);
  auto window = i.integers(AttributeKey::UpdateWindowDims);
  auto inserted = i.integers(AttributeKey::InsertedWindowDims);
  auto batching = i.integers(AttributeKey::InputBatchingDims);
  std::vector<int64_t> batch = batch_sizes(i, indices);
  require_indexed(
      i,
      {AttributeKey::InsertedWindowDims, AttributeKey::InputBatchingDims,
       AttributeKey::ScatterDimsToOperandDims, AttributeKey::ScatterIndicesBatchingDims},
      operand, indices);
  require_sorted(i, AttributeKey::UpdateWindowDims);
  std::vector<Shape> scalars(2 * count), results;
  for (size_t n = 0; n < count; ++n) {
    const Shape& target = array_operand(i, n);
    const Shape& update = array_operand(i, count + 1 + n);
    LAMELLA_HLO_REQUIRE(target.same_dimensions(operand), i,
                        "expected operands of the same dimensions, got ", operand.to_string(false),
                        " and ", target.to_string(false));
    LAMELLA_HLO_REQUIRE(update.element_type() == target.element_type(), i, "expected update ", n,
                        " to hold ", element_name(target.element_type()), ", got ",
                        update.to_string(false));
    require_dimensions(i, AttributeKey::UpdateWindowDims, window, update.rank());
    LAMELLA_HLO_REQUIRE(update.rank() == static_cast<int64_t>(batch.size() + window.size()), i,
                        "expected update ", n, " to have ", batch.size() + window.size(),
                        " dimensions, got ", update.to_string(false));
    std::vector<int64_t> bounds;
    for (int64_t d = 0; d < operand.rank(); ++d) {
      if (!contains(inserted, d) && !contains(batching, d)) bounds.push_back(operand.dimension(d));
    }
    LAMELLA_HLO_REQUIRE(bounds.size() == window.size(), i, "expected update_window_dims to name ",
                        bounds.size(), " dimensions, got ", braced(window));
    size_t next_batch = 0, next_window = 0;
    for (int64_t d = 0; d < update.rank(); ++d) {
      int64_t size = update.dimension(d);
      bool good = contains(window, d) ? size <= bounds[next_window++] : size == batch[next_batch++];
      LAMELLA_HLO_REQUIRE(good, i, "expected update ", n, " to match the indices and operand ",
                          operand.to_string(false), ", got ", update.to_string(false));
    }
    scalars[n] = scalars[count + n] = Shape::scalar(target.element_type());
    results.push_back(target);
  }
  Computation& combiner = computation_of(i, AttributeKey::ToApply);
  require_parameters(i, combiner, scalars);
  scalars.resize(count);
  Shape combined = count == 1 ? scalars[0] : Shape::tuple(std::move(scalars));
  LAMELLA_HLO_REQUIRE(combiner.root->shape->compatible(combined), i, "expected '", combiner.name,
                      "' to give ", combined.to_string(false), ", got ",
                      combiner.root->shape->to_string(false));
  return count == 1 ? results[0] : Shape::tuple(std::move(results));
}

}  // namespace lamella::hlo
