// The cost model: functions for the work and memory traffic of opcodes, named in the opcode table.
#include "lamella/graph/view/cost.h"

#include <algorithm>
#include <cmath>

#include "lamella/graph/hlo/effects.h"
#include "lamella/graph/hlo/infer.h"

namespace lamella::hlo {
namespace {

double elements_of(const Shape& shape) {
  if (shape.is_array()) return static_cast<double>(shape.elements());
  double sum = 0;
  for (const Shape& one : shape.tuple_shapes()) sum += elements_of(one);
  return sum;
}
double operand_bytes(const Instruction& i) {
  double sum = 0;
  for (const Instruction* operand : i.operands) {
    sum += static_cast<double>(operand->shape->bytes());
  }
  return sum;
}
const Shape& first_array(const Shape& shape) {
  const Shape* at = &shape;
  while (at->is_tuple() && !at->tuple_shapes().empty()) at = &at->tuple_shapes()[0];
  return *at;
}
// The cost of a complex multiplication and addition relative to a real one; 1 for real types.
double complex_factor(const Shape& shape) {
  return is_complex(first_array(shape).element_type()) ? 4 : 1;
}

double dot_flops(const Instruction& i) {
  double contracted = 1;
  const Shape& left = i.operand_shape(0);
  for (int64_t d : i.integers(AttributeKey::LhsContractingDims)) {
    if (d >= 0 && d < left.rank()) contracted *= static_cast<double>(left.dimension(d));
  }
  return 2 * contracted * elements_of(*i.shape) * complex_factor(*i.shape);
}
double convolution_flops(const Instruction& i) {
  const Attribute* labels = i.find(AttributeKey::DimLabels);
  const Shape& kernel = i.operand_shape(1);
  if (labels == nullptr || kernel.rank() == 0) return 0;
  // Each output element reads the kernel elements of one output feature.
  double features =
      static_cast<double>(kernel.dimension(labels->convolution->kernel_output_feature));
  if (features == 0) return 0;
  return 2 * elements_of(*i.shape) * elements_of(kernel) / features * complex_factor(*i.shape);
}
double window_elements(const Instruction& i) {
  double product = 1;
  if (const Attribute* window = i.find(AttributeKey::Window)) {
    for (const WindowDimension& d : window->window()) product *= static_cast<double>(d.size);
  }
  return product;
}
double fft_flops(const Instruction& i) {
  double length = 1;
  for (int64_t n : i.integers(AttributeKey::FftLength)) length *= static_cast<double>(n);
  double count = std::max(elements_of(i.operand_shape(0)), elements_of(*i.shape));
  return length > 1 ? 5 * count * std::log2(length) : 0;  // the conventional 5 n log2 n
}
double last_dimension(const Shape& shape, int64_t from_end = 1) {
  return shape.rank() >= from_end ? static_cast<double>(shape.dimension(shape.rank() - from_end))
                                  : 1;
}

// traffic_TRAFFIC for each name in the opcode table's column `traffic`: bytes read and written.
double traffic_none(const Instruction&) { return 0; }
double traffic_result(const Instruction& i) { return static_cast<double>(i.shape->bytes()); }
double traffic_all(const Instruction& i) { return operand_bytes(i) + traffic_result(i); }
// A slice reads only the selected part of its operand.
double traffic_slice(const Instruction& i) { return 2 * traffic_result(i); }
double traffic_gather(const Instruction& i) {
  return traffic_slice(i) + static_cast<double>(i.operand_shape(1).bytes());
}
double traffic_update(const Instruction& i) {
  return 2 * static_cast<double>(i.operand_shape(1).bytes());
}

// work_WORK for each name in the opcode table's column `work`: numbers of operations.
Cost flops(double count) { return {count, 0, 0}; }
// The cost of running a called computation `times` times. Its memory traffic is not counted,
// because its values stay in caches or registers.
Cost called(const Costs& costs, const Instruction& i, AttributeKey key, double times) {
  const Computation* computation = i.computation(key);
  if (computation == nullptr) return {};
  const Cost& cost = costs.of(*computation);
  return {cost.flops * times, cost.transcendentals * times, 0};
}

Cost work_none(const Costs&, const Instruction&) { return {}; }
Cost work_elementwise(const Costs&, const Instruction& i) {
  return flops(elements_of(*i.shape) * (is_complex(i.shape->element_type()) ? 2 : 1));
}
Cost work_product(const Costs&, const Instruction& i) {
  return flops(elements_of(*i.shape) * (is_complex(i.shape->element_type()) ? 6 : 1));
}
Cost work_transcendental(const Costs&, const Instruction& i) {
  return {0, elements_of(*i.shape) * complex_factor(*i.shape), 0};
}
Cost work_clamp(const Costs&, const Instruction& i) { return flops(2 * elements_of(*i.shape)); }
Cost work_random(const Costs&, const Instruction& i) {
  return flops(10 * elements_of(*i.shape));  // approximate cost of a counter-based generator
}
Cost work_dot(const Costs&, const Instruction& i) { return flops(dot_flops(i)); }
Cost work_convolution(const Costs&, const Instruction& i) { return flops(convolution_flops(i)); }
Cost work_fft(const Costs&, const Instruction& i) { return flops(fft_flops(i)); }
Cost work_cholesky(const Costs&, const Instruction& i) {
  return flops(elements_of(*i.shape) * last_dimension(*i.shape) / 3 * complex_factor(*i.shape));
}
Cost work_triangular_solve(const Costs&, const Instruction& i) {
  return flops(elements_of(*i.shape) * last_dimension(i.operand_shape(0)) *
               complex_factor(*i.shape));
}
Cost work_batch_norm_training(const Costs&, const Instruction& i) {
  return flops(8 * elements_of(i.operand_shape(0)));
}
Cost work_batch_norm_inference(const Costs&, const Instruction& i) {
  return flops(4 * elements_of(*i.shape));
}
Cost work_batch_norm_grad(const Costs&, const Instruction& i) {
  return flops(12 * elements_of(i.operand_shape(0)));
}
Cost work_reduce(const Costs& costs, const Instruction& i) {
  double taken = elements_of(first_array(i.operand_shape(0)));
  double given = elements_of(first_array(*i.shape));
  return called(costs, i, AttributeKey::ToApply, std::max(0.0, taken - given));
}
Cost work_reduce_window(const Costs& costs, const Instruction& i) {
  double given = elements_of(first_array(*i.shape));
  return called(costs, i, AttributeKey::ToApply, given * window_elements(i));
}
Cost work_select_and_scatter(const Costs& costs, const Instruction& i) {
  double windows = elements_of(i.operand_shape(1));
  Cost cost = called(costs, i, AttributeKey::Select, windows * (window_elements(i) - 1));
  cost += called(costs, i, AttributeKey::Scatter, windows);
  return cost;
}
Cost work_map(const Costs& costs, const Instruction& i) {
  return called(costs, i, AttributeKey::ToApply, elements_of(*i.shape));
}
Cost work_combined(const Costs& costs, const Instruction& i) { return work_map(costs, i); }
Cost work_scan(const Costs& costs, const Instruction& i) {
  return called(costs, i, AttributeKey::ToApply, 1);
}
Cost work_scatter(const Costs& costs, const Instruction& i) {
  return called(costs, i, AttributeKey::ToApply, elements_of(*i.operands.back()->shape));
}
Cost work_sort(const Costs& costs, const Instruction& i) {
  const Shape& keys = first_array(i.operand_shape(0));
  auto dimension = i.integers(AttributeKey::Dimensions);
  double length = !dimension.empty() && dimension[0] < keys.rank()
                      ? static_cast<double>(keys.dimension(dimension[0]))
                      : 1;
  double comparisons = length > 1 ? elements_of(keys) * std::log2(length) : 0;
  return called(costs, i, AttributeKey::ToApply, comparisons);
}
Cost work_fusion(const Costs& costs, const Instruction& i) {
  return called(costs, i, AttributeKey::Calls, 1);
}
Cost work_call(const Costs& costs, const Instruction& i) {
  return costs.of(
      *i.computation(i.has(AttributeKey::ToApply) ? AttributeKey::ToApply : AttributeKey::Calls));
}
Cost work_while(const Costs& costs, const Instruction& i) {
  Cost cost = costs.of(*i.computation(AttributeKey::Condition));
  cost += costs.of(*i.computation(AttributeKey::Body));
  return cost;
}
Cost work_conditional(const Costs& costs, const Instruction& i) {
  Cost dearest;
  for_each_called(i, [&](const Computation& branch) {
    const Cost& one = costs.of(branch);
    if (one.flops + one.transcendentals + one.bytes >
        dearest.flops + dearest.transcendentals + dearest.bytes) {
      dearest = one;
    }
  });
  return dearest;
}

struct CostRule {
  Cost (*work)(const Costs& costs, const Instruction& i);
  double (*traffic)(const Instruction& i);
};
constexpr CostRule kCostRules[] = {
#define LAMELLA_HLO_OPCODE(name, text, operands, family, takes, shape, rule, work, traffic, ...) \
  {work_##work, traffic_##traffic},
#include "lamella/graph/hlo/opcode.def"
};

}  // namespace

Cost Costs::cost_of(const Instruction& i) const {
  if (!is_well_formed(i)) return {};
  const CostRule& rule = kCostRules[static_cast<size_t>(i.opcode)];
  Cost cost = rule.work(*this, i);
  cost.bytes += rule.traffic(i);
  return cost;
}

// Callees precede their callers, so their costs are known.
Costs::Costs(const Module& module) {
  for (const Computation* computation : module.computations) {
    Cost sum;
    for (const Instruction* i : computation->instructions) {
      sum += instructions_.emplace(i, cost_of(*i)).first->second;
    }
    computations_.emplace(computation, sum);
  }
}

}  // namespace lamella::hlo
