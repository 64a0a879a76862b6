// The cost model, by family of opcodes.
#include "lamella/graph/view/cost.h"

#include <algorithm>
#include <cmath>

#include "lamella/graph/hlo/effects.h"

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
// Real operations of one complex multiplication and addition; 1 for real types.
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
  // Each output takes the kernel's elements of one output feature.
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
  return length > 1 ? 5 * count * std::log2(length) : 0;  // 5 n log2 n, as is custom
}
double last_dimension(const Shape& shape, int64_t from_end = 1) {
  return shape.rank() >= from_end ? static_cast<double>(shape.dimension(shape.rank() - from_end))
                                  : 1;
}

bool moves_nothing(Opcode opcode) {
  switch (opcode) {
    case Opcode::Parameter:
    case Opcode::Constant:
    case Opcode::Tuple:
    case Opcode::GetTupleElement:
    case Opcode::Bitcast:
    case Opcode::AfterAll:
    case Opcode::AddDependency:
    case Opcode::OptimizationBarrier:
    case Opcode::Domain:
    case Opcode::PartitionId:
    case Opcode::ReplicaId:
    case Opcode::While:
    case Opcode::Conditional:
    case Opcode::Call:
    case Opcode::GetDimensionSize:
      return true;
    default:
      return false;
  }
}

double bytes_moved(const Instruction& i) {
  if (moves_nothing(i.opcode)) return 0;
  double result = static_cast<double>(i.shape->bytes());
  switch (i.opcode) {
    // Only the part that is taken of a large array is touched.
    case Opcode::Slice:
    case Opcode::DynamicSlice:
      return 2 * result;
    case Opcode::Gather:
      return 2 * result + static_cast<double>(i.operand_shape(1).bytes());
    case Opcode::DynamicUpdateSlice:
      return 2 * static_cast<double>(i.operand_shape(1).bytes());
    case Opcode::Iota:
      return result;
    default:
      return operand_bytes(i) + result;
  }
}

}  // namespace

Cost Costs::called(const Computation* computation, double times) const {
  if (computation == nullptr) return {};
  const Cost& cost = of(*computation);
  return {cost.flops * times, cost.transcendentals * times, 0};
}

Cost Costs::cost_of(const Instruction& i) const {
  Cost cost;
  cost.bytes = bytes_moved(i);
  const double n = elements_of(*i.shape);
  switch (i.opcode) {
    case Opcode::Acos:
    case Opcode::Acosh:
    case Opcode::Asin:
    case Opcode::Asinh:
    case Opcode::Atan:
    case Opcode::Atan2:
    case Opcode::Atanh:
    case Opcode::Cbrt:
    case Opcode::Cos:
    case Opcode::Cosh:
    case Opcode::Erf:
    case Opcode::Exp:
    case Opcode::Expm1:
    case Opcode::Log:
    case Opcode::Log1p:
    case Opcode::Logistic:
    case Opcode::Power:
    case Opcode::Rsqrt:
    case Opcode::Sin:
    case Opcode::Sinh:
    case Opcode::Sqrt:
    case Opcode::Tan:
    case Opcode::Tanh:
      cost.transcendentals = n * complex_factor(*i.shape);
      break;
    case Opcode::Abs:
    case Opcode::Add:
    case Opcode::And:
    case Opcode::Ceil:
    case Opcode::Compare:
    case Opcode::Convert:
    case Opcode::Divide:
    case Opcode::Floor:
    case Opcode::IsFinite:
    case Opcode::Maximum:
    case Opcode::Minimum:
    case Opcode::Mulhi:
    case Opcode::Multiply:
    case Opcode::Negate:
    case Opcode::Not:
    case Opcode::Or:
    case Opcode::PopulationCount:
    case Opcode::Clz:
    case Opcode::ReducePrecision:
    case Opcode::Remainder:
    case Opcode::RoundNearestAfz:
    case Opcode::RoundNearestEven:
    case Opcode::Select:
    case Opcode::ShiftLeft:
    case Opcode::ShiftRightArithmetic:
    case Opcode::ShiftRightLogical:
    case Opcode::Sign:
    case Opcode::StochasticConvert:
    case Opcode::Subtract:
    case Opcode::Xor:
      cost.flops = n * (is_complex(i.shape->element_type()) &&
                                (i.opcode == Opcode::Multiply || i.opcode == Opcode::Divide)
                            ? 6
                        : is_complex(i.shape->element_type()) ? 2
                                                              : 1);
      break;
    case Opcode::Clamp:
      cost.flops = 2 * n;
      break;
    case Opcode::Dot:
    case Opcode::RaggedDot:
    case Opcode::ScaledDot:
      cost.flops = dot_flops(i);
      break;
    case Opcode::Convolution:
      cost.flops = convolution_flops(i);
      break;
    case Opcode::Fft:
      cost.flops = fft_flops(i);
      break;
    case Opcode::Cholesky:
      cost.flops = n * last_dimension(*i.shape) / 3 * complex_factor(*i.shape);
      break;
    case Opcode::TriangularSolve:
      cost.flops = n * last_dimension(i.operand_shape(0)) * complex_factor(*i.shape);
      break;
    case Opcode::BatchNormTraining:
      cost.flops = 8 * elements_of(i.operand_shape(0));
      break;
    case Opcode::BatchNormInference:
      cost.flops = 4 * n;
      break;
    case Opcode::BatchNormGrad:
      cost.flops = 12 * elements_of(i.operand_shape(0));
      break;
    case Opcode::Rng:
    case Opcode::RngBitGenerator:
      cost.flops = 10 * n;  // rounds of a counter-based generator, about
      break;
    case Opcode::Reduce: {
      double taken = elements_of(first_array(i.operand_shape(0)));
      double given = elements_of(first_array(*i.shape));
      cost += called(i.computation(AttributeKey::ToApply), std::max(0.0, taken - given));
      break;
    }
    case Opcode::ReduceWindow:
      cost += called(i.computation(AttributeKey::ToApply),
                     elements_of(first_array(*i.shape)) * window_elements(i));
      break;
    case Opcode::SelectAndScatter: {
      double windows = elements_of(i.operand_shape(1));
      cost += called(i.computation(AttributeKey::Select), windows * (window_elements(i) - 1));
      cost += called(i.computation(AttributeKey::Scatter), windows);
      break;
    }
    case Opcode::Map:
      cost += called(i.computation(AttributeKey::ToApply), n);
      break;
    case Opcode::Scan:
      cost += called(i.computation(AttributeKey::ToApply), 1);
      break;
    case Opcode::Scatter:
      cost += called(i.computation(AttributeKey::ToApply), elements_of(*i.operands.back()->shape));
      break;
    case Opcode::Sort: {
      const Shape& keys = first_array(i.operand_shape(0));
      auto dimension = i.integers(AttributeKey::Dimensions);
      double length = !dimension.empty() && dimension[0] < keys.rank()
                          ? static_cast<double>(keys.dimension(dimension[0]))
                          : 1;
      double comparisons = length > 1 ? elements_of(keys) * std::log2(length) : 0;
      cost += called(i.computation(AttributeKey::ToApply), comparisons);
      break;
    }
    case Opcode::AllReduce:
    case Opcode::ReduceScatter:
      cost += called(i.computation(AttributeKey::ToApply), n);
      break;
    case Opcode::Fusion:
      cost += called(i.computation(AttributeKey::Calls), 1);
      break;
    case Opcode::Call:
      cost += of(*i.computation(i.has(AttributeKey::ToApply) ? AttributeKey::ToApply
                                                             : AttributeKey::Calls));
      break;
    case Opcode::While:
      cost += of(*i.computation(AttributeKey::Condition));
      cost += of(*i.computation(AttributeKey::Body));
      break;
    case Opcode::Conditional: {
      Cost dearest;
      for_each_called(i, [&](const Computation& branch) {
        const Cost& one = of(branch);
        if (one.flops + one.transcendentals + one.bytes >
            dearest.flops + dearest.transcendentals + dearest.bytes) {
          dearest = one;
        }
      });
      cost += dearest;
      break;
    }
    default:
      break;
  }
  return cost;
}

// Those that are called stand before their callers.
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
