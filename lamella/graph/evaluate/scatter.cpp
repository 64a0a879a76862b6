// Scatter: windows of updates combined into arrays.
//
// Note [Scatter]
//   The mirror of gather: each index vector says where in the operand a window of the updates lies.
//   Elements are combined by a computation that takes the operands' elements and then the updates'.
//   A window that does not lie within the operand as a whole is skipped. Windows are taken in the
//   order of the indices, so that of two that set one element the last one stays.
//   A combiner that is one operation of its two parameters is done without calling it.
#include <cstring>

#include "lamella/graph/evaluate/binary.h"
#include "lamella/graph/evaluate/indices.h"
#include "lamella/graph/evaluate/numbers.h"
#include "lamella/graph/evaluate/rules.h"
#include "lamella/graph/evaluate/strided.h"

namespace lamella::hlo {
namespace {

// How elements of one window are combined, in the order of the window. `targets` and `updates` are
// the first elements, strides those of the window's dimensions.
class Combiner {
 public:
  Combiner(Step& step, size_t count)
      : step_(step),
        count_(count),
        computation_(*step.instruction.computation(AttributeKey::ToApply)) {
    const Instruction* root = computation_.root;
    if (count != 1) return;
    const Instruction* element = computation_.parameters[0];
    const Instruction* update = computation_.parameters[1];
    if (root == update) {
      replaces_ = true;
    } else if (is_binary_element_operation(root->opcode) &&
               ((root->operands[0] == element && root->operands[1] == update) ||
                (root->operands[0] == update && root->operands[1] == element))) {
      operation_ = root;
      swapped_ = root->operands[0] == update;
    }
  }

  struct Window {
    std::span<const int64_t> sizes;
    std::span<const int64_t> target_strides;
    std::span<const int64_t> update_strides;
  };
  void window(const Window& window, std::span<Value> targets, int64_t target,
              std::span<const Value> updates, int64_t update) {
    if (replaces_) {
      ElementType type = updates[0].shape().element_type();
      copy_strided(type, window.sizes, at_element(type, updates[0].data(), update),
                   window.update_strides, at_element(type, targets[0].data(), target),
                   window.target_strides);
      return;
    }
    for (Counter place(window.sizes); place.valid(); place.next()) {
      int64_t to = target + place_of(place.index(), window.target_strides);
      int64_t from = update + place_of(place.index(), window.update_strides);
      if (operation_ != nullptr) {
        operate(targets[0], to, updates[0], from);
      } else {
        call(targets, to, updates, from);
      }
    }
  }

 private:
  void operate(Value& target, int64_t to, const Value& update, int64_t from) {
    ElementType type = target.shape().element_type();
    void* element = at_element(type, target.data(), to);
    const void* other = at_element(type, static_cast<const void*>(update.data()), from);
    binary_elements(*operation_, operation_->opcode, type, swapped_ ? other : element,
                    swapped_ ? element : other, element, 1);
  }
  Value scalar(size_t parameter, const Value& array, int64_t place) const {
    Value value = Value::uninitialized(computation_.parameters[parameter]->shape);
    std::memcpy(value.data(), at_element(array.shape().element_type(), array.data(), place),
                value.bytes());
    return value;
  }
  void call(std::span<Value> targets, int64_t to, std::span<const Value> updates, int64_t from) {
    std::vector<Value> arguments;
    for (size_t n = 0; n < count_; ++n) arguments.push_back(scalar(n, targets[n], to));
    for (size_t n = 0; n < count_; ++n) arguments.push_back(scalar(count_ + n, updates[n], from));
    Value combined = step_.run.call(computation_, arguments);
    for (size_t n = 0; n < count_; ++n) {
      const Value& one = combined.shape().is_tuple() ? combined.element(n) : combined;
      std::memcpy(at_element(one.shape().element_type(), targets[n].data(), to), one.data(),
                  one.bytes());
    }
  }

  Step& step_;
  size_t count_;
  const Computation& computation_;
  bool replaces_ = false;
  const Instruction* operation_ = nullptr;
  bool swapped_ = false;
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
  // Of the batch, and of a window as large as the operand's rank.
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
  Combiner combiner(step, count);
  std::vector<int64_t> starts(rank);
  for (Counter batch(vectors.batch_sizes()); batch.valid(); batch.next()) {
    vectors.read(batch.index(), starts);
    bool inside = true;
    for (size_t d = 0; d < rank; ++d) {
      inside = inside && starts[d] >= 0 && starts[d] <= shape.dimensions()[d] - sizes[d];
    }
    if (!inside) continue;
    combiner.window({sizes, target_strides, update_strides}, targets,
                    place_of(starts, target_strides), updates,
                    place_of(batch.index(), batch_strides));
  }
  return count == 1 ? std::move(targets[0]) : Value::tuple(i.shape, targets);
}

}  // namespace lamella::hlo
