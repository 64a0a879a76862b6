// Shape inference of collectives, transfers, and start/done pairs. The number of devices is not
// known here, so sizes that depend on it are taken from the stated shape.
#include "lamella/graph/hlo/infer.h"

namespace lamella::hlo {

// The shape of the only operand, or the tuple of all operands' shapes.
Shape infer_operands(const Instruction& i) {
  LAMELLA_HLO_REQUIRE(!i.operands.empty(), i, "expected operands, got none");
  // Between buffers: input, output, and where their slices begin.
  if (i.has(AttributeKey::SliceSizesOfPairs)) {
    LAMELLA_HLO_REQUIRE(i.operands.size() == 4, i, "expected 4 operands with slice_sizes, got ",
                        i.operands.size());
    return i.operand_shape(1);
  }
  std::vector<Shape> shapes;
  for (size_t n = 0; n < i.operands.size(); ++n) shapes.push_back(array_operand(i, n));
  // A sum may be wider or narrower than its operands.
  bool adds = i.opcode == Opcode::AllReduce || i.opcode == Opcode::AllReduceStart;
  for (size_t n = 0; adds && n < shapes.size(); ++n) {
    bool one = shapes.size() == 1 && !i.shape->is_tuple();
    if (!one && n >= i.shape->tuple_shapes().size()) break;
    ElementType stated = one ? i.shape->element_type() : i.shape->tuple_shapes()[n].element_type();
    if (is_floating(stated) && is_floating(shapes[n].element_type())) {
      shapes[n] = shapes[n].with_element_type(stated);
    }
  }
  if (i.operands.size() == 1 && !i.shape->is_tuple()) return shapes[0];
  return Shape::tuple(std::move(shapes));
}

namespace {
// The elements of the stated shape, which must be a tuple of at least `parts` elements.
const std::vector<Shape>& stated_parts(const Instruction& i, size_t parts) {
  LAMELLA_HLO_REQUIRE(i.shape->is_tuple() && i.shape->tuple_shapes().size() >= parts, i,
                      "expected a tuple of at least ", parts, " parts, got ",
                      i.shape->to_string(false));
  return i.shape->tuple_shapes();
}
void require_part(const Instruction& i, const char* what, const Shape& given,
                  const Shape& expected) {
  LAMELLA_HLO_REQUIRE(given.compatible(expected), i, "expected ", what, " to be ",
                      expected.to_string(false), ", got ", given.to_string(false));
}
Shape part_of_operand(const Instruction& i, size_t part) {
  LAMELLA_HLO_REQUIRE(!i.operands.empty(), i, "expected an operand, got none");
  const Shape& operand = i.operand_shape(0);
  LAMELLA_HLO_REQUIRE(operand.is_tuple() && operand.tuple_shapes().size() > part, i,
                      "expected operand 0 to be the tuple of a start, got ",
                      operand.to_string(false));
  return operand.tuple_shapes()[part];
}
void require_token(const Instruction& i, size_t operand) {
  LAMELLA_HLO_REQUIRE(i.operand_shape(operand).is_token(), i, "expected operand ", operand,
                      " to be a token, got ", i.operand_shape(operand).to_string(false));
}

void require_start(const Instruction& i, const std::vector<Shape>& parts) {
  std::vector<Shape> operands;
  for (const Instruction* operand : i.operands) operands.push_back(*operand->shape);
  require_part(i, "part 0", parts[0],
               parts[0].is_tuple() ? Shape::tuple(operands) : array_operand(i, 0));
}
void require_numbers(const Instruction& i, const std::vector<Shape>& parts) {
  for (size_t n = 2; n < parts.size(); ++n) {
    LAMELLA_HLO_REQUIRE(parts[n].is_array(), i, "expected part ", n, " to be an array, got ",
                        parts[n].to_string(false));
  }
}

}  // namespace

Shape infer_start(const Instruction& i) {
  const std::vector<Shape>& parts = stated_parts(i, 2);
  require_start(i, parts);
  require_numbers(i, parts);
  return *i.shape;
}

Shape infer_collective_permute_start(const Instruction& i) {
  const std::vector<Shape>& parts = stated_parts(i, 2);
  if (i.has(AttributeKey::SliceSizesOfPairs)) {
    LAMELLA_HLO_REQUIRE(i.operands.size() == 4, i, "expected 4 operands with slice_sizes, got ",
                        i.operands.size());
    require_part(i, "part 0", parts[0], i.operand_shape(0));
    require_part(i, "part 1", parts[1], i.operand_shape(1));
    return *i.shape;
  }
  require_start(i, parts);
  require_part(i, "part 1", parts[1], parts[0]);
  require_numbers(i, parts);
  return *i.shape;
}

Shape infer_copy_start(const Instruction& i) {
  const std::vector<Shape>& parts = stated_parts(i, 2);
  require_part(i, "part 0", parts[0], i.operand_shape(0));
  require_part(i, "part 1", parts[1], i.operand_shape(0));
  return *i.shape;
}

Shape infer_async_start(const Instruction& i) {
  const std::vector<Shape>& parts = stated_parts(i, 2);
  std::vector<Shape> operands;
  for (const Instruction* operand : i.operands) operands.push_back(*operand->shape);
  Computation& called = computation_of(i, AttributeKey::Calls);
  require_parameters(i, called, operands);
  require_part(i, "part 1", parts[1], *called.root->shape);
  require_part(i, "part 0", parts[0], Shape::tuple(std::move(operands)));
  require_aliases(i);
  return *i.shape;
}

Shape infer_async_update(const Instruction& i) {
  part_of_operand(i, 1);
  return i.operand_shape(0);
}

Shape infer_copy_done(const Instruction& i) { return part_of_operand(i, 0); }
Shape infer_done(const Instruction& i) { return part_of_operand(i, 1); }

Shape infer_infeed(const Instruction& i) {
  require_token(i, 0);
  return Shape::tuple({stated_parts(i, 2)[0], Shape::token()});
}

Shape infer_outfeed(const Instruction& i) {
  require_token(i, 1);
  return Shape::token();
}

Shape infer_send(const Instruction& i) {
  require_token(i, 1);
  return Shape::tuple({i.operand_shape(0), Shape::scalar(ElementType::U32), Shape::token()});
}

Shape infer_recv(const Instruction& i) {
  require_token(i, 0);
  return Shape::tuple({stated_parts(i, 3)[0], Shape::scalar(ElementType::U32), Shape::token()});
}

Shape infer_send_done(const Instruction& i) {
  part_of_operand(i, 2);
  return Shape::token();
}

Shape infer_recv_done(const Instruction& i) {
  part_of_operand(i, 2);
  return Shape::tuple({part_of_operand(i, 0), Shape::token()});
}

Shape infer_ragged_all_to_all(const Instruction& i) {
  const Shape& input = array_operand(i, 0);
  const Shape& output = array_operand(i, 1);
  bool fits = input.rank() >= 1 && input.rank() == output.rank() &&
              input.element_type() == output.element_type();
  for (int64_t d = 1; fits && d < input.rank(); ++d) {
    fits = input.dimension(d) == output.dimension(d);
  }
  LAMELLA_HLO_REQUIRE(fits, i, "expected operands 0 and 1 to differ in their first size only, got ",
                      input.to_string(false), " and ", output.to_string(false));
  const Shape& first = array_operand(i, 2);
  for (size_t n = 2; n < 6; ++n) {
    const Shape& numbers = array_operand(i, n);
    LAMELLA_HLO_REQUIRE(is_integral(numbers.element_type()) && numbers.same_dimensions(first), i,
                        "expected operands 2 to 5 to be integers of the same dimensions, got ",
                        numbers.to_string(false), " as operand ", n);
  }
  return output;
}

Shape infer_stated_arrays(const Instruction& i) {
  infer_operands(i);
  return *i.shape;
}

Shape infer_id(const Instruction&) { return Shape::scalar(ElementType::U32); }

}  // namespace lamella::hlo
