// Checks the arguments of executables.
#include "lamella/graph/runtime/executable.h"

#include "lamella/core/error.h"

namespace lamella::hlo {

void Executable::check_arguments(std::span<const Value> arguments) const {
  const std::vector<Instruction*>& parameters = module_->entry->parameters;
  LAMELLA_CHECK(arguments.size() == parameters.size(), "hlo: expected ", parameters.size(),
                " arguments for '", module_->entry->name, "', got ", arguments.size());
  for (size_t i = 0; i < parameters.size(); ++i) {
    LAMELLA_CHECK(arguments[i].shape().compatible(*parameters[i]->shape), "hlo: expected argument ",
                  i, " ('", parameters[i]->name, "') to be ",
                  parameters[i]->shape->to_string(false), ", got ",
                  arguments[i].shape().to_string(false));
  }
}

}  // namespace lamella::hlo
