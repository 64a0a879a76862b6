// Constants of each element type.
#include "lamella/graph/builder/lib/constants.h"

#include <cmath>

#include "lamella/graph/builder/broadcasting.h"
#include "lamella/graph/builder/emission.h"

namespace lamella::hlo {
namespace {

template <class F>
Op constant(const char* function, const Within& builder, PrimitiveType type, F&& literal) {
  return emit(function, builder, [&](Emission& e) {
    LAMELLA_EXPECT(is_array_type(type), "'type' to be one of arrays, got ", element_name(type));
    return e.add_constant(literal());
  });
}
Op zeros(Emission& e, const Shape& shape) {
  if (shape.is_array()) {
    return broadcast_scalar(e, e.add_constant(Literal(Shape::scalar(shape.element_type()))),
                            shape.dimensions());
  }
  LAMELLA_EXPECT(shape.is_tuple(), "'shape' to hold arrays, got ", shape.to_string(false));
  std::vector<Op> elements;
  for (const Shape& element : shape.tuple_shapes()) elements.push_back(zeros(e, element));
  return e.add(Opcode::Tuple, elements, e.attributes(), shape);
}

}  // namespace

Op Zero(Within builder, PrimitiveType type) {
  return constant("Zero", builder, type, [&] { return LiteralUtil::Zero(type); });
}
Op One(Within builder, PrimitiveType type) {
  return constant("One", builder, type, [&] { return LiteralUtil::One(type); });
}
Op MinValue(Within builder, PrimitiveType type) {
  return constant("MinValue", builder, type, [&] { return LiteralUtil::MinValue(type); });
}
Op MinFiniteValue(Within builder, PrimitiveType type) {
  return constant("MinFiniteValue", builder, type,
                  [&] { return LiteralUtil::MinFiniteValue(type); });
}
Op MaxValue(Within builder, PrimitiveType type) {
  return constant("MaxValue", builder, type, [&] { return LiteralUtil::MaxValue(type); });
}
Op MaxFiniteValue(Within builder, PrimitiveType type) {
  return constant("MaxFiniteValue", builder, type,
                  [&] { return LiteralUtil::MaxFiniteValue(type); });
}
Op NanValue(Within builder, PrimitiveType type) {
  return constant("NanValue", builder, type, [&] { return LiteralUtil::NanValue(type).value(); });
}
Op Epsilon(Within builder, PrimitiveType type) {
  return constant("Epsilon", builder, type, [&] {
    if (!is_ordinary_float(type)) {
      refuse("expected 'type' to be f16, bf16, f32 or f64, got ", element_name(type));
    }
    return scalar_literal(type, std::ldexp(1.0, -element_row(type).mantissa_bits));
  });
}
Op Zeros(Within builder, const Shape& shape) {
  return emit("Zeros", builder, [&](Emission& e) { return zeros(e, shape); });
}
Op ZerosLike(Operand prototype) {
  return emit("ZerosLike", prototype, [&](Emission& e) { return zeros(e, e.shape(prototype)); });
}

}  // namespace lamella::hlo
