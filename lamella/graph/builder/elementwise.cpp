// Builder functions for elementwise operations.
#include "lamella/graph/builder/elementwise.h"

#include "lamella/graph/builder/broadcasting.h"
#include "lamella/graph/builder/constant.h"
#include "lamella/graph/builder/emission.h"
#include "lamella/graph/hlo/infer.h"

namespace lamella::hlo {
namespace {

Builder* either(const Operand& lhs, Op rhs) {
  return lhs.builder() != nullptr ? lhs.builder() : rhs.builder();
}

Op unary(const char* function, Opcode opcode, const Operand& x) {
  return emit(function, x, [&](Emission& e) {
    e.array(x, "x");
    return e.add(opcode, {x});
  });
}
Op binary(const char* function, Opcode opcode, const Operand& lhs, Op rhs,
          Span<int64_t> broadcast_dimensions) {
  return emit(function, Within(either(lhs, rhs), lhs.where), [&](Emission& e) {
    auto [a, b] = broadcast_together(e, lhs, rhs, broadcast_dimensions);
    return e.add(opcode, {a, b});
  });
}

std::string word(ComparisonDirection direction) {
  LAMELLA_EXPECT(direction <= ComparisonDirection::kLt,
                 "'direction' to be one of ComparisonDirection, got ", static_cast<int>(direction));
  return ComparisonDirectionToString(direction);
}
const char* word(Comparison::Type type) {
  switch (type) {
    case Comparison::Type::kFloat:
      return "FLOAT";
    case Comparison::Type::kFloatTotalOrder:
      return "TOTALORDER";
    case Comparison::Type::kSigned:
      return "SIGNED";
    case Comparison::Type::kUnsigned:
      return "UNSIGNED";
  }
  refuse("expected 'compare_type' to be one of Comparison::Type, got ", static_cast<int>(type));
}
// The default comparison type of an element type, which HLO texts omit.
Comparison::Type natural_type(ElementType type) {
  if (is_floating(type) || is_complex(type)) return Comparison::Type::kFloat;
  return element_kind(type) == ElementKind::Signed ? Comparison::Type::kSigned
                                                   : Comparison::Type::kUnsigned;
}
Op compare(const char* function, const Operand& lhs, Op rhs, Span<int64_t> broadcast_dimensions,
           ComparisonDirection direction, std::optional<Comparison::Type> type) {
  return emit(function, Within(either(lhs, rhs), lhs.where), [&](Emission& e) {
    auto [a, b] = broadcast_together(e, lhs, rhs, broadcast_dimensions);
    AttributeList attributes = e.attributes();
    attributes.text(AttributeKey::Direction, word(direction));
    Comparison::Type natural = natural_type(e.shape(a).element_type());
    if (type && *type != natural) {
      LAMELLA_EXPECT(
          *type == Comparison::Type::kFloatTotalOrder && natural == Comparison::Type::kFloat,
          "'compare_type' to fit ", element_name(e.shape(a).element_type()), ", got ", word(*type));
      attributes.text(AttributeKey::Type, word(*type));
    }
    return e.add(Opcode::Compare, {a, b}, std::move(attributes));
  });
}
// Total order differs from the default order for floating-point types only.
Op compare_total(const char* function, const Operand& lhs, Op rhs,
                 Span<int64_t> broadcast_dimensions, ComparisonDirection direction) {
  return emit(function, Within(either(lhs, rhs), lhs.where), [&](Emission& e) {
    std::optional<Comparison::Type> type;
    if (is_floating(e.array(lhs, "lhs").element_type())) type = Comparison::Type::kFloatTotalOrder;
    return compare(function, lhs, rhs, broadcast_dimensions, direction, type);
  });
}

}  // namespace

// The functions of the table's column `builder`.
#define LAMELLA_BUILDER_Unary(Name, ...) unary, Name
#define LAMELLA_BUILDER_Binary(Name, ...) binary, Name
#define LAMELLA_BUILDER_None none, none
#define LAMELLA_FUNCTION_unary(opcode, Name) \
  Op Name(Operand x) { return unary(#Name, Opcode::opcode, x); }
#define LAMELLA_FUNCTION_binary(opcode, Name)                             \
  Op Name(Operand lhs, Op rhs, Span<int64_t> broadcast_dimensions) {      \
    return binary(#Name, Opcode::opcode, lhs, rhs, broadcast_dimensions); \
  }
#define LAMELLA_FUNCTION_none(...)
#define LAMELLA_FUNCTION(opcode, kind, Name) LAMELLA_FUNCTION_##kind(opcode, Name)
#define LAMELLA_EXPANDED(...) LAMELLA_FUNCTION(__VA_ARGS__)
#define LAMELLA_HLO_OPCODE(name, text, operands, family, takes, shape, rule, work, traffic, code, \
                           weight, complex, emitted, same, combines, effects, builder)            \
  LAMELLA_EXPANDED(name, LAMELLA_BUILDER_##builder)
#include "lamella/graph/hlo/opcode.def"
#undef LAMELLA_BUILDER_Unary
#undef LAMELLA_BUILDER_Binary
#undef LAMELLA_BUILDER_None
#undef LAMELLA_FUNCTION
#undef LAMELLA_EXPANDED

Op Compare(Operand lhs, Op rhs, Span<int64_t> broadcast_dimensions, ComparisonDirection direction) {
  return compare("Compare", lhs, rhs, broadcast_dimensions, direction, std::nullopt);
}
Op Compare(Operand lhs, Op rhs, Span<int64_t> broadcast_dimensions, ComparisonDirection direction,
           Comparison::Type compare_type) {
  return compare("Compare", lhs, rhs, broadcast_dimensions, direction, compare_type);
}
Op Compare(Operand lhs, Op rhs, ComparisonDirection direction) {
  return compare("Compare", lhs, rhs, {}, direction, std::nullopt);
}
#define LAMELLA_COMPARISON(Name)                                                        \
  Op Name(Operand lhs, Op rhs, Span<int64_t> broadcast_dimensions) {                    \
    return compare(#Name, lhs, rhs, broadcast_dimensions, ComparisonDirection::k##Name, \
                   std::nullopt);                                                       \
  }                                                                                     \
  Op Name##TotalOrder(Operand lhs, Op rhs, Span<int64_t> broadcast_dimensions) {        \
    return compare_total(#Name "TotalOrder", lhs, rhs, broadcast_dimensions,            \
                         ComparisonDirection::k##Name);                                 \
  }
LAMELLA_COMPARISON(Eq)
LAMELLA_COMPARISON(Ne)
LAMELLA_COMPARISON(Ge)
LAMELLA_COMPARISON(Gt)
LAMELLA_COMPARISON(Le)
LAMELLA_COMPARISON(Lt)
#undef LAMELLA_COMPARISON

Op Conj(Operand x) {
  return emit("Conj", x, [&](Emission& e) -> Op {
    if (!is_complex(e.array(x, "x").element_type())) return x;
    return Complex(e.at(Real(e.at(x))), Neg(e.at(Imag(e.at(x)))));
  });
}
Op Square(Operand x) {
  return emit("Square", x, [&](Emission& e) { return Mul(e.at(x), x); });
}
Op Reciprocal(Operand x) {
  return emit("Reciprocal", x, [&](Emission& e) { return Div(e.at(ScalarLike(e.at(x), 1.0)), x); });
}

namespace {

Op require_floating(Emission& e, Op x) {
  ElementType type = e.array(x, "x").element_type();
  LAMELLA_EXPECT(is_floating(type), "floating-point numbers, got ", element_name(type));
  return x;
}
Op equals_infinity(const char* function, const Operand& x, double infinity) {
  return emit(function, x, [&](Emission& e) {
    require_floating(e, x);
    return Eq(e.at(x), ScalarLike(e.at(x), infinity));
  });
}

}  // namespace

Op IsInf(Operand x) {
  return emit("IsInf", x, [&](Emission& e) {
    require_floating(e, x);
    return IsPosInf(e.at(Abs(e.at(x))));
  });
}
Op IsPosInf(Operand x) {
  return equals_infinity("IsPosInf", x, std::numeric_limits<double>::infinity());
}
Op IsNegInf(Operand x) {
  return equals_infinity("IsNegInf", x, -std::numeric_limits<double>::infinity());
}
Op IsNan(Operand x) {
  return emit("IsNan", x, [&](Emission& e) {
    require_floating(e, x);
    return Ne(e.at(x), x);
  });
}
Op IsNegZero(Operand x) {
  return emit("IsNegZero", x, [&](Emission& e) {
    require_floating(e, x);
    return EqTotalOrder(e.at(x), ScalarLike(e.at(x), -0.0));
  });
}

Op ConvertElementType(Operand operand, PrimitiveType new_element_type) {
  return emit("ConvertElementType", operand, [&](Emission& e) {
    LAMELLA_EXPECT(is_array_type(new_element_type), "'new_element_type' to be one of arrays, got ",
                   element_name(new_element_type));
    const Shape& shape = e.array(operand, "operand");
    LAMELLA_EXPECT(!is_complex(shape.element_type()) || is_complex(new_element_type),
                   "'new_element_type' to be complex as ", element_name(shape.element_type()),
                   " is, got ", element_name(new_element_type));
    return e.add(Opcode::Convert, {operand}, e.attributes(),
                 shape.with_element_type(new_element_type));
  });
}
Op BitcastConvertType(Operand operand, PrimitiveType new_element_type) {
  return emit("BitcastConvertType", operand, [&](Emission& e) {
    LAMELLA_EXPECT(is_array_type(new_element_type), "'new_element_type' to be one of arrays, got ",
                   element_name(new_element_type));
    const Shape& shape = e.array(operand, "operand");
    return e.add(Opcode::BitcastConvert, {operand}, e.attributes(),
                 shape.with_element_type(new_element_type));
  });
}
Op ReducePrecision(Operand operand, int exponent_bits, int mantissa_bits) {
  return emit("ReducePrecision", operand, [&](Emission& e) {
    LAMELLA_EXPECT(exponent_bits >= 1, "'exponent_bits' to be 1 or more, got ", exponent_bits);
    LAMELLA_EXPECT(mantissa_bits >= 0, "'mantissa_bits' to be 0 or more, got ", mantissa_bits);
    AttributeList attributes = e.attributes();
    attributes.integer(AttributeKey::ExponentBits, exponent_bits);
    attributes.integer(AttributeKey::MantissaBits, mantissa_bits);
    return e.add(Opcode::ReducePrecision, {operand}, std::move(attributes));
  });
}

Op Select(Operand pred, Op on_true, Op on_false) {
  return emit("Select", pred, [&](Emission& e) {
    const Shape& which = e.array(pred, "pred");
    if (e.shape(on_true).is_tuple()) {  // element by element
      std::vector<Op> chosen;
      LAMELLA_EXPECT(e.shape(on_true).compatible(e.shape(on_false)), "'on_false' to be ",
                     e.shape(on_true).to_string(false), ", got ",
                     e.shape(on_false).to_string(false));
      for (size_t n = 0; n < e.shape(on_true).tuple_shapes().size(); ++n) {
        auto index = static_cast<int64_t>(n);
        AttributeList attributes = e.attributes();
        attributes.integer(AttributeKey::Index, index);
        AttributeList same = attributes;
        Op yes = e.add(Opcode::GetTupleElement, {on_true}, std::move(attributes));
        Op no = e.add(Opcode::GetTupleElement, {on_false}, std::move(same));
        chosen.push_back(Select(e.at(pred), yes, no));
      }
      return e.add(Opcode::Tuple, chosen);
    }
    std::vector<int64_t> sizes = copy_of(e.array(on_true, "on_true").dimensions());
    if (sizes.empty()) sizes = copy_of(e.array(on_false, "on_false").dimensions());
    // Scalar values are broadcast to the dimensions of pred.
    if (sizes.empty()) sizes = copy_of(which.dimensions());
    return e.add(Opcode::Select,
                 {pred, broadcast_scalar(e, on_true, sizes), broadcast_scalar(e, on_false, sizes)},
                 e.attributes(), e.shape(on_true).with_dimensions(sizes));
  });
}
Op Clamp(Operand min, Op operand, Op max) {
  return emit("Clamp", Within(either(min, operand), min.where), [&](Emission& e) {
    const Shape& value = e.array(operand, "operand");
    return e.add(Opcode::Clamp, {min, operand, max}, e.attributes(), value);
  });
}

Op operator-(Operand x) { return Neg(x); }
Op operator~(Operand x) { return Not(x); }
Op operator+(Operand x, Op y) { return Add(x, y); }
Op operator-(Operand x, Op y) { return Sub(x, y); }
Op operator*(Operand x, Op y) { return Mul(x, y); }
Op operator/(Operand x, Op y) { return Div(x, y); }
Op operator%(Operand x, Op y) { return Rem(x, y); }
Op operator&(Operand x, Op y) { return And(x, y); }
Op operator|(Operand x, Op y) { return Or(x, y); }
Op operator^(Operand x, Op y) { return Xor(x, y); }
Op operator<<(Operand x, Op y) { return ShiftLeft(x, y); }
Op operator>>(Operand x, Op y) {
  return emit("operator>>", x, [&](Emission& e) {
    ElementType type = e.array(x, "x").element_type();
    LAMELLA_EXPECT(is_integral(type), "integers, got ", element_name(type));
    bool is_signed = element_kind(type) == ElementKind::Signed;
    return is_signed ? ShiftRightArithmetic(e.at(x), y) : ShiftRightLogical(e.at(x), y);
  });
}

}  // namespace lamella::hlo
