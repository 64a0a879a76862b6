// Scatter: windows of updates combined into arrays.
//
// Note [Scatter]
//   The inverse of gather: each index vector gives the position of a window of the updates in the
//   operand. A computation of the operands' elements and the updates' elements combines them. A
//   window that is not entirely within the operand is skipped. Windows are applied in the order of
//   the indices, so the last of several that set an element wins.
#include "lamella/graph/evaluate/elements.h"
#include "lamella/graph/evaluate/indices.h"
#include "lamella/graph/evaluate/numbers.h"
#include "lamella/graph/evaluate/rules.h"
#include "lamella/graph/evaluate/scalar_call.h"
#include "lamella/graph/evaluate/strided.h"

namespace lamella::hlo {
namespace {

// Combines the elements of windows into the targets.
class Combiner {
 public:
  Combiner(Step& step, std::span<Value> targets, std::span<const Value> updates)
      : call_(*step.instruction.computation(AttributeKey::ToApply), step.run) {
    const Computation& computation = *step.instruction.computation(AttributeKey::ToApply);
    replaces_ = targets.size() == 1 && computation.root == computation.parameters[1];
    type_ = updates[0].shape().element_type();
    for (Value& target : targets) arrays_.emplace_back(target);
    for (const Value& update : updates) arrays_.emplace_back(update);
    arguments_.resize(arrays_.size());
    results_.resize(targets.size());
  }

  struct Window {
    std::span<const int64_t> sizes;
    std::span<const int64_t> target_strides;
    std::span<const int64_t> update_strides;
  };
  // Applies one window, whose first elements are at the offsets `target` and `update`.
  void window(const Window& window, int64_t target, int64_t update) {
    if (replaces_) {
      copy_strided(type_, window.sizes, arrays_[1].at(update), window.update_strides,
                   arrays_[0].at(target), window.target_strides);
      return;
    }
    size_t count = results_.size();
    for (Counter place(window.sizes); place.valid(); place.next()) {
      int64_t to = target + place_of(place.index(), window.target_strides);
      int64_t from = update + place_of(place.index(), window.update_strides);
      for (size_t n = 0; n < count; ++n) {
        arguments_[n] = results_[n] = arrays_[n].at(to);
        arguments_[count + n] = arrays_[count + n].at(from);
      }
      call_(arguments_, results_);
    }
  }

 private:
  ScalarCall call_;
  bool replaces_ = false;
  ElementType type_;
  std::vector<Elements> arrays_;  // targets, then updates
  std::vector<const void*> arguments_;
  std::vector<void*> results_;
};

}  // namespace

Value evaluate_scatter(Step& step) {
  const Instruction& i = step.instruction;
  size_t count = step.operands.size() / 2;
  const Shape& shape = i.operand_shape(0);
  const Shape& update_shape = i.operand_shape(count + 1);
  auto rank = static_cast<size_t>(shape.rank());
  auto window_dims = i.integers(AttributeKey::UpdateWindowDims);
  auto inserted = i.integers(AttributeKey::InsertedWindowDims);
  auto batching = i.integers(AttributeKey::InputBatchingDims);
  IndexVectors vectors(step.operands[count], i.integer(AttributeKey::IndexVectorDim),
                       i.integers(AttributeKey::ScatterDimsToOperandDims), batching,
                       i.integers(AttributeKey::ScatterIndicesBatchingDims));

  std::vector<int64_t> target_strides = row_major_strides(shape.dimensions());
  std::vector<int64_t> all_strides = row_major_strides(update_shape.dimensions());
  // Strides of the updates: of the batch dimensions, and of the window with the operand's rank.
  std::vector<int64_t> batch_strides, update_strides(rank, 0), sizes(rank, 1);
  for (int64_t d = 0; d < update_shape.rank(); ++d) {
    if (!contains(window_dims, d)) batch_strides.push_back(all_strides[static_cast<size_t>(d)]);
  }
  size_t next = 0;
  for (size_t d = 0; d < rank; ++d) {
    auto dimension = static_cast<int64_t>(d);
    if (contains(inserted, dimension) || contains(batching, dimension)) continue;
    auto own = static_cast<size_t>(window_dims[next++]);
    update_strides[d] = all_strides[own];
    sizes[d] = update_shape.dimensions()[own];
  }

  std::vector<Value> targets;
  for (size_t n = 0; n < count; ++n) {
    const Shape* result = count == 1 ? i.shape : &i.shape->tuple_shapes()[n];
    targets.push_back(Value::reshaped(Value::writable(std::move(step.operands[n])), result));
  }
  std::span<const Value> updates = step.operands.subspan(count + 1);
  Combiner combiner(step, targets, updates);
  std::vector<int64_t> starts(rank);
  for (Counter batch(vectors.batch_sizes()); batch.valid(); batch.next()) {
    vectors.read(batch.index(), starts);
    bool inside = true;
    for (size_t d = 0; d < rank; ++d) {
      inside = inside && starts[d] >= 0 && starts[d] <= shape.dimensions()[d] - sizes[d];
    }
    if (!inside) continue;
    combiner.window({sizes, target_strides, update_strides}, place_of(starts, target_strides),
                    place_of(batch.index(), batch_strides));
  }
  return count == 1 ? std::move(targets[0]) : Value::tuple(i.shape, targets);
}

}  // namespace lamella::hlo
