// Shape inference of tuples, control flow, calls, and instructions whose text states their shape.
#include "lamella/graph/hlo/infer.h"

namespace lamella::hlo {
namespace {

std::vector<Shape> operand_shapes(const Instruction& i, size_t first = 0) {
  std::vector<Shape> shapes;
  for (size_t n = first; n < i.operands.size(); ++n) shapes.push_back(i.operand_shape(n));
  return shapes;
}

}  // namespace

Shape infer_while(const Instruction& i) {
  const Shape& state = i.operand_shape(0);
  Computation& condition = computation_of(i, AttributeKey::Condition);
  Computation& body = computation_of(i, AttributeKey::Body);
  std::vector<Shape> one{state};
  require_parameters(i, condition, one);
  require_parameters(i, body, one);
  LAMELLA_HLO_REQUIRE(condition.root->shape->compatible(Shape::scalar(ElementType::PRED)), i,
                      "expected '", condition.name, "' to give pred[], got ",
                      condition.root->shape->to_string(false));
  LAMELLA_HLO_REQUIRE(body.root->shape->compatible(state), i, "expected '", body.name, "' to give ",
                      state.to_string(false), ", got ", body.root->shape->to_string(false));
  return state;
}

Shape infer_conditional(const Instruction& i) {
  LAMELLA_HLO_REQUIRE(!i.operands.empty(), i, "expected operands, got none");
  const Shape& which = array_operand(i, 0);
  std::vector<Computation*> branches;
  if (const Attribute* found = i.find(AttributeKey::BranchComputations)) {
    auto listed = found->computations();
    branches.assign(listed.begin(), listed.end());
    LAMELLA_HLO_REQUIRE(which.is_scalar() && which.element_type() == ElementType::S32, i,
                        "expected operand 0 to be s32[], got ", which.to_string(false));
  } else {
    branches = {&computation_of(i, AttributeKey::TrueComputation),
                &computation_of(i, AttributeKey::FalseComputation)};
    LAMELLA_HLO_REQUIRE(which.is_scalar() && which.element_type() == ElementType::PRED, i,
                        "expected operand 0 to be pred[], got ", which.to_string(false));
  }
  LAMELLA_HLO_REQUIRE(!branches.empty() && i.operands.size() == branches.size() + 1, i,
                      "expected an operand for each of ", branches.size(), " branches, got ",
                      i.operands.size() - 1);
  for (size_t b = 0; b < branches.size(); ++b) {
    std::vector<Shape> one{i.operand_shape(b + 1)};
    require_parameters(i, *branches[b], one);
    LAMELLA_HLO_REQUIRE(branches[b]->root->shape->compatible(*branches[0]->root->shape), i,
                        "expected '", branches[b]->name, "' to give ",
                        branches[0]->root->shape->to_string(false), ", got ",
                        branches[b]->root->shape->to_string(false));
  }
  return *branches[0]->root->shape;
}

namespace {

const Shape* part_of(const Instruction& i, const Shape* shape, std::span<const int64_t> index) {
  for (int64_t n : index) {
    LAMELLA_HLO_REQUIRE(n >= 0 && static_cast<size_t>(n) < shape->tuple_shapes().size(), i,
                        "expected output_to_operand_aliasing to name an element of ",
                        shape->to_string(false), ", got ", braced(index));
    shape = &shape->tuple_shapes()[static_cast<size_t>(n)];
  }
  return shape;
}
}  // namespace

void require_aliases(const Instruction& i) {
  if (const Attribute* found = i.find(AttributeKey::OutputToOperandAliasing)) {
    for (const OperandAlias& alias : found->aliases()) {
      LAMELLA_HLO_REQUIRE(
          alias.operand >= 0 && static_cast<size_t>(alias.operand) < i.operands.size(), i,
          "expected output_to_operand_aliasing to name an operand below ", i.operands.size(),
          ", got ", alias.operand);
      const Shape* output = part_of(i, i.shape, alias.output);
      const Shape* input =
          part_of(i, &i.operand_shape(static_cast<size_t>(alias.operand)), alias.operand_index);
      // A buffer has the memory of its array.
      if (output->is_buffer()) output = &output->tuple_shapes()[0];
      if (input->is_buffer()) input = &input->tuple_shapes()[0];
      LAMELLA_HLO_REQUIRE(output->compatible(*input), i,
                          "expected output_to_operand_aliasing to join equal shapes, got ",
                          output->to_string(false), " and ", input->to_string(false));
    }
  }
}
Shape infer_custom_call(const Instruction& i) {
  LAMELLA_HLO_REQUIRE(i.has(AttributeKey::CustomCallTarget), i,
                      "expected the attribute custom_call_target, got none");
  if (const Attribute* found = i.find(AttributeKey::Schedule)) {
    std::string_view word = found->text();
    LAMELLA_HLO_REQUIRE(
        word == "SCHEDULE_NONE" || word == "SCHEDULE_EARLIEST" || word == "SCHEDULE_LATEST", i,
        "expected schedule to be SCHEDULE_NONE, SCHEDULE_EARLIEST or SCHEDULE_LATEST, got '", word,
        "'");
  }
  if (const Attribute* found = i.find(AttributeKey::OperandLayoutConstraints)) {
    auto shapes = found->shapes();
    LAMELLA_HLO_REQUIRE(shapes.size() == i.operands.size(), i,
                        "expected operand_layout_constraints for ", i.operands.size(),
                        " operands, got ", shapes.size());
    for (size_t n = 0; n < shapes.size(); ++n) {
      LAMELLA_HLO_REQUIRE(shapes[n]->compatible(i.operand_shape(n)), i,
                          "expected operand_layout_constraints to give operand ", n, " as ",
                          i.operand_shape(n).to_string(false), ", got ",
                          shapes[n]->to_string(false));
    }
  }
  require_aliases(i);
  return *i.shape;
}

// The operands are the two parameters of the distribution: scalars of the result's element type. A
// third one, which gives the sizes, repeats the stated shape.
Shape infer_rng(const Instruction& i) {
  LAMELLA_HLO_REQUIRE(i.shape->is_array(), i, "expected an array, got ", i.shape->to_string(false));
  LAMELLA_HLO_REQUIRE(i.operands.size() == 2 || i.operands.size() == 3, i,
                      "expected 2 operands, got ", i.operands.size());
  LAMELLA_HLO_REQUIRE(i.operands.size() == 2 || is_integral(array_operand(i, 2).element_type()), i,
                      "expected operand 2 to be sizes, got ", i.operand_shape(2).to_string(false));
  ElementType type = i.shape->element_type();
  for (size_t n = 0; n < 2; ++n) {
    const Shape& shape = array_operand(i, n);
    LAMELLA_HLO_REQUIRE(shape.is_scalar() && shape.element_type() == type, i, "expected operand ",
                        n, " to be ", element_name(type), "[], got ", shape.to_string(false));
  }
  return *i.shape;
}

// The result is (next state, bits), or the bits alone.
Shape infer_rng_bit_generator(const Instruction& i) {
  const Shape& state = array_operand(i, 0);
  const Shape& stated = *i.shape;
  bool both = stated.is_tuple();
  LAMELLA_HLO_REQUIRE(!both || stated.tuple_shapes().size() == 2, i,
                      "expected a tuple of the state and the bits, got ", stated.to_string(false));
  const Shape& bits = both ? stated.tuple_shapes()[1] : stated;
  LAMELLA_HLO_REQUIRE(is_integral(bits.element_type()) || is_floating(bits.element_type()), i,
                      "expected bits as integers, got ", bits.to_string(false));
  return both ? Shape::tuple({state, bits}) : bits;
}

Shape infer_rng_get_and_update_state(const Instruction&) {
  return Shape::array(ElementType::U64, {2});
}

Shape infer_tuple(const Instruction& i) { return Shape::tuple(operand_shapes(i)); }

Shape infer_get_tuple_element(const Instruction& i) {
  const auto& elements = i.operand_shape(0).tuple_shapes();
  int64_t index = i.integer(AttributeKey::Index, -1);
  LAMELLA_HLO_REQUIRE(
      i.operand_shape(0).is_tuple() && index >= 0 && static_cast<size_t>(index) < elements.size(),
      i, "expected index to name an element of ", i.operand_shape(0).to_string(false), ", got ",
      index);
  return elements[static_cast<size_t>(index)];
}

Shape infer_call(const Instruction& i) {
  AttributeKey key = i.has(AttributeKey::ToApply) ? AttributeKey::ToApply : AttributeKey::Calls;
  Computation& called = computation_of(i, key);
  require_parameters(i, called, operand_shapes(i));
  require_aliases(i);
  return *called.root->shape;
}

Shape infer_after_all(const Instruction&) { return Shape::token(); }
Shape infer_operand(const Instruction& i) { return i.operand_shape(0); }
Shape infer_constant(const Instruction& i) { return i.literal->shape(); }
Shape infer_stated(const Instruction& i) { return *i.shape; }

}  // namespace lamella::hlo
