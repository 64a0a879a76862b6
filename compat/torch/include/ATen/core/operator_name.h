// c10::OperatorName: "aten::add" and "Tensor".
#pragma once
#include <c10/lamella_names.h>

#include "lamella/dispatch/operator_handle.h"

namespace c10 {
struct OperatorName : lamella::OperatorId {
  using OperatorId::OperatorId;
  OperatorName(OperatorId id) : OperatorId(std::move(id)) {}  // NOLINT: implicit
  // What stands before "::".
  std::optional<std::string_view> getNamespace() const {
    const size_t end = name.find("::");
    return end == std::string::npos ? std::nullopt
                                    : std::optional(std::string_view(name).substr(0, end));
  }
  // False where the name has a namespace already.
  bool setNamespaceIfNotSet(const char* name_space) {
    if (getNamespace().has_value()) return false;
    name = lamella::str(name_space, "::", name);
    return true;
  }
};
}  // namespace c10
