// Collectives and transfers.
#include "lamella/graph/stablehlo/translation.h"

namespace lamella::hlo::stablehlo {
namespace {

void with_region(Translation& t, const Operation& op, AttributeList list) {
  t.require_regions(op, 1);
  list.computation(AttributeKey::ToApply, t.computation(op, 0));
  t.emit(op, t.operands(op), std::move(list));
}

}  // namespace

void translate_all_reduce(Translation& t, const Operation& op) {
  if (op.name != "cross-replica-sum") return with_region(t, op, t.attributes(op));
  Instructions operands = t.operands(op, 1);
  AttributeList list = t.attributes(op);
  list.computation(AttributeKey::ToApply, t.sum(operands[0]->shape->element_type()));
  t.emit(op, operands, std::move(list));
}
void translate_reduce_scatter(Translation& t, const Operation& op) {
  with_region(t, op, t.attributes(op));
}

namespace {
// The number of the root may follow the arrays; HLO gives it back behind them.
void with_root(Translation& t, const Operation& op, AttributeList list) {
  Instructions operands = t.operands(op);
  if (operands.size() <= op.results.size()) return t.emit(op, operands, std::move(list));
  std::vector<Shape> shapes;
  for (const Instruction* one : operands) shapes.push_back(*one->shape);
  t.give_parts(op,
               t.add(t.row(op).opcode, operands, std::move(list), Shape::tuple(std::move(shapes))));
}
}  // namespace
void translate_collective_broadcast(Translation& t, const Operation& op) {
  with_root(t, op, t.attributes(op));
}
void translate_collective_reduce(Translation& t, const Operation& op) {
  t.require_regions(op, 1);
  AttributeList list = t.attributes(op);
  list.computation(AttributeKey::ToApply, t.computation(op, 0));
  with_root(t, op, std::move(list));
}

// Parts along one dimension are exchanged, and joined along another; each operand for itself.
void translate_all_to_all(Translation& t, const Operation& op) {
  const int64_t split = t.integer(op, "split_dimension"), count = t.integer(op, "split_count");
  const int64_t joined = t.integer(op, "concat_dimension");
  Instructions results;
  for (Instruction* operand : t.operands(op)) {
    const Shape& shape = *operand->shape;
    auto is_dimension = [&](int64_t d) { return d >= 0 && d < shape.rank(); };
    if (!is_dimension(split) || !is_dimension(joined) || count <= 0 ||
        shape.dimension(split) % count != 0) {
      t.fail(op, "expected dimensions of ", shape.to_string(false), " and a number of parts, got ",
             split, ", ", joined, " and ", count);
    }
    AttributeList list = t.attributes(op), permutation(t.module());
    list.integers(AttributeKey::Dimensions, std::span(&split, 1));
    Instruction* made = t.add(Opcode::AllToAll, std::span(&operand, 1), std::move(list), shape);
    results.push_back(made);
    if (split == joined) continue;
    // The parts are contiguous along the dimension that was split; they move before the joined one.
    std::vector<int64_t> parts, order, moved, sizes;
    for (int64_t d = 0; d < shape.rank(); ++d) {
      const int64_t size = shape.dimension(d);
      if (d == split) parts.push_back(count);
      parts.push_back(d == split ? size / count : size);
      if (d == joined) order.push_back(split);
      order.push_back(d >= split ? d + 1 : d);
      sizes.push_back(d == split ? size / count : d == joined ? size * count : size);
    }
    for (int64_t d : order) moved.push_back(parts[static_cast<size_t>(d)]);
    made = t.add(Opcode::Reshape, {made}, shape.with_dimensions(parts));
    permutation.integers(AttributeKey::Dimensions, order);
    made = t.add(Opcode::Transpose, std::span(&made, 1), std::move(permutation),
                 shape.with_dimensions(moved));
    results.back() = t.add(Opcode::Reshape, {made}, shape.with_dimensions(sizes));
  }
  t.give(op, results);
}

// ---- Transfers: data and a token, in HLO's order -----------------------------------------------

namespace {

Instruction* transfer(Translation& t, Opcode opcode, std::span<Instruction* const> operands,
                      AttributeList list, const Shape& data, Opcode done) {
  const Shape parts = Shape::tuple({data, Shape::scalar(ElementType::U32), Shape::token()});
  Instruction* start = t.add(opcode, operands, list, parts);
  return t.add(done, std::span(&start, 1), std::move(list),
               done == Opcode::SendDone ? Shape::token() : Shape::tuple({data, Shape::token()}));
}
// Results that are data, and behind them a token, of an instruction that gives (data, token).
void give_data_and_token(Translation& t, const Operation& op, Instruction* made) {
  Instructions results;
  Instruction* data = t.element(made, 0);
  const size_t count = op.results.size() - 1;
  if (count == 1) {
    results.push_back(data);
  } else {
    for (size_t i = 0; i < count; ++i) results.push_back(t.element(data, i));
  }
  results.push_back(t.element(made, 1));
  t.give(op, results);
}
Shape data_shape(Translation& t, const Operation& op) {
  if (op.results.empty()) t.fail(op, "expected a token as the last result, got no result");
  std::vector<Shape> parts;
  for (size_t i = 0; i + 1 < op.results.size(); ++i) {
    parts.push_back(*t.shape(*op.results[i]->type, op.position));
  }
  return parts.size() == 1 ? parts[0] : Shape::tuple(std::move(parts));
}
// All operands but the last, packed, and the last, which is a token.
Instructions data_and_token(Translation& t, const Operation& op) {
  Instructions operands = t.operands(op);
  if (operands.empty()) t.fail(op, "expected a token as the last operand, got no operand");
  Instruction* token = operands.back();
  operands.pop_back();
  return {t.packed(operands), token};
}

}  // namespace

void translate_send(Translation& t, const Operation& op) {
  Instructions operands = data_and_token(t, op);
  t.give(op, {transfer(t, Opcode::Send, operands, t.attributes(op), *operands[0]->shape,
                       Opcode::SendDone)});
}
void translate_recv(Translation& t, const Operation& op) {
  Instructions operands = t.operands(op, 1);
  give_data_and_token(
      t, op,
      transfer(t, Opcode::Recv, operands, t.attributes(op), data_shape(t, op), Opcode::RecvDone));
}
void translate_infeed(Translation& t, const Operation& op) {
  Instructions operands = t.operands(op, 1);
  Shape shape = Shape::tuple({data_shape(t, op), Shape::token()});
  give_data_and_token(t, op, t.add(Opcode::Infeed, operands, t.attributes(op), shape));
}
void translate_outfeed(Translation& t, const Operation& op) {
  Instructions operands = data_and_token(t, op);
  AttributeList list = t.attributes(op);
  list.shape(AttributeKey::OutfeedShape, *operands[0]->shape);
  t.give(op, {t.add(Opcode::Outfeed, operands, std::move(list), Shape::token())});
}

// ---- Asynchronous pairs ------------------------------------------------------------------------

void translate_async_start(Translation& t, const Operation& op) {
  t.require_regions(op, 1);
  if (op.results.size() != 1) t.fail(op, "expected one result, got ", op.results.size());
  Instructions operands = t.operands(op);
  std::vector<Shape> shapes;
  for (const Instruction* one : operands) shapes.push_back(*one->shape);
  Computation* called = t.computation(op, 0);
  AttributeList list = t.attributes(op);
  list.computation(AttributeKey::Calls, called);
  op.results[0]->made =
      t.add(Opcode::AsyncStart, operands, std::move(list),
            Shape::tuple({Shape::tuple(std::move(shapes)), *called->root->shape}));
}
void translate_async_done(Translation& t, const Operation& op) {
  Instructions operands = t.operands(op, 1);
  if (operands[0]->opcode != Opcode::AsyncStart) t.fail(op, "expected the result of async_start");
  Instruction* made =
      t.add(Opcode::AsyncDone, operands, t.attributes(op), operands[0]->shape->tuple_shapes()[1]);
  op.results.size() == 1 ? t.give(op, {made}) : t.give_parts(op, made);
}

}  // namespace lamella::hlo::stablehlo
