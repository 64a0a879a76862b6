// Gather: slices of one array, side by side.
//
// Note [Gather]
//   The result's dimensions are those of the batch (places of index vectors) and, where offset_dims
//   say, those of the slices; a slice's collapsed and batching dimensions, of size 1, are left out.
//   A slice that would reach beyond the operand is moved inside.
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

  // A collapsed dimension may have a size of 0, and then nothing to give.
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
