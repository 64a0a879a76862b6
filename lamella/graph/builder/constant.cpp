// Builder functions for constants and parameters.
#include "lamella/graph/builder/constant.h"

#include "lamella/graph/builder/broadcasting.h"
#include "lamella/graph/builder/emission.h"

namespace lamella::hlo {

Op Parameter(Within builder, int64_t parameter_number, const Shape& shape, std::string_view name) {
  return emit("Parameter", builder,
              [&](Emission& e) { return e.add_parameter(parameter_number, shape, name); });
}
Op Parameter(int64_t parameter_number, const Shape& shape, std::string_view name, Where where) {
  return Parameter(Within(Builder::latest(), where), parameter_number, shape, name);
}
Op ConstantLiteral(Within builder, const Literal& literal) {
  return emit("ConstantLiteral", builder, [&](Emission& e) {
    if (!literal.shape().is_tuple()) return e.add_constant(literal);
    std::vector<Op> elements;
    for (const Literal& element : literal.elements()) {
      elements.push_back(ConstantLiteral(e.within(), element));
    }
    return e.add(Opcode::Tuple, elements);
  });
}
Op ConstantR0WithType(Within builder, PrimitiveType type, Number value) {
  return emit("ConstantR0WithType", builder, [&](Emission& e) {
    LAMELLA_EXPECT(is_array_type(type), "'type' to be one of arrays, got ", element_name(type));
    LAMELLA_EXPECT(value.is_integer || is_floating(type) || is_complex(type),
                   "'value' to be a whole number for ", element_name(type), ", got ",
                   value.inexact.real());
    return e.add_constant(scalar_literal(type, value));
  });
}
Op ScalarLike(Operand prototype, Number value) {
  return emit("ScalarLike", prototype, [&](Emission& e) {
    return e.add_constant(scalar_literal(e.array(prototype, "prototype").element_type(), value));
  });
}
Op FullLike(Operand prototype, Number value) {
  return emit("FullLike", prototype, [&](Emission& e) {
    const Shape& shape = e.array(prototype, "prototype");
    Op scalar = e.add_constant(scalar_literal(shape.element_type(), value));
    return broadcast_scalar(e, scalar, shape.dimensions());
  });
}

Op Iota(Within builder, const Shape& shape, int64_t iota_dimension) {
  return emit("Iota", builder, [&](Emission& e) {
    AttributeList attributes = e.attributes();
    attributes.integer(AttributeKey::IotaDimension, iota_dimension);
    return e.add(Opcode::Iota, {}, std::move(attributes), shape);
  });
}
Op Iota(Within builder, PrimitiveType type, int64_t size) {
  return emit("Iota", builder,
              [&](Emission& e) { return Iota(e.within(), Shape::array(type, {size}), 0); });
}

}  // namespace lamella::hlo
