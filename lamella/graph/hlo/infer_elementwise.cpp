// Shapes of operations on each element.
#include "lamella/graph/hlo/infer.h"

namespace lamella::hlo {
namespace {

enum class Takes { Any, Numbers, Ordered, Integers, Bits, Reals, Floats, Inexact };

// Which element types an opcode takes.
Takes takes(Opcode opcode) {
  switch (opcode) {
    case Opcode::And:
    case Opcode::Or:
    case Opcode::Xor:
    case Opcode::Not:
      return Takes::Bits;
    case Opcode::PopulationCount:
    case Opcode::Clz:
    case Opcode::ShiftLeft:
    case Opcode::ShiftRightArithmetic:
    case Opcode::ShiftRightLogical:
    case Opcode::Mulhi:
      return Takes::Integers;
    case Opcode::Abs:
    case Opcode::Negate:
    case Opcode::Sign:
    case Opcode::Subtract:
    case Opcode::Divide:
    case Opcode::Power:
      return Takes::Numbers;
    case Opcode::Remainder:
      return Takes::Reals;
    case Opcode::Maximum:
    case Opcode::Minimum:
    case Opcode::Clamp:
      return Takes::Ordered;
    case Opcode::Ceil:
    case Opcode::Floor:
    case Opcode::RoundNearestAfz:
    case Opcode::RoundNearestEven:
    case Opcode::Erf:
    case Opcode::IsFinite:
    case Opcode::ReducePrecision:
      return Takes::Floats;
    case Opcode::Exp:
    case Opcode::Expm1:
    case Opcode::Log:
    case Opcode::Log1p:
    case Opcode::Logistic:
    case Opcode::Sqrt:
    case Opcode::Rsqrt:
    case Opcode::Cbrt:
    case Opcode::Sin:
    case Opcode::Cos:
    case Opcode::Tan:
    case Opcode::Tanh:
    case Opcode::Acos:
    case Opcode::Acosh:
    case Opcode::Asin:
    case Opcode::Asinh:
    case Opcode::Atan:
    case Opcode::Atan2:
    case Opcode::Atanh:
    case Opcode::Cosh:
    case Opcode::Sinh:
      return Takes::Inexact;
    default:
      return Takes::Any;
  }
}
void require_type(const Instruction& i, ElementType type) {
  const char* wanted = nullptr;
  switch (takes(i.opcode)) {
    case Takes::Bits:
      if (!is_integral(type) && type != ElementType::PRED) wanted = "pred or integers";
      break;
    case Takes::Integers:
      if (!is_integral(type)) wanted = "integers";
      break;
    case Takes::Numbers:
      if (type == ElementType::PRED) wanted = "numbers";
      break;
    case Takes::Ordered:
      if (is_complex(type)) wanted = "pred, integers or floating-point numbers";
      break;
    case Takes::Reals:
      if (!is_integral(type) && !is_floating(type)) wanted = "integers or floating-point numbers";
      break;
    case Takes::Floats:
      if (!is_floating(type)) wanted = "floating-point numbers";
      break;
    case Takes::Inexact:
      if (!is_floating(type) && !is_complex(type)) wanted = "floating-point or complex numbers";
      break;
    default:
      break;
  }
  LAMELLA_HLO_REQUIRE(wanted == nullptr, i, "expected ", wanted == nullptr ? "" : wanted, ", got ",
                      element_name(type));
}

bool is_binary(Opcode opcode) {
  switch (opcode) {
    case Opcode::Add:
    case Opcode::Subtract:
    case Opcode::Multiply:
    case Opcode::Divide:
    case Opcode::Remainder:
    case Opcode::Power:
    case Opcode::Maximum:
    case Opcode::Minimum:
    case Opcode::Mulhi:
    case Opcode::Atan2:
    case Opcode::And:
    case Opcode::Or:
    case Opcode::Xor:
    case Opcode::ShiftLeft:
    case Opcode::ShiftRightArithmetic:
    case Opcode::ShiftRightLogical:
    case Opcode::Compare:
    case Opcode::Complex:
      return true;
    default:
      return false;
  }
}
// Same element type and dimensions; the result has the first one's.
const Shape& same_operands(const Instruction& i) {
  const Shape& first = array_operand(i, 0);
  for (size_t n = 1; n < i.operands.size(); ++n) {
    const Shape& other = array_operand(i, n);
    LAMELLA_HLO_REQUIRE(other.compatible(first), i, "expected operands of one shape, got ",
                        first.to_string(false), " and ", other.to_string(false));
  }
  return first;
}
// The stated shape must have the operand's dimensions; its element type is its own.
Shape stated_type(const Instruction& i) {
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
  // A wider type takes the last dimension of its parts, a narrower one adds one.
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

}  // namespace

Shape infer_elementwise(const Instruction& i) {
  switch (i.opcode) {
    case Opcode::Compare: {
      std::string_view direction = i.text(AttributeKey::Direction);
      LAMELLA_HLO_REQUIRE(direction == "EQ" || direction == "NE" || direction == "LT" ||
                              direction == "LE" || direction == "GT" || direction == "GE",
                          i, "expected direction to be EQ, NE, LT, LE, GT or GE, got '", direction,
                          "'");
      const Shape& operand = same_operands(i);
      LAMELLA_HLO_REQUIRE(
          !is_complex(operand.element_type()) || direction == "EQ" || direction == "NE", i,
          "expected direction to be EQ or NE for complex numbers, got ", direction);
      return operand.with_element_type(ElementType::PRED);
    }
    case Opcode::Complex: {
      const Shape& operand = same_operands(i);
      ElementType type = complex_of_part(operand.element_type());
      LAMELLA_HLO_REQUIRE(type != ElementType::Invalid, i, "expected f32 or f64, got ",
                          element_name(operand.element_type()));
      return operand.with_element_type(type);
    }
    case Opcode::Real:
    case Opcode::Imag:
    case Opcode::Abs: {
      const Shape& operand = array_operand(i, 0);
      require_type(i, operand.element_type());
      ElementType part = part_of_complex(operand.element_type());
      return part == ElementType::Invalid ? operand : operand.with_element_type(part);
    }
    case Opcode::IsFinite:
      require_type(i, array_operand(i, 0).element_type());
      return array_operand(i, 0).with_element_type(ElementType::PRED);
    case Opcode::Convert:
    case Opcode::StochasticConvert:
      return stated_type(i);
    case Opcode::BitcastConvert:
      return infer_bitcast_convert(i);
    case Opcode::Select: {
      const Shape& which = array_operand(i, 0);
      const Shape& yes = array_operand(i, 1);
      LAMELLA_HLO_REQUIRE(which.element_type() == ElementType::PRED, i,
                          "expected operand 0 to be pred, got ", which.to_string(false));
      LAMELLA_HLO_REQUIRE(yes.compatible(i.operand_shape(2)), i,
                          "expected operands 1 and 2 of one shape, got ", yes.to_string(false),
                          " and ", i.operand_shape(2).to_string(false));
      LAMELLA_HLO_REQUIRE(which.is_scalar() || which.same_dimensions(yes), i,
                          "expected operand 0 to be a scalar or to have the dimensions of ",
                          yes.to_string(false), ", got ", which.to_string(false));
      return yes;
    }
    case Opcode::Clamp: {
      const Shape& value = array_operand(i, 1);
      require_type(i, value.element_type());
      for (size_t n : {size_t{0}, size_t{2}}) {
        const Shape& bound = array_operand(i, n);
        LAMELLA_HLO_REQUIRE(bound.element_type() == value.element_type() &&
                                (bound.is_scalar() || bound.same_dimensions(value)),
                            i, "expected operand ", n,
                            " to be a scalar or a bound for each element of ",
                            value.to_string(false), ", got ", bound.to_string(false));
      }
      return value;
    }
    default:
      break;
  }
  if (is_binary(i.opcode)) {
    const Shape& shape = same_operands(i);
    require_type(i, shape.element_type());
    return shape;
  }
  // What copies takes tuples as well.
  if (i.opcode == Opcode::Copy || i.opcode == Opcode::Domain) return i.operand_shape(0);
  const Shape& shape = array_operand(i, 0);
  require_type(i, shape.element_type());
  return shape;
}

}  // namespace lamella::hlo
