// Small computations of two scalars.
#include "lamella/graph/builder/lib/arithmetic.h"

#include "lamella/graph/builder/emission.h"
#include "lamella/graph/builder/functions.h"

namespace lamella::hlo {
namespace {

template <class F>
BuiltComputation of_scalars(const char* name, PrimitiveType type, Builder* builder, F&& combine) {
  LAMELLA_CHECK(builder != nullptr, name, ": expected a builder, got null");
  std::unique_ptr<Builder> b = builder->CreateSubBuilder(str(name, "_", element_name(type)));
  Op x = Parameter(b.get(), 0, Shape::scalar(type), "x");
  Op y = Parameter(b.get(), 1, Shape::scalar(type), "y");
  return b->Build(combine(x, y)).value();
}
Op arg(const char* function, const Operand& input, PrimitiveType output_type, int axis,
       bool largest) {
  return emit(function, input, [&](Emission& e) {
    const Shape& shape = e.array(input, "input");
    LAMELLA_EXPECT(axis >= 0 && axis < shape.rank(), "'axis' to name a dimension of ",
                   shape.to_string(false), ", got ", axis);
    LAMELLA_EXPECT(is_integral(output_type), "'output_type' to be an integer's, got ",
                   element_name(output_type));
    ElementType type = shape.element_type();
    // The lowest index wins among equal values; NaN precedes all numbers.
    std::unique_ptr<Builder> b = e.builder()->CreateSubBuilder(function);
    Shape value = Shape::scalar(type), place = Shape::scalar(output_type);
    Op x = Parameter(b.get(), 0, value, "x");
    Op x_place = Parameter(b.get(), 1, place, "x_place");
    Op y = Parameter(b.get(), 2, value, "y");
    Op y_place = Parameter(b.get(), 3, place, "y_place");
    Op better = largest ? Gt(x, y) : Lt(x, y);
    if (is_floating(type)) better = Or(better, And(Ne(x, x), Eq(y, y)));
    Op equal = Eq(x, y);
    if (is_floating(type)) equal = Or(equal, And(Ne(x, x), Ne(y, y)));
    Op first = Or(better, And(equal, Lt(x_place, y_place)));
    Op root = Tuple(b.get(), {Select(first, x, y), Select(first, x_place, y_place)});
    BuiltComputation combine = b->Build(root).value();

    Op places = Iota(
        e.within(),
        Shape::array(output_type, {shape.dimensions().begin(), shape.dimensions().end()}), axis);
    Op worst = ConstantLiteral(e.within(),
                               largest ? LiteralUtil::MinValue(type) : LiteralUtil::MaxValue(type));
    Op beyond = ConstantLiteral(e.within(), LiteralUtil::MaxValue(output_type));
    Op both = Reduce(e.within(), {input, places}, {worst, beyond}, combine, {axis});
    return GetTupleElement(e.at(both), 1);
  });
}

}  // namespace

BuiltComputation CreateScalarAddComputation(PrimitiveType type, Builder* builder) {
  return of_scalars("add", type, builder,
                    [&](Op x, Op y) { return type == ElementType::PRED ? Or(x, y) : Add(x, y); });
}
BuiltComputation CreateScalarMultiplyComputation(PrimitiveType type, Builder* builder) {
  return of_scalars("mul", type, builder, [](Op x, Op y) { return Mul(x, y); });
}
BuiltComputation CreateScalarGeComputation(PrimitiveType type, Builder* builder) {
  return of_scalars("ge", type, builder, [](Op x, Op y) { return Ge(x, y); });
}
BuiltComputation CreateScalarMaxComputation(PrimitiveType type, Builder* builder) {
  return of_scalars("max", type, builder, [](Op x, Op y) { return Max(x, y); });
}
BuiltComputation CreateScalarMinComputation(PrimitiveType type, Builder* builder) {
  return of_scalars("min", type, builder, [](Op x, Op y) { return Min(x, y); });
}
BuiltComputation CreateScalarAndComputation(PrimitiveType type, Builder* builder) {
  return of_scalars("and", type, builder, [](Op x, Op y) { return And(x, y); });
}
BuiltComputation CreateScalarOrComputation(PrimitiveType type, Builder* builder) {
  return of_scalars("or", type, builder, [](Op x, Op y) { return Or(x, y); });
}
BuiltComputation CreateScalarIdentityWithZeroComputation(PrimitiveType type, Builder* builder) {
  return of_scalars("identity", type, builder, [](Op, Op y) { return y; });
}

Op Any(Operand predicates) {
  return emit("Any", predicates, [&](Emission& e) {
    Op no = ConstantR0<bool>(e.within(), false);
    return ReduceAll(e.at(predicates), no,
                     CreateScalarOrComputation(ElementType::PRED, e.builder()));
  });
}
Op ArgMax(Operand input, PrimitiveType output_type, int axis) {
  return arg("ArgMax", input, output_type, axis, true);
}
Op ArgMin(Operand input, PrimitiveType output_type, int axis) {
  return arg("ArgMin", input, output_type, axis, false);
}
Op ArgMinMax(Operand input, PrimitiveType output_type, int axis, bool is_min) {
  return arg("ArgMinMax", input, output_type, axis, !is_min);
}

}  // namespace lamella::hlo
