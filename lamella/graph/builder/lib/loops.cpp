// Loops with a state of several values.
#include "lamella/graph/builder/lib/loops.h"

#include "lamella/graph/builder/functions.h"

namespace lamella::hlo {
namespace {

std::vector<Op> unpacked(Op tuple, size_t count) {
  std::vector<Op> ops;
  for (size_t i = 0; i < count; ++i) {
    ops.push_back(GetTupleElement(tuple, static_cast<int64_t>(i)));
  }
  return ops;
}

}  // namespace

StatusOr<std::vector<Op>> WhileLoopHelper(const WhileLoopHelperConditionFunction& condition,
                                          const WhileLoopHelperBodyFunction& body,
                                          Span<Op> initial_values, std::string_view name,
                                          Builder* builder) {
  std::vector<Shape> shapes;
  for (Op value : initial_values) {
    StatusOr<Shape> shape = builder->GetShape(value);
    if (!shape.ok()) return shape.status();
    shapes.push_back(*shape);
  }
  Shape state = Shape::tuple(shapes);
  size_t count = shapes.size();

  std::unique_ptr<Builder> condition_builder = builder->CreateSubBuilder(str(name, "_condition"));
  std::vector<Op> values = unpacked(Parameter(condition_builder.get(), 0, state, "values"), count);
  StatusOr<Op> goes_on = condition(values, condition_builder.get());
  if (!goes_on.ok()) return goes_on.status();
  StatusOr<BuiltComputation> built_condition = condition_builder->Build(*goes_on);
  if (!built_condition.ok()) return built_condition.status();

  std::unique_ptr<Builder> body_builder = builder->CreateSubBuilder(str(name, "_body"));
  values = unpacked(Parameter(body_builder.get(), 0, state, "values"), count);
  StatusOr<std::vector<Op>> next = body(values, body_builder.get());
  if (!next.ok()) return next.status();
  Op packed = Tuple(body_builder.get(), *next);
  StatusOr<BuiltComputation> built_body = body_builder->Build(packed);
  if (!built_body.ok()) return built_body.status();

  Op result = While(*built_condition, *built_body, Tuple(builder, initial_values));
  std::vector<Op> results = unpacked(result, count);
  if (!builder->first_error().ok()) return builder->first_error();
  return results;
}

StatusOr<std::vector<Op>> ForEachIndex(int64_t num_iterations, PrimitiveType num_iterations_type,
                                       const ForEachIndexBodyFunction& body,
                                       Span<Op> initial_values, std::string_view name,
                                       Builder* builder) {
  auto condition = [&](Span<Op> values, Builder* b) -> StatusOr<Op> {
    return Lt(values[0], ConstantR0WithType(b, num_iterations_type, num_iterations));
  };
  auto step = [&](Span<Op> values, Builder* b) -> StatusOr<std::vector<Op>> {
    StatusOr<std::vector<Op>> made = body(values[0], values.subspan(1), b);
    if (!made.ok()) return made.status();
    std::vector<Op> next{Add(values[0], ConstantR0WithType(b, num_iterations_type, 1))};
    next.insert(next.end(), made->begin(), made->end());
    return next;
  };
  std::vector<Op> values{ConstantR0WithType(builder, num_iterations_type, 0)};
  values.insert(values.end(), initial_values.begin(), initial_values.end());
  StatusOr<std::vector<Op>> results = WhileLoopHelper(condition, step, values, name, builder);
  if (!results.ok()) return results.status();
  return std::vector<Op>(results->begin() + 1, results->end());
}

}  // namespace lamella::hlo
