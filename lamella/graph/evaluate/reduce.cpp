// Reduce and map: a computation applied to the elements of arrays.
#include <algorithm>

#include "lamella/core/interrupt.h"
#include "lamella/graph/evaluate/elements.h"
#include "lamella/graph/evaluate/numbers.h"
#include "lamella/graph/evaluate/reduce_window.h"
#include "lamella/graph/evaluate/scalar_call.h"

namespace lamella::hlo {
namespace {

// Sums floats in double and rounds once: the order of a reduction is unspecified, and so is its
// rounding error, and a reference should be as accurate as possible.
template <class Number>
void add_up(const Value& operand, const Value& initial, const Value& result,
            std::span<const int64_t> starts, std::span<const int64_t> offsets) {
  for (size_t r = 0; r < starts.size(); ++r) {
    count_steps(static_cast<int64_t>(offsets.size()));
    double sum = Number::load(initial.data(), 0);
    for (int64_t offset : offsets) sum += Number::load(operand.data(), starts[r] + offset);
    Number::store(result.data(), static_cast<int64_t>(r), static_cast<typename Number::Work>(sum));
  }
}

}  // namespace

Value evaluate_reduce(Step& step) {
  const Instruction& i = step.instruction;
  size_t count = step.operands.size() / 2;
  auto reduced = i.integers(AttributeKey::Dimensions);
  const Shape& shape = step.operands[0].shape();
  std::vector<int64_t> strides = row_major_strides(shape.dimensions());
  std::vector<int64_t> sizes[2], steps[2];  // of kept and of reduced dimensions
  for (int64_t d = 0; d < shape.rank(); ++d) {
    int which = contains(reduced, d) ? 1 : 0;
    sizes[which].push_back(shape.dimension(d));
    steps[which].push_back(strides[static_cast<size_t>(d)]);
  }
  std::vector<int64_t> starts = offsets_of(sizes[0], steps[0]);
  std::vector<int64_t> offsets = offsets_of(sizes[1], steps[1]);

  std::vector<Value> results = make_results(step);
  ScalarCall call(*i.computation(AttributeKey::ToApply), step.run);
  if (count == 1 && call.single() == Opcode::Add && is_floating(shape.element_type())) {
    visit_floats(shape.element_type(), [&]<class Number>() {
      add_up<Number>(step.operands[0], step.operands[1], results[0], starts, offsets);
    });
    return std::move(results[0]);
  }

  std::vector<Elements> from, initial, into;
  for (size_t n = 0; n < count; ++n) {
    from.emplace_back(step.operands[n]);
    initial.emplace_back(step.operands[count + n]);
    into.emplace_back(results[n]);
  }
  std::vector<const void*> arguments(2 * count);  // the accumulators, then the elements
  std::vector<void*> reached(count);
  for (size_t r = 0; r < starts.size(); ++r) {
    for (size_t n = 0; n < count; ++n) {
      arguments[n] = reached[n] = into[n].at(static_cast<int64_t>(r));
      std::memcpy(reached[n], initial[n].data, into[n].size);
    }
    for (int64_t offset : offsets) {
      for (size_t n = 0; n < count; ++n) arguments[count + n] = from[n].at(starts[r] + offset);
      count_steps(8);
      call(arguments, reached);
    }
  }
  return join_results(step, results);
}

Value evaluate_map(Step& step) {
  Value result = step.result();
  ScalarCall call(*step.instruction.computation(AttributeKey::ToApply), step.run);
  std::vector<Elements> from(step.operands.begin(), step.operands.end());
  Elements into(result);
  std::vector<const void*> arguments(from.size());
  for (int64_t e = 0; e < step.shape().elements(); ++e) {
    for (size_t n = 0; n < from.size(); ++n) arguments[n] = from[n].at(e);
    count_steps(8);
    void* out = into.at(e);
    call(arguments, {&out, 1});
  }
  return result;
}

}  // namespace lamella::hlo
