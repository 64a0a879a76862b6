// Brings products to canonical form: dimensions, transposes, and types.
#include "lamella/graph/passes/contractions.h"

#include <algorithm>

#include "lamella/graph/passes/rewriter.h"

namespace lamella::hlo {
namespace {

using Numbers = std::vector<int64_t>;

constexpr AttributeKey kBatch[] = {AttributeKey::LhsBatchDims, AttributeKey::RhsBatchDims};
constexpr AttributeKey kSummed[] = {AttributeKey::LhsContractingDims,
                                    AttributeKey::RhsContractingDims};

// True if the operand's transpose keeps the free dimensions in order, which the result has in
// operand order.
bool keeps_free_order(const Instruction& dot, size_t side) {
  auto order = dot.operands[side]->integers(AttributeKey::Dimensions);
  auto batch = dot.integers(kBatch[side]), summed = dot.integers(kSummed[side]);
  int64_t last = -1;
  for (int64_t d = 0; d < static_cast<int64_t>(order.size()); ++d) {
    if (std::ranges::find(batch, d) != batch.end() ||
        std::ranges::find(summed, d) != summed.end()) {
      continue;
    }
    int64_t from = order[static_cast<size_t>(d)];
    if (from < last) return false;
    last = from;
  }
  return true;
}

Instruction* without_transpose(Rewriter& to, Instruction* dot, size_t side) {
  Instruction* transposed = dot->operands[side];
  auto order = transposed->integers(AttributeKey::Dimensions);
  std::vector<Attribute> attributes;
  for (const Attribute& one : dot->attributes) {
    if (one.key != kBatch[side] && one.key != kSummed[side]) {
      attributes.push_back(one);
      continue;
    }
    Numbers moved;
    for (int64_t d : one.integers()) moved.push_back(order[static_cast<size_t>(d)]);
    attributes.push_back(to.integers(one.key, moved));
  }
  std::vector<Instruction*> operands(dot->operands.begin(), dot->operands.end());
  operands[side] = transposed->operands[0];
  return to.add(Opcode::Dot, *dot->shape, operands, attributes);
}

// The type of the sums: a type that represents every value of the operands. Integers wrap, so
// operands may be truncated to a narrower result type beforehand.
ElementType sum_type(const Instruction& dot) {
  ElementType type = dot.shape->element_type();
  if (!is_floating(type)) return type;
  for (size_t side = 0; side < 2; ++side) {
    ElementType own = dot.operand_shape(side).element_type();
    if (is_floating(own) && element_bits(own) > element_bits(type)) type = own;
    if (is_floating(own) && element_bits(own) == element_bits(type) && own != type) {
      type = ElementType::F32;  // for halves of both kinds
    }
  }
  return type;
}

bool is_number(ElementType type) {
  return is_integral(type) || is_complex(type) || is_ordinary_float(type);
}

// Gives operands and result one type, as kernels require.
Instruction* of_one_type(Rewriter& to, Instruction* dot) {
  ElementType result = dot->shape->element_type(), type = sum_type(*dot);
  std::vector<Instruction*> operands(dot->operands.begin(), dot->operands.end());
  auto dimensions = [](const Shape& shape) {
    return std::vector<int64_t>(shape.dimensions().begin(), shape.dimensions().end());
  };
  auto converted = [&](Instruction* x, ElementType into) {
    if (x->shape->element_type() == into) return x;
    return to.add(Opcode::Convert, Shape::array(into, dimensions(*x->shape)), {x});
  };
  for (Instruction*& operand : operands) {
    ElementType own = operand->shape->element_type();
    bool fits = is_integral(result) ? is_integral(own) || own == ElementType::PRED
                                    : is_number(own) || own == ElementType::PRED;
    if (!is_number(result) || !fits || (is_complex(own) && !is_complex(result))) return dot;
    operand = converted(operand, type);
  }
  if (operands[0] == dot->operands[0] && operands[1] == dot->operands[1] && type == result) {
    return dot;
  }
  Instruction* product =
      to.add(Opcode::Dot, Shape::array(type, dimensions(*dot->shape)), operands,
             std::vector<Attribute>(dot->attributes.begin(), dot->attributes.end()));
  return converted(product, result);
}

// A convolution without spatial dimensions is a product of matrices.
Instruction* as_product(Rewriter& to, Instruction* i) {
  const ConvolutionDimensions& d = *i->find(AttributeKey::DimLabels)->convolution;
  if (!d.input_spatial.empty() || i->integer(AttributeKey::FeatureGroupCount, 1) != 1 ||
      i->integer(AttributeKey::BatchGroupCount, 1) != 1) {
    return i;
  }
  Instruction* product =
      to.add(Opcode::Dot,
             Shape::array(i->shape->element_type(),
                          {i->operand_shape(0).dimension(d.input_batch),
                           i->operand_shape(1).dimension(d.kernel_output_feature)}),
             {i->operands.begin(), i->operands.end()},
             {to.integers(kSummed[0], {d.input_feature}),
              to.integers(kSummed[1], {d.kernel_input_feature})});
  return d.output_batch == 0 ? product : to.transpose(product, {1, 0});
}

// True for a non-empty result of empty sums, which is 0.
bool sums_nothing(const Instruction& i) {
  return i.shape->elements() != 0 && is_number(i.shape->element_type()) &&
         (i.operand_shape(0).elements() == 0 || i.operand_shape(1).elements() == 0);
}

}  // namespace

int64_t canonicalize_products(Module& module) {
  int64_t changed = 0;
  for (Computation* computation : module.computations) {
    Rewriter rewriter(module, *computation);
    changed += rewriter.rewrite([&](Instruction* i) -> Instruction* {
      if (i->opcode != Opcode::Dot && i->opcode != Opcode::Convolution) return nullptr;
      if (!i->shape->is_static() || !i->operand_shape(0).is_static() ||
          !i->operand_shape(1).is_static()) {
        return nullptr;
      }
      if (sums_nothing(*i)) return rewriter.full(*i->shape, 0);
      if (i->opcode == Opcode::Convolution) return as_product(rewriter, i);
      Instruction* made = of_one_type(rewriter, i);
      if (made != i) return made;
      for (size_t side = 0; side < 2; ++side) {
        if (made->operands[side]->opcode == Opcode::Transpose && keeps_free_order(*made, side)) {
          made = without_transpose(rewriter, made, side);
        }
      }
      return made;
    });
  }
  return changed;
}

}  // namespace lamella::hlo
