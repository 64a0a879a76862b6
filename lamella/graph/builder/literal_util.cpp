// Literals from C++ values.
#include "lamella/graph/builder/literal_util.h"

#include <cmath>
#include <limits>

#include "lamella/graph/hlo/small_float.h"

namespace lamella::hlo {
namespace {

// Sets one element of an array of any element type.
void set_number(Literal& literal, int64_t i, const Number& value) {
  ElementType type = literal.shape().element_type();
  if (is_complex(type)) {
    literal.set_complex(i, value.inexact);
  } else if (is_floating(type)) {
    literal.set_real(i, value.inexact.real());
  } else if (type == ElementType::PRED) {
    literal.set_integer(i, value.inexact.real() != 0 || value.integer != 0 ? 1 : 0);
  } else {
    literal.set_integer(
        i, value.is_integer ? value.integer : static_cast<int64_t>(value.inexact.real()));
  }
}

// The largest finite value of a floating-point type.
double largest(ElementType type) {
  const ElementRow& row = element_row(type);
  if (row.specials == SpecialCodes::Ieee) {
    return std::ldexp(2 - std::ldexp(1.0, -row.mantissa_bits), row.bias);
  }
  double found = 0;
  for (int code = 0; code < (1 << element_bits(type)); ++code) {
    double value = decode_small_float(type, static_cast<uint8_t>(code));
    if (value > found && value < std::numeric_limits<double>::infinity()) found = value;
  }
  return found;
}
bool has_infinity(ElementType type) { return element_row(type).specials == SpecialCodes::Ieee; }

}  // namespace

Literal scalar_literal(ElementType type, Number value) {
  Literal literal(Shape::scalar(type));
  set_number(literal, 0, value);
  return literal;
}

Literal LiteralUtil::CreateR1U8(std::string_view value) {
  std::vector<uint8_t> bytes(value.begin(), value.end());
  return CreateR1<uint8_t>(bytes);
}
Literal LiteralUtil::CreateR1FromRange(double from, double to, int64_t count) {
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) {
    double share = count == 1 ? 0 : static_cast<double>(i) / static_cast<double>(count - 1);
    values.push_back(from + (to - from) * share);
  }
  return CreateR1<double>(values);
}

Literal LiteralUtil::MaxValue(PrimitiveType type) {
  if (type == ElementType::PRED) return scalar_literal(type, 1);
  if (element_kind(type) == ElementKind::Unsigned) return scalar_literal(type, ~uint64_t{0});
  if (is_integral(type)) {
    return scalar_literal(type,
                          static_cast<int64_t>((uint64_t{1} << (element_bits(type) - 1)) - 1));
  }
  LAMELLA_CHECK(is_floating(type), "MaxValue: expected a type with an order, got ",
                element_name(type));
  return scalar_literal(
      type, has_infinity(type) ? std::numeric_limits<double>::infinity() : largest(type));
}
Literal LiteralUtil::MinValue(PrimitiveType type) {
  if (type == ElementType::PRED || element_kind(type) == ElementKind::Unsigned) {
    return scalar_literal(type, 0);
  }
  if (is_integral(type)) {
    return scalar_literal(type, static_cast<int64_t>(~uint64_t{0} << (element_bits(type) - 1)));
  }
  LAMELLA_CHECK(is_floating(type), "MinValue: expected a type with an order, got ",
                element_name(type));
  return scalar_literal(
      type, has_infinity(type) ? -std::numeric_limits<double>::infinity() : -largest(type));
}
Literal LiteralUtil::MaxFiniteValue(PrimitiveType type) {
  return is_floating(type) ? scalar_literal(type, largest(type)) : MaxValue(type);
}
Literal LiteralUtil::MinFiniteValue(PrimitiveType type) {
  return is_floating(type) ? scalar_literal(type, -largest(type)) : MinValue(type);
}
StatusOr<Literal> LiteralUtil::NanValue(PrimitiveType type) {
  if (!is_floating(type) && !is_complex(type)) {
    return Status(
        StatusCode::kInvalidArgument,
        str("NanValue: expected a floating-point or complex type, got ", element_name(type)));
  }
  return scalar_literal(type, std::numeric_limits<double>::quiet_NaN());
}

Literal LiteralUtil::MakeTuple(Span<const Literal*> elements) {
  std::vector<Literal> copies;
  for (const Literal* element : elements) copies.push_back(element->clone());
  return Literal::tuple(std::move(copies));
}
Literal LiteralUtil::MakeTupleFromSlices(std::span<const Literal> elements) {
  std::vector<Literal> copies;
  for (const Literal& element : elements) copies.push_back(element.clone());
  return Literal::tuple(std::move(copies));
}
Literal LiteralUtil::CreateToken() { return Literal(Shape::token()); }

StatusOr<Literal> LiteralUtil::Convert(const Literal& literal, PrimitiveType type) {
  const Shape& shape = literal.shape();
  if (!shape.is_array() || !is_array_type(type)) {
    return Status(
        StatusCode::kInvalidArgument,
        str("Convert: expected arrays, got ", shape.to_string(false), " and ", element_name(type)));
  }
  Literal made(shape.with_element_type(type));
  for (int64_t i = 0; i < shape.elements(); ++i) {
    if (is_complex(shape.element_type())) {
      set_number(
          made, i,
          Number(std::complex<double>(literal.complex_at(i).real(), literal.complex_at(i).imag())));
    } else if (is_floating(shape.element_type())) {
      set_number(made, i, literal.real_at(i));
    } else {
      Number value = literal.integer_at(i);
      value.inexact = literal.real_at(i);
      set_number(made, i, value);
    }
  }
  return made;
}

Literal Literal::Relayout(const Shape& shape_with_layout) const {
  LAMELLA_CHECK(shape_with_layout.compatible(shape_), "Relayout: expected a layout of ",
                shape_.to_string(false), ", got ", shape_with_layout.to_string(false));
  Literal made = clone();
  auto set = [](auto& self, Literal& part, const Shape& shape) -> void {
    part.shape_ = shape;
    for (size_t e = 0; e < part.elements_.size(); ++e) {
      self(self, part.elements_[e], shape.tuple_shapes()[e]);
    }
  };
  set(set, made, shape_with_layout);
  return made;
}
Literal Literal::Relayout(const std::vector<int64_t>& minor_to_major,
                          const std::vector<int64_t>& index) const {
  auto with = [&](auto& self, const Shape& shape, size_t depth) -> Shape {
    Shape made = shape;
    if (depth == index.size()) {
      made.set_layout(minor_to_major);
      return made;
    }
    std::vector<Shape> parts = shape.tuple_shapes();
    bool good = index[depth] >= 0 && static_cast<size_t>(index[depth]) < parts.size();
    LAMELLA_CHECK(good, "Relayout: expected the index of a part of ", shape_.to_string(false),
                  ", got ", braced(index));
    Shape& part = parts[static_cast<size_t>(index[depth])];
    part = self(self, part, depth + 1);
    return Shape::tuple(std::move(parts));
  };
  return Relayout(with(with, shape_, 0));
}
StatusOr<Literal> Literal::Convert(ElementType type) const {
  return LiteralUtil::Convert(*this, type);
}

}  // namespace lamella::hlo
