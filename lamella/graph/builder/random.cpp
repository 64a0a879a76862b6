// Builder functions for random numbers and batch normalisation.
#include "lamella/graph/builder/random.h"

#include "lamella/graph/builder/emission.h"

namespace lamella::hlo {
namespace {

Op rng(const char* function, const char* distribution, const Operand& a, Op b, const Shape& shape) {
  return emit(function, a, [&](Emission& e) {
    LAMELLA_EXPECT(shape.is_array(), "'shape' to be an array's, got ", shape.to_string(false));
    for (Op limit : {Op(a), b}) {
      LAMELLA_EXPECT(e.shape(limit).compatible(Shape::scalar(shape.element_type())), "scalars of ",
                     element_name(shape.element_type()), ", got ", e.shape(limit).to_string(false));
    }
    AttributeList attributes = e.attributes();
    attributes.text(AttributeKey::Distribution, distribution);
    return e.add(Opcode::Rng, {a, b}, std::move(attributes), shape);
  });
}
// The attributes of batch normalisation.
AttributeList normalisation(Emission& e, float epsilon, int64_t feature_index) {
  AttributeList attributes = e.attributes();
  attributes.real(AttributeKey::Epsilon, static_cast<double>(epsilon));
  attributes.integer(AttributeKey::FeatureIndex, feature_index);
  return attributes;
}

}  // namespace

Op RngUniform(Operand a, Op b, const Shape& shape) {
  return rng("RngUniform", "rng_uniform", a, b, shape);
}
Op RngNormal(Operand mu, Op sigma, const Shape& shape) {
  return rng("RngNormal", "rng_normal", mu, sigma, shape);
}
Op RngBitGenerator(RandomAlgorithm algorithm, Operand initial_state, const Shape& shape) {
  return emit("RngBitGenerator", initial_state, [&](Emission& e) {
    static constexpr const char* kWords[] = {"rng_default", "rng_three_fry", "rng_philox"};
    LAMELLA_EXPECT(algorithm >= RNG_DEFAULT && algorithm <= RNG_PHILOX,
                   "'algorithm' to be RNG_DEFAULT, RNG_THREE_FRY or RNG_PHILOX, got ",
                   static_cast<int>(algorithm));
    LAMELLA_EXPECT(shape.is_array(), "'shape' to be an array's, got ", shape.to_string(false));
    AttributeList attributes = e.attributes();
    attributes.text(AttributeKey::Algorithm, kWords[algorithm]);
    return e.add(Opcode::RngBitGenerator, {initial_state}, std::move(attributes),
                 Shape::tuple({e.array(initial_state, "initial_state"), shape}));
  });
}

Op BatchNormTraining(Operand operand, Op scale, Op offset, float epsilon, int64_t feature_index) {
  return emit("BatchNormTraining", operand, [&](Emission& e) {
    return e.add(Opcode::BatchNormTraining, {operand, scale, offset},
                 normalisation(e, epsilon, feature_index));
  });
}
Op BatchNormInference(Operand operand, Op scale, Op offset, Op mean, Op variance, float epsilon,
                      int64_t feature_index) {
  return emit("BatchNormInference", operand, [&](Emission& e) {
    return e.add(Opcode::BatchNormInference, {operand, scale, offset, mean, variance},
                 normalisation(e, epsilon, feature_index));
  });
}
Op BatchNormGrad(Operand operand, Op scale, Op batch_mean, Op batch_var, Op grad_output,
                 float epsilon, int64_t feature_index) {
  return emit("BatchNormGrad", operand, [&](Emission& e) {
    return e.add(Opcode::BatchNormGrad, {operand, scale, batch_mean, batch_var, grad_output},
                 normalisation(e, epsilon, feature_index));
  });
}

}  // namespace lamella::hlo
