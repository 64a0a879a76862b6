// Scan: applies a computation along one dimension and carries values from step to step.
#include "lamella/graph/evaluate/elements.h"
#include "lamella/graph/evaluate/reduce_window.h"

namespace lamella::hlo {
namespace {

// An array viewed as [before, size, after], with the scanned dimension in the middle.
struct Along {
  int64_t before = 1, size, after = 1;

  Along(const Shape& shape, int64_t dimension) : size(shape.dimension(dimension)) {
    for (int64_t d = 0; d < shape.rank(); ++d) {
      if (d < dimension) before *= shape.dimension(d);
      if (d > dimension) after *= shape.dimension(d);
    }
  }
  // Calls f(offset in the array, offset in the slice) for each contiguous run of slice n.
  template <class F>
  void for_each(int64_t n, F&& f) const {
    for (int64_t b = 0; b < before; ++b) f((b * size + n) * after, b * after);
  }
};

}  // namespace

Value evaluate_scan(Step& step) {
  const Instruction& i = step.instruction;
  const Computation& body = *i.computation(AttributeKey::ToApply);
  int64_t dimension = i.integers(AttributeKey::Dimensions)[0];
  auto carries = static_cast<size_t>(i.integer(AttributeKey::NumCarries));
  bool reverse = i.flag(AttributeKey::IsReverse);
  size_t inputs = step.operands.size() - carries;
  std::vector<Value> results = make_results(step);
  size_t outputs = results.size() - carries;
  int64_t size = inputs != 0 ? step.operands[0].shape().dimension(dimension)
                             : results[0].shape().dimension(dimension);

  std::vector<Value> state(step.operands.begin() + static_cast<ptrdiff_t>(inputs),
                           step.operands.end());
  for (int64_t n = 0; n < size; ++n) {
    int64_t at = reverse ? size - 1 - n : n;
    std::vector<Value> taken;
    for (size_t k = 0; k < inputs; ++k) {
      Value slice = Value::uninitialized(body.parameters[k]->shape);
      Elements from(step.operands[k]), into(slice);
      Along along(step.operands[k].shape(), dimension);
      along.for_each(at, [&](int64_t place, int64_t in_slice) {
        std::memcpy(into.at(in_slice), from.at(place),
                    static_cast<size_t>(along.after) * into.size);
      });
      taken.push_back(std::move(slice));
    }
    for (Value& carried : state) taken.push_back(std::move(carried));
    Value given = step.run.call(body, taken);
    bool tuple = given.shape().is_tuple();
    for (size_t k = 0; k < outputs + carries; ++k) {
      Value part = tuple ? given.element(k) : given;
      if (k >= outputs) {
        state[k - outputs] = std::move(part);
        continue;
      }
      Elements from(part), into(results[k]);
      Along along(results[k].shape(), dimension);
      along.for_each(at, [&](int64_t place, int64_t in_slice) {
        std::memcpy(into.at(place), from.at(in_slice),
                    static_cast<size_t>(along.after) * into.size);
      });
    }
  }
  for (size_t k = 0; k < carries; ++k) results[outputs + k] = std::move(state[k]);
  return join_results(step, results);
}

}  // namespace lamella::hlo
