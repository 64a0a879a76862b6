// Functions, control flow, tuples, constants and tokens.
#include <algorithm>
#include <cstring>

#include "lamella/graph/stablehlo/names.h"
#include "lamella/graph/stablehlo/translation.h"

namespace lamella::hlo::stablehlo {

// The opcode of the table on the same operands, with the attributes and regions that it maps.
void translate_plain(Translation& t, const Operation& op) {
  const OperationRow& row = t.row(op);
  Instructions operands = t.operands(op);
  const int wanted = opcode_operands(row.opcode);
  if (wanted >= 0) operands = t.operands(op, static_cast<size_t>(wanted));
  AttributeList list = t.attributes(op);
  if (!op.regions.empty()) t.require_regions(op, row.regions.size());
  for (size_t i = 0; i < row.regions.size(); ++i) {
    if (row.regions[i]) list.computation(*row.regions[i], t.computation(op, i));
  }
  t.emit(op, operands, std::move(list));
}

void translate_func(Translation& t, const Operation& op) {
  t.fail(op, "expected functions within the module alone");
}
void translate_return(Translation& t, const Operation& op) {
  t.fail(op, "expected 'return' at the end of a region");
}
void translate_call(Translation& t, const Operation& op) {
  const auto& callee = t.function(op, t.text(op, "callee"));
  AttributeList list = t.attributes(op);
  list.computation(AttributeKey::ToApply, callee.computation);
  t.emit(op, t.operands(op), std::move(list));
}

// Elements of a type narrower than a byte are bytes, whose upper bits are the sign's here.
void translate_constant(Translation& t, const Operation& op) {
  const Attribute& value = t.attribute(op, "value");
  if (value.kind != Attribute::Kind::Elements)
    t.fail(op, "expected 'value' to be the elements of a tensor");
  const Shape& shape = *t.shape(*value.type, op.position);
  const ElementType type = shape.element_type();
  Literal literal(value.is_splat ? Shape::scalar(type) : shape);
  if (literal.bytes() != value.text.size()) {
    t.fail(op, "expected ", literal.bytes(), " bytes of elements, got ", value.text.size());
  }
  if (!value.text.empty()) std::memcpy(literal.data(), value.text.data(), literal.bytes());
  if (element_bits(type) < 8 && is_integral(type)) {
    for (int8_t& one : literal.values<int8_t>()) {
      one = static_cast<int8_t>(integer_of_bits(static_cast<uint8_t>(one), type));
    }
  }
  Instruction* made = t.constant(std::move(literal));
  if (value.is_splat) made = t.broadcast(made, shape);
  t.give(op, {made});
}

// What is carried, and behind it what the regions use from outside.
void translate_while(Translation& t, const Operation& op) {
  t.require_regions(op, 2);
  const std::vector<Value*> captured = t.captured(op);
  Instructions carried = t.operands(op);
  for (const Value* one : captured) carried.push_back(one->made);
  AttributeList list = t.attributes(op);
  list.computation(AttributeKey::Condition, t.packed_computation(op, 0, captured, false));
  list.computation(AttributeKey::Body, t.packed_computation(op, 1, captured, true));
  Instruction* start = t.packed(carried);
  Instruction* made = t.add(Opcode::While, std::span(&start, 1), std::move(list), *start->shape);
  carried.size() == 1 && op.results.size() == 1 ? t.give(op, {made}) : t.give_parts(op, made);
}

// if and case: each branch takes all that any of them uses from outside.
void translate_case(Translation& t, const Operation& op) {
  if (op.regions.empty()) t.fail(op, "expected a branch, got none");
  Instructions operands = t.operands(op, 1);
  const std::vector<Value*> captured = t.captured(op);
  Instructions parts;
  for (const Value* one : captured) parts.push_back(one->made);
  operands.insert(operands.end(), op.regions.size(), t.packed(parts));
  std::vector<Computation*> branches;
  for (size_t i = 0; i < op.regions.size(); ++i) {
    branches.push_back(t.packed_computation(op, i, captured, false));
  }
  AttributeList list = t.attributes(op);
  if (op.name == "if") {
    t.require_regions(op, 2);
    list.computation(AttributeKey::TrueComputation, branches[0]);
    list.computation(AttributeKey::FalseComputation, branches[1]);
  } else {
    list.computations(AttributeKey::BranchComputations, branches);
  }
  t.emit(op, operands, std::move(list));
}

void translate_optimization_barrier(Translation& t, const Operation& op) {
  Instruction* all = t.packed(t.operands(op));
  t.emit(op, std::span(&all, 1), t.attributes(op));
}

}  // namespace lamella::hlo::stablehlo
