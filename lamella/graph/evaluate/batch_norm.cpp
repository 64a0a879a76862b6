// Batch normalisation of each feature over all other dimensions. Source: Ioffe and Szegedy, Batch
// Normalization, 2015; XLA's operation semantics.
#include <cmath>

#include "lamella/graph/evaluate/contraction.h"
#include "lamella/graph/evaluate/elements.h"

namespace lamella::hlo {
namespace {

using Reals = std::vector<double>;

// Calls f(row-major index, feature) for each element.
template <class F>
void for_each_element(const Shape& shape, int64_t feature_index, F&& f) {
  int64_t features = shape.dimension(feature_index);
  int64_t after = row_major_strides(shape.dimensions())[static_cast<size_t>(feature_index)];
  for (int64_t e = 0; e < shape.elements(); ++e) {
    f(static_cast<size_t>(e), static_cast<size_t>(e / after % features));
  }
}

}  // namespace

Value evaluate_batch_norm(Step& step) {
  const Instruction& i = step.instruction;
  const Shape& shape = step.operands[0].shape();
  int64_t feature_index = i.integer(AttributeKey::FeatureIndex);
  const Attribute* found = i.find(AttributeKey::Epsilon);
  double epsilon = found != nullptr ? found->real : 0;
  auto features = static_cast<size_t>(shape.dimension(feature_index));
  double per_feature = static_cast<double>(shape.elements()) / static_cast<double>(features);
  Reals all = widened<double>(step.operands[0]), scale = widened<double>(step.operands[1]);
  auto each = [&](auto&& f) { for_each_element(shape, feature_index, f); };
  std::vector<Value> results = make_results(step);

  if (i.opcode == Opcode::BatchNormGrad) {
    Reals mean = widened<double>(step.operands[2]), variance = widened<double>(step.operands[3]);
    Reals gradient = widened<double>(step.operands[4]);
    Reals sum(features), sum_centered(features), to_operand(all.size());
    each([&](size_t e, size_t f) {
      sum[f] += gradient[e];
      sum_centered[f] += gradient[e] * (all[e] - mean[f]);
    });
    each([&](size_t e, size_t f) {
      double spread = variance[f] + epsilon;
      double centered = all[e] - mean[f];
      to_operand[e] = scale[f] / std::sqrt(spread) *
                      (gradient[e] - sum[f] / per_feature -
                       centered * sum_centered[f] / (spread * per_feature));
    });
    for (size_t f = 0; f < features; ++f) sum_centered[f] /= std::sqrt(variance[f] + epsilon);
    store_wide(to_operand, results[0]);
    store_wide(sum_centered, results[1]);
    store_wide(sum, results[2]);
    return join_results(step, results);
  }

  Reals offset = widened<double>(step.operands[2]), mean(features), variance(features);
  bool training = i.opcode == Opcode::BatchNormTraining;
  if (training) {
    each([&](size_t e, size_t f) { mean[f] += all[e] / per_feature; });
    each([&](size_t e, size_t f) {
      variance[f] += (all[e] - mean[f]) * (all[e] - mean[f]) / per_feature;
    });
    store_wide(mean, results[1]);
    store_wide(variance, results[2]);
  } else {
    mean = widened<double>(step.operands[3]);
    variance = widened<double>(step.operands[4]);
  }
  each([&](size_t e, size_t f) {
    all[e] = (all[e] - mean[f]) / std::sqrt(variance[f] + epsilon) * scale[f] + offset[f];
  });
  store_wide(all, results[0]);
  return join_results(step, results);
}

}  // namespace lamella::hlo
