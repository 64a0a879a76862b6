// Derivation of OperatorFacts from a schema: Note [What a return is].
#include "lamella/schema/operator_facts.h"

#include <algorithm>

namespace lamella {
namespace {

bool may_share(const Argument& argument, const Argument& result) {
  const AliasInfo* of_argument = argument.alias();
  const AliasInfo* of_result = result.alias();
  if (of_argument == nullptr || of_result == nullptr) return false;
  auto contains = [](const std::vector<std::string>& sets, const std::string& set) {
    return std::ranges::find(sets, set) != sets.end();
  };
  return std::ranges::any_of(of_result->before, [&](const std::string& set) {
    return set == "*" || contains(of_argument->before, set) || contains(of_argument->after, set);
  });
}

}  // namespace

OperatorFacts::OperatorFacts(const FunctionSchema& schema) {
  for (const Argument& argument : schema.arguments) {
    const auto i = static_cast<uint16_t>(arguments.size());
    ArgumentFacts& one = arguments.emplace_back();
    one.is_tensor = argument.type.holds_tensor();
    one.is_list = argument.type.without_optional().is_list();
    one.is_written = one.is_tensor && argument.is_write();
    one.is_out = argument.is_out();
    if (one.is_tensor) tensors.push_back(i);
    if (one.is_written) written.push_back(i);
  }
  not_returned = written;
  for (const Argument& result : schema.returns) {
    ReturnFacts& one = returns.emplace_back();
    one.is_tensor = result.type.holds_tensor();
    one.is_list = result.type.without_optional().is_list();
    if (!one.is_tensor) continue;
    for (uint16_t i : tensors) {
      if (!may_share(schema.arguments[i], result)) continue;
      if (!result.is_write() || !arguments[i].is_written) {
        one.bases.push_back(i);
        if (std::ranges::find(viewed, i) == viewed.end()) viewed.push_back(i);
      } else if (one.written < 0) {
        one.written = i;
        std::erase(not_returned, i);
      }
    }
  }
}

}  // namespace lamella
