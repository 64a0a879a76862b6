// Random numbers as functions of a key and a state.
#include "lamella/graph/builder/lib/prng.h"

#include <cmath>
#include <numbers>

#include "lamella/graph/builder/emission.h"
#include "lamella/graph/builder/functions.h"
#include "lamella/graph/builder/primitive_util.h"
#include "lamella/graph/hlo/infer.h"

namespace lamella::hlo {
namespace {

ElementType unsigned_of(const Shape& shape) {
  return primitive_util::UnsignedIntegralTypeForBitWidth(element_bits(shape.element_type()));
}
// What rng-bit-generator gives; its state is the key followed by the generator's own state.
RngOutput generate(const char* function, RandomAlgorithm algorithm, Op key, Op state, int64_t size,
                   const Shape& shape) {
  RngOutput made;
  made.value = emit(function, Operand(key), [&](Emission& e) {
    Op all = ConcatInDim(e.within(), {Reshape(e.at(key), {1}), Reshape(e.at(state), {size})}, 0);
    Op both = RngBitGenerator(algorithm, e.at(all), shape.with_element_type(unsigned_of(shape)));
    Op next = SliceInDim(e.at(GetTupleElement(e.at(both), 0)), 1, size + 1, 1, 0);
    made.state = Reshape(e.at(next), e.shape(state).dimensions());
    return GetTupleElement(e.at(both), 1);
  });
  if (!made.value.valid()) made.state = made.value;
  return made;
}

}  // namespace

RngOutput ThreeFryBitGenerator(Op key, Op initial_state, const Shape& shape) {
  return generate("ThreeFryBitGenerator", RNG_THREE_FRY, key, initial_state, 1, shape);
}
RngOutput PhiloxBitGenerator(Op key, Op initial_state, const Shape& shape) {
  return generate("PhiloxBitGenerator", RNG_PHILOX, key, initial_state, 2, shape);
}
std::pair<Op, Op> ScramblePhiloxKey(Op key) {
  constexpr uint64_t kKey = 0x02461e293ec8f720;  // XLA's
  Op state;
  Op made = emit("ScramblePhiloxKey", Operand(key), [&](Emission& e) {
    auto number = [&](uint64_t value) { return ConstantR0<uint64_t>(e.within(), value); };
    Op low = And(e.at(key), number(0xffffffff)), high = ShiftRightLogical(e.at(key), number(32));
    Op both =
        RngBitGenerator(RNG_PHILOX, e.at(ConcatScalars(e.within(), {number(kKey), low, high})),
                        Shape::array(ElementType::U64, {2}));
    auto half = [&](int64_t n) {
      return Reshape(e.at(SliceInDim(e.at(GetTupleElement(e.at(both), 1)), n, n + 1, 1, 0)), {});
    };
    state = ConcatScalars(e.within(), {number(0), half(1)});
    return half(0);
  });
  return {made.valid() ? state : made, made};
}
Op PhiloxIncreaseCounter(Op counter, Op delta) {
  return emit("PhiloxIncreaseCounter", Operand(counter), [&](Emission& e) {
    auto half = [&](int64_t n) {
      return Reshape(e.at(SliceInDim(e.at(counter), n, n + 1, 1, 0)), {});
    };
    Op low = Add(e.at(half(0)), delta), high = half(1);
    Op carried = Add(e.at(high), ScalarLike(e.at(high), 1));
    return ConcatScalars(e.within(), {low, Select(e.at(Lt(e.at(low), delta)), carried, high)});
  });
}
RngOutput UniformFloatingPointDistribution(Op key, Op initial_state,
                                           const BitGeneratorTy& bit_generator, Op minval,
                                           Op maxval, const Shape& shape) {
  RngOutput made = bit_generator(key, initial_state, shape);
  made.value = emit("UniformFloatingPointDistribution", Operand(made.value), [&](Emission& e) {
    ElementType type = e.array(minval, "minval").element_type();
    LAMELLA_EXPECT(type == shape.element_type() && is_ordinary_float(type), "'minval' of ",
                   element_name(shape.element_type()), ", a float of 16, 32 or 64 bits, got ",
                   element_name(type));
    // As many bits as the significand has behind its point make a multiple of 2^-bits in [0, 1).
    int bits = element_row(type).mantissa_bits;
    Op few = ShiftRightLogical(e.at(made.value),
                               ScalarLike(e.at(made.value), element_bits(type) - bits));
    Op share = Mul(e.at(ConvertElementType(e.at(few), type)),
                   ConstantR0WithType(e.within(), type, std::ldexp(1.0, -bits)));
    return Add(e.at(Mul(e.at(share), Sub(e.at(maxval), minval))), minval);
  });
  return made;
}
RngOutput UniformIntDistribution(Op key, Op initial_state, const BitGeneratorTy& bit_generator,
                                 Op minval, Op maxval, const Shape& shape) {
  RngOutput made = bit_generator(key, initial_state, shape);
  made.value = emit("UniformIntDistribution", Operand(made.value), [&](Emission& e) {
    ElementType type = shape.element_type(), bits = unsigned_of(shape);
    LAMELLA_EXPECT(is_integral(type) && element_bits(type) >= 32,
                   "'shape' of integers of 32 or 64 bits, got ", shape.to_string(false));
    auto as = [&](Op op, ElementType to) { return BitcastConvertType(e.at(op), to); };
    Op range = Sub(e.at(as(maxval, bits)), as(minval, bits));
    Op offset = Rem(e.at(made.value), range);
    // In two steps, because the range may not fit the signed type.
    Op half = ShiftRightLogical(e.at(offset), ScalarLike(e.at(offset), 1));
    Op first = Add(e.at(as(half, type)), minval);
    return Add(e.at(first), as(Sub(e.at(offset), half), type));
  });
  return made;
}
RngOutput NormalFloatingPointDistribution(Op key, Op initial_state,
                                          const BitGeneratorTy& bit_generator, const Shape& shape) {
  ElementType type = shape.element_type();
  int64_t count = shape.elements(), half = (count + 1) / 2;
  Within builder(key.builder());
  RngOutput made = UniformFloatingPointDistribution(
      key, initial_state, bit_generator, ConstantR0WithType(builder, type, 0.0),
      ConstantR0WithType(builder, type, 1.0), Shape::array(type, {2, half}));
  made.value = emit("NormalFloatingPointDistribution", Operand(made.value), [&](Emission& e) {
    auto row = [&](int64_t n) { return SliceInDim(e.at(made.value), n, n + 1, 1, 0); };
    // The least number keeps the logarithm finite.
    Op kept = Max(e.at(row(0)), ScalarLike(e.at(made.value), 1e-7));
    Op radius = Sqrt(e.at(Mul(e.at(Log(e.at(kept))), ScalarLike(e.at(kept), -2.0))));
    Op angle = Mul(e.at(row(1)), ScalarLike(e.at(made.value), 2 * std::numbers::pi));
    Op both = ConcatInDim(
        e.within(), {Mul(e.at(radius), Sin(e.at(angle))), Mul(e.at(radius), Cos(e.at(angle)))}, 0);
    Op flat = SliceInDim(e.at(Reshape(e.at(both), {2 * half})), 0, count, 1, 0);
    return Reshape(e.at(flat), Span<int64_t>(shape.dimensions()));
  });
  return made;
}
Op ConcatScalars(Within builder, Span<Op> scalars) {
  return emit("ConcatScalars", builder, [&](Emission& e) {
    std::vector<Op> vectors;
    for (Op scalar : scalars) vectors.push_back(Reshape(e.at(scalar), {1}));
    return ConcatInDim(e.within(), vectors, 0);
  });
}

}  // namespace lamella::hlo
