// Recognizes custom calls of operators that are functions of vectors, and that no opcode is.
#include "lamella/graph/custom_call/function_call.h"

#include <algorithm>

#include "lamella/core/error.h"
#include "lamella/graph/custom_call/operator_plan.h"

namespace lamella::hlo {
namespace {

// Arguments that are not operands are None, or the text `approximate`. A function of one type comes
// before that of all types.
struct FunctionOperator {
  const char* target;
  const char* name;
  size_t operands = 1;
  const char* approximate = "";
  ElementType only = ElementType::Invalid;
};
constexpr FunctionOperator kFunctions[] = {
    {"aten::erfc", "erfc"},
    {"aten::erfinv", "erfinv"},
    {"aten::exp2", "exp2"},
    {"aten::gelu", "gelu_half", 1, "none", ElementType::F16},
    {"aten::gelu", "gelu_bfloat16", 1, "none", ElementType::BF16},
    {"aten::gelu", "gelu", 1, "none"},
    {"aten::gelu", "gelu_tanh", 1, "tanh"},
    {"aten::gelu_backward", "gelu_backward", 2, "none"},
    {"aten::gelu_backward", "gelu_tanh_backward", 2, "tanh"},
    {"aten::log10", "log10"},
    {"aten::log2", "log2"},
    {"aten::logit", "logit"},
    {"aten::mish", "mish"},
    {"aten::mish_backward", "mish_backward", 2},
};

bool is_of_operands(const FunctionOperator& function,
                    const std::vector<OperatorArgument>& arguments) {
  if (arguments.size() < function.operands) return false;
  for (size_t a = 0; a < arguments.size(); ++a) {
    const OperatorArgument& one = arguments[a];
    if (a < function.operands) {
      if (one.operands != std::vector<int32_t>{static_cast<int32_t>(a)}) return false;
    } else if (one.value.isString() ? one.value.toStringView() != function.approximate
                                    : !one.value.isNone()) {
      return false;
    }
  }
  return true;
}

}  // namespace

const char* function_call(const Instruction& i) {
  if (i.opcode != Opcode::CustomCall || i.operands.empty() || !i.shape->is_array() ||
      !is_floating(i.shape->element_type())) {
    return nullptr;
  }
  for (size_t o = 0; o < i.operands.size(); ++o) {
    if (*i.shape != i.operand_shape(o)) return nullptr;
  }
  std::string_view target = i.text(AttributeKey::CustomCallTarget);
  auto is_target = [&](const FunctionOperator& one) { return one.target == target; };
  if (std::ranges::none_of(kFunctions, is_target)) return nullptr;
  std::vector<OperatorArgument> arguments = arguments_of_call(i, target);
  for (const FunctionOperator& one : kFunctions) {
    bool fits = one.only == ElementType::Invalid || one.only == i.shape->element_type();
    if (fits && one.operands == i.operands.size() && is_target(one) &&
        is_of_operands(one, arguments)) {
      return one.name;
    }
  }
  return nullptr;
}

bool is_elementwise(const Instruction& i) {
  return opcode_family(i.opcode) == Family::Elementwise || function_call(i) != nullptr;
}

}  // namespace lamella::hlo
