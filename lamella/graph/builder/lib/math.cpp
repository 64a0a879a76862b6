// Elementwise functions composed of others.
#include "lamella/graph/builder/lib/math.h"

#include <optional>

#include "lamella/graph/builder/broadcasting.h"
#include "lamella/graph/builder/calls.h"
#include "lamella/graph/builder/constant.h"
#include "lamella/graph/builder/emission.h"

namespace lamella::hlo {
namespace {

Op inexact(const char* function, Opcode opcode, const Operand& x) {
  return emit(function, x, [&](Emission& e) {
    ElementType type = e.array(x, "x").element_type();
    LAMELLA_EXPECT(is_floating(type) || is_complex(type), "floating-point or complex numbers, got ",
                   element_name(type));
    return e.add(opcode, {x});
  });
}

Op special(const char* function, const char* target, const Operand& x,
           std::optional<Op> other = std::nullopt) {
  return emit(function, x, [&](Emission& e) {
    const Shape& shape = e.array(x, "x");
    LAMELLA_EXPECT(is_ordinary_float(shape.element_type()), "f16, bf16, f32 or f64, got ",
                   element_name(shape.element_type()));
    if (!other) return CustomCall(e.within(), target, {x}, shape.with_default_layout());
    auto [a, b] = broadcast_together(e, x, *other, {});
    return CustomCall(e.within(), target, {a, b}, e.shape(a).with_default_layout());
  });
}

}  // namespace

Op Erfc(Operand x) { return special("Erfc", "aten::erfc", x); }
Op ErfInv(Operand x) { return special("ErfInv", "aten::erfinv", x); }
Op Lgamma(Operand x) { return special("Lgamma", "aten::lgamma", x); }
Op Digamma(Operand x) { return special("Digamma", "aten::digamma", x); }
Op BesselI0e(Operand x) { return special("BesselI0e", "aten::special_i0e", x); }
Op BesselI1e(Operand x) { return special("BesselI1e", "aten::special_i1e", x); }
Op Igamma(Operand a, Op x) { return special("Igamma", "aten::igamma", a, x); }
Op Igammac(Operand a, Op x) { return special("Igammac", "aten::igammac", a, x); }
Op Zeta(Operand x, Op q) { return special("Zeta", "aten::special_zeta", x, q); }

Op Acos(Operand x) { return inexact("Acos", Opcode::Acos, x); }
Op Asin(Operand x) { return inexact("Asin", Opcode::Asin, x); }
Op Atan(Operand x) { return inexact("Atan", Opcode::Atan, x); }
Op Sinh(Operand x) { return inexact("Sinh", Opcode::Sinh, x); }
Op Cosh(Operand x) { return inexact("Cosh", Opcode::Cosh, x); }
Op Asinh(Operand x) { return inexact("Asinh", Opcode::Asinh, x); }
Op Acosh(Operand x) { return inexact("Acosh", Opcode::Acosh, x); }
Op Atanh(Operand x) { return inexact("Atanh", Opcode::Atanh, x); }

Op RoundToEven(Operand x) {
  return emit("RoundToEven", x, [&](Emission& e) { return RoundNearestEven(e.at(x)); });
}
Op MaybeConjugate(Operand x, bool conjugate) {
  return emit("MaybeConjugate", x, [&](Emission& e) { return conjugate ? Conj(e.at(x)) : Op(x); });
}

// Numbers of equal sign are ordered like their bit patterns, so the next number has the next bits.
Op NextAfter(Operand from, Op to) {
  return emit("NextAfter", from, [&](Emission& e) {
    auto [x, y] = broadcast_together(e, from, to, {});
    ElementType type = e.shape(x).element_type();
    LAMELLA_EXPECT(is_ordinary_float(type), "'from' to hold f16, bf16, f32 or f64, got ",
                   element_name(type));
    int bits = element_bits(type);
    ElementType integer = bits == 16   ? ElementType::U16
                          : bits == 32 ? ElementType::U32
                                       : ElementType::U64;
    auto scalar = [&](uint64_t value) {
      return ConstantR0WithType(e.within(), integer, Number(value));
    };
    uint64_t sign_bit = uint64_t{1} << (bits - 1);
    Op x_bits = BitcastConvertType(e.at(x), integer), y_bits = BitcastConvertType(e.at(y), integer);
    Op x_size = And(e.at(x_bits), scalar(sign_bit - 1));
    Op y_size = And(e.at(y_bits), scalar(sign_bit - 1));
    Op x_sign = And(e.at(x_bits), scalar(sign_bit)), y_sign = And(e.at(y_bits), scalar(sign_bit));
    Op zero = scalar(0);
    // Bit patterns increase away from zero and decrease towards it.
    Op towards_zero = Or(e.at(Ne(e.at(x_sign), y_sign)), Gt(e.at(x_size), y_size));
    Op step = Select(e.at(towards_zero), scalar(~uint64_t{0}), scalar(1));
    Op moved = Add(e.at(x_bits), step);
    // The number after zero is the smallest number with the sign of `to`.
    moved = Select(e.at(Eq(e.at(x_size), zero)), Or(e.at(y_sign), scalar(1)), moved);
    // Equal numbers, including zeros of different signs, give `to`.
    moved = Select(e.at(Eq(e.at(x), y)), y_bits, moved);
    Op next = BitcastConvertType(e.at(moved), type);
    Op nan = Or(e.at(Ne(e.at(x), x)), Ne(e.at(y), y));
    return Select(e.at(nan), Add(e.at(x), y), next);
  });
}

}  // namespace lamella::hlo
