// Checks the returns of kernels: see Note [Undefined tensors].
#include "lamella/dispatch/return_rules.h"
#include "lamella/dispatch/explain.h"

#include "lamella/dispatch/registry.h"

namespace lamella {
namespace {

bool is_undefined(const lamella_value& value) {
  return value.tag == LAMELLA_NONE || (value.tag == LAMELLA_TENSOR && value.as.tensor == nullptr);
}

// The text of a failure, "" where the returns are as they must be.
std::string broken_rule(const lamella_operator* op, const lamella_value* arguments,
                        const lamella_value* returns) {
  auto* entry = entry_of(op);
  std::lock_guard lock(Registry::get().mutex());
  const FunctionSchema& schema = Registry::get().schema(entry);
  const lamella_value* mask = nullptr;
  for (size_t i = 0; i < schema.arguments.size(); ++i) {
    if (schema.arguments[i].name == "output_mask" && arguments[i].tag == LAMELLA_BOOL_LIST) {
      mask = &arguments[i];
    }
  }
  for (size_t i = 0; i < schema.returns.size(); ++i) {
    if (entry->current->return_types[i].rfind("Tensor", 0) != 0) continue;  // numbers
    if (entry->current->return_types[i].find('?') != std::string::npos) continue;
    bool wanted =
        mask == nullptr || i >= mask->size || static_cast<const uint8_t*>(mask->as.pointer)[i] != 0;
    if (is_undefined(returns[i]) != wanted) continue;
    std::string text = entry->full_name() + ": expected its kernel to return ";
    text += wanted ? "a tensor" : "an undefined tensor";
    text += " as return " + std::to_string(i);
    if (mask != nullptr && i < mask->size) {
      text += ", where 'output_mask' is ";
      text += wanted ? "true" : "false";
    }
    return text + ", got " + (wanted ? "an undefined tensor" : describe_value(returns[i]));
  }
  return "";
}

}  // namespace

lamella_status check_undefined_returns(const lamella_operator* op, const lamella_value* arguments,
                                       lamella_value* returns) {
  std::string text;
  try {
    text = broken_rule(op, arguments, returns);
  } catch (...) {
    return detail::status_of_current_exception();
  }
  if (text.empty()) return LAMELLA_OK;
  for (uint32_t i = 0; i < op->return_count; ++i) lamella_value_release(&returns[i]);
  return detail::fail(LAMELLA_INTERNAL_ERROR, text);
}

}  // namespace lamella
