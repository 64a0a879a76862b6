// Finds the instructions that units which call kernels absorb: transposes of the results of
// attention, additions of a row to a product or a convolution, and conversions of a product's
// operands.
#include <algorithm>

#include "lamella/graph/compiler/units.h"
#include "lamella/graph/passes/convolution_problem.h"
#include "lamella/kernels/machine_code.h"

namespace lamella::hlo::compiler {

// Attention writes its result with heads and rows exchanged if every use of the result exchanges
// them: the transposes then need no code.
void UnitPlan::find_transposed(const Instruction* call,
                               std::span<const Instruction* const> instructions,
                               const std::vector<Wanted>& wanted) {
  constexpr int64_t kExchanged[] = {0, 2, 1, 3};
  std::vector<const Instruction*> found;
  std::unordered_set<const Instruction*> results;
  for (const Instruction* i : instructions) {
    if (i->opcode == Opcode::GetTupleElement && i->operands[0] == call) {
      if (i->integer(AttributeKey::Index) == 0) results.insert(i);
      continue;
    }
    for (const Instruction* operand : i->operands) {
      if (operand == call) return;
      if (results.count(operand) == 0) continue;
      auto order = i->integers(AttributeKey::Dimensions);
      if (i->opcode != Opcode::Transpose || !std::ranges::equal(order, kExchanged)) return;
      found.push_back(i);
    }
  }
  for (const Wanted& one : wanted) {
    if (one.instruction == call || results.count(one.instruction) != 0) return;
  }
  for (const Instruction* i : found) exchanged[i] = call;
}

namespace {

// The dimension of the result along which a row may initialize the sums: the columns of a product's
// right operand, or the output features of a convolution. -1: none.
int64_t row_dimension(const Instruction* i) {
  if (i->opcode == Opcode::Convolution) {
    return i->find(AttributeKey::DimLabels)->convolution->output_feature;
  }
  if (i->opcode != Opcode::Dot) return -1;
  const Shape& right = i->operand_shape(1);
  int64_t columns = right.elements(), last = i->shape->rank() - 1;
  for (AttributeKey key : {AttributeKey::RhsBatchDims, AttributeKey::RhsContractingDims}) {
    for (int64_t d : i->integers(key)) columns /= right.dimension(d);
  }
  return columns > 1 && i->shape->dimension(last) == columns ? last : -1;
}

}  // namespace

View UnitPlan::side(const Instruction* dot, size_t n) const {
  View given = view(dot->operands[n]);
  if (dot->opcode != Opcode::Dot) return given;
  View narrow[2];
  int64_t types[2], summed = 1;
  for (size_t s = 0; s < 2; ++s) {
    const Instruction* convert = view(dot->operands[s]).base;
    if (is_given(convert) || convert->opcode != Opcode::Convert) return given;
    auto type = scalar_type_of(convert->operand_shape(0).element_type());
    if (!type) return given;
    types[s] = static_cast<int64_t>(*type);
    bool is_all = convert == dot->operands[s];
    narrow[s] = is_all ? view(convert->operands[0])
                       : View{convert->operands[0], view(dot->operands[s]).strides};
  }
  for (int64_t d : dot->integers(AttributeKey::LhsContractingDims)) {
    summed *= dot->operand_shape(0).dimension(d);
  }
  auto sums = static_cast<int64_t>(*scalar_type_of(dot->shape->element_type()));
  return native::code_multiplies(types[0], types[1], sums, summed) ? narrow[n] : given;
}

// A product whose only use adds a row that is broadcast over all rows of the result takes that row
// as the start of its sums; so does a convolution, whose row has the output features.
void UnitPlan::find_sums(std::span<const Instruction* const> instructions,
                         const std::vector<Wanted>& wanted) {
  std::unordered_map<const Instruction*, int> uses;
  for (const Instruction* i : instructions) {
    for (const Instruction* operand : i->operands) ++uses[operand];
  }
  for (const Wanted& one : wanted) uses[one.instruction] += 2;
  for (const Instruction* i : instructions) {
    ElementType type = i->shape->element_type();
    if (i->opcode != Opcode::Add || (type != ElementType::F32 && type != ElementType::F64))
      continue;
    for (size_t side = 0; side < 2; ++side) {
      const Instruction *product = i->operands[side], *row = i->operands[1 - side];
      if (is_given(product) || uses[product] != 1 || is_given(row) ||
          row->opcode != Opcode::Broadcast || i->shape->elements() == 0) {
        continue;
      }
      const int64_t at = row_dimension(product);
      if (at < 0) continue;
      const Shape& given = row->operand_shape(0);
      auto dims = row->integers(AttributeKey::Dimensions);
      int64_t size = i->shape->dimension(at);
      bool fits = given.elements() == size && given.rank() > 0 && dims.back() == at &&
                  given.dimension(given.rank() - 1) == size;
      // Convolutions for gradients take no row, and the library requires the row to be contiguous.
      if (fits && product->opcode == Opcode::Convolution) {
        fits = convolution_problem(*product)->kind == ConvolutionProblem::Forward &&
               (size == 1 || view(row->operands[0]).strides.back() == 1);
      }
      if (!fits) continue;
      sums[i] = {product, row->operands[0]};
      break;
    }
  }
}

}  // namespace lamella::hlo::compiler
