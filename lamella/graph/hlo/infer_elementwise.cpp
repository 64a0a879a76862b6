// Shape inference of elementwise operations.
#include "lamella/graph/hlo/infer.h"

#include <array>

namespace lamella::hlo {
namespace {

constexpr std::array kTakes = {
#define LAMELLA_HLO_OPCODE(name, text, operands, family, takes, ...) Takes::takes,
#include "lamella/graph/hlo/opcode.def"
};
void require_type(const Instruction& i, ElementType type) {
  static constexpr const char* kWanted[] = {
      "none",
      "any",
      "numbers",
      "pred, integers or floating-point numbers",
      "integers",
      "pred or integers",
      "integers or floating-point numbers",
      "floating-point numbers",
      "floating-point or complex numbers",
  };
  Takes takes = kTakes[static_cast<size_t>(i.opcode)];
  LAMELLA_HLO_REQUIRE(is_taken(takes, type), i, "expected ", kWanted[static_cast<size_t>(takes)],
                      ", got ", element_name(type));
}

// Checks that the operands have equal element types and dimensions, and returns the first's shape.
const Shape& same_operands(const Instruction& i) {
  const Shape& first = array_operand(i, 0);
  for (size_t n = 1; n < i.operands.size(); ++n) {
    const Shape& other = array_operand(i, n);
    LAMELLA_HLO_REQUIRE(other.compatible(first), i, "expected operands of one shape, got ",
                        first.to_string(false), " and ", other.to_string(false));
  }
  return first;
}
}  // namespace

bool is_taken(Takes takes, ElementType type) {
  switch (takes) {
    case Takes::Any:
      return true;
    case Takes::Numbers:
      return type != ElementType::PRED;
    case Takes::Ordered:
      return !is_complex(type);
    case Takes::Integers:
      return is_integral(type);
    case Takes::Bits:
      return is_integral(type) || type == ElementType::PRED;
    case Takes::Reals:
      return is_integral(type) || is_floating(type);
    case Takes::Floats:
      return is_floating(type);
    case Takes::Inexact:
      return is_floating(type) || is_complex(type);
    default:
      return false;
  }
}
bool takes_type(Opcode opcode, ElementType type) {
  return is_taken(kTakes[static_cast<size_t>(opcode)], type);
}

// The stated shape must have the operand's dimensions; its element type is its own.
Shape infer_stated_type(const Instruction& i) {
  const Shape& operand = array_operand(i, 0);
  LAMELLA_HLO_REQUIRE(i.shape->is_array() && i.shape->same_dimensions(operand), i,
                      "expected the dimensions of ", operand.to_string(false), ", got ",
                      i.shape->to_string(false));
  return *i.shape;
}

Shape infer_bitcast_convert(const Instruction& i) {
  const Shape& operand = array_operand(i, 0);
  LAMELLA_HLO_REQUIRE(i.shape->is_array(), i, "expected an array, got ", i.shape->to_string(false));
  int from = element_bits(operand.element_type()), to = element_bits(i.shape->element_type());
  std::vector<int64_t> sizes = copy_of(operand.dimensions());
  // A wider type absorbs the last dimension, a narrower type appends one.
  if (to > from) {
    LAMELLA_HLO_REQUIRE(!sizes.empty() && to % from == 0 && sizes.back() == to / from, i,
                        "expected a last dimension of ", to / from, " parts, got ",
                        operand.to_string(false));
    sizes.pop_back();
  } else if (to < from) {
    sizes.push_back(from / to);
  }
  return Shape::array(i.shape->element_type(), std::move(sizes));
}

Shape infer_unary(const Instruction& i) {
  const Shape& shape = array_operand(i, 0);
  require_type(i, shape.element_type());
  return shape;
}

Shape infer_binary(const Instruction& i) {
  const Shape& shape = same_operands(i);
  require_type(i, shape.element_type());
  return shape;
}

Shape infer_compare(const Instruction& i) {
  std::string_view direction = i.text(AttributeKey::Direction);
  LAMELLA_HLO_REQUIRE(direction == "EQ" || direction == "NE" || direction == "LT" ||
                          direction == "LE" || direction == "GT" || direction == "GE",
                      i, "expected direction to be EQ, NE, LT, LE, GT or GE, got '", direction,
                      "'");
  const Shape& operand = same_operands(i);
  LAMELLA_HLO_REQUIRE(!is_complex(operand.element_type()) || direction == "EQ" || direction == "NE",
                      i, "expected direction to be EQ or NE for complex numbers, got ", direction);
  return operand.with_element_type(ElementType::PRED);
}

Shape infer_complex(const Instruction& i) {
  const Shape& operand = same_operands(i);
  ElementType type = complex_of_part(operand.element_type());
  LAMELLA_HLO_REQUIRE(type != ElementType::Invalid, i, "expected f32 or f64, got ",
                      element_name(operand.element_type()));
  return operand.with_element_type(type);
}

// Real, imag and abs: a complex operand gives the type of its parts, a real one its own type.
Shape infer_part(const Instruction& i) {
  Shape operand = infer_unary(i);
  ElementType part = part_of_complex(operand.element_type());
  return part == ElementType::Invalid ? operand : operand.with_element_type(part);
}

Shape infer_is_finite(const Instruction& i) {
  return infer_unary(i).with_element_type(ElementType::PRED);
}

Shape infer_select(const Instruction& i) {
  const Shape& which = array_operand(i, 0);
  const Shape& yes = array_operand(i, 1);
  LAMELLA_HLO_REQUIRE(which.element_type() == ElementType::PRED, i,
                      "expected operand 0 to be pred, got ", which.to_string(false));
  LAMELLA_HLO_REQUIRE(yes.compatible(i.operand_shape(2)), i,
                      "expected operands 1 and 2 of one shape, got ", yes.to_string(false), " and ",
                      i.operand_shape(2).to_string(false));
  LAMELLA_HLO_REQUIRE(which.is_scalar() || which.same_dimensions(yes), i,
                      "expected operand 0 to be a scalar or to have the dimensions of ",
                      yes.to_string(false), ", got ", which.to_string(false));
  return yes;
}

Shape infer_clamp(const Instruction& i) {
  const Shape& value = array_operand(i, 1);
  require_type(i, value.element_type());
  for (size_t n : {size_t{0}, size_t{2}}) {
    const Shape& bound = array_operand(i, n);
    LAMELLA_HLO_REQUIRE(bound.element_type() == value.element_type() &&
                            (bound.is_scalar() || bound.same_dimensions(value)),
                        i, "expected operand ", n,
                        " to be a scalar or a bound for each element of ", value.to_string(false),
                        ", got ", bound.to_string(false));
  }
  return value;
}

}  // namespace lamella::hlo
