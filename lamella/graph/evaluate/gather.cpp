// Gather: collects slices of one array into an array.
//
// Note [Gather]
//   The result has the batch dimensions (those of the indices without the index vectors) and, at
//   the positions offset_dims, the dimensions of the slices without the collapsed and batching
//   ones, whose size is 1. Start indices are clamped so that slices lie within the operand.
#include "lamella/graph/evaluate/indices.h"
#include "lamella/graph/evaluate/numbers.h"
#include "lamella/graph/evaluate/rules.h"
#include "lamella/graph/evaluate/strided.h"

namespace lamella::hlo {

Value evaluate_gather(Step& step) {
  const Instruction& i = step.instruction;
  const Value& operand = step.operands[0];
  const Shape& shape = operand.shape();
  auto rank = static_cast<size_t>(shape.rank());
  auto slice_sizes = i.integers(AttributeKey::SliceSizes);
  auto offset_dims = i.integers(AttributeKey::OffsetDims);
  auto batching = i.integers(AttributeKey::OperandBatchingDims);
  auto collapsed = i.integers(AttributeKey::CollapsedSliceDims);
  IndexVectors vectors(step.operands[1], i.integer(AttributeKey::IndexVectorDim),
                       i.integers(AttributeKey::StartIndexMap), batching,
                       i.integers(AttributeKey::StartIndicesBatchingDims));

  std::vector<int64_t> operand_strides = row_major_strides(shape.dimensions());
  std::vector<int64_t> result_strides = row_major_strides(step.shape().dimensions());
  std::vector<int64_t> batch_strides, slice_strides(rank, 0);
  for (int64_t d = 0; d < step.shape().rank(); ++d) {
    if (!contains(offset_dims, d)) batch_strides.push_back(result_strides[static_cast<size_t>(d)]);
  }
  size_t next = 0;
  for (size_t d = 0; d < rank; ++d) {
    auto dimension = static_cast<int64_t>(d);
    if (contains(collapsed, dimension) || contains(batching, dimension)) continue;
    slice_strides[d] = result_strides[static_cast<size_t>(offset_dims[next++])];
  }

  // If a collapsed dimension has size 0, there are no elements to gather.
  if (contains(slice_sizes, 0)) return Value::zeros(i.shape);
  Value result = step.result();
  ElementType type = shape.element_type();
  std::vector<int64_t> starts(rank);
  for (Counter batch(vectors.batch_sizes()); batch.valid(); batch.next()) {
    vectors.read(batch.index(), starts);
    for (size_t d = 0; d < rank; ++d) {
      starts[d] = clamped_start(starts[d], shape.dimensions()[d], slice_sizes[d]);
    }
    copy_strided(
        type, slice_sizes, at_element(type, operand.data(), place_of(starts, operand_strides)),
        operand_strides, at_element(type, result.data(), place_of(batch.index(), batch_strides)),
        slice_strides);
  }
  return result;
}

}  // namespace lamella::hlo
