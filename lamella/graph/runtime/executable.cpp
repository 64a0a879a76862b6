// Checks and shares the arguments of executables.
#include "lamella/graph/runtime/executable.h"

#include "lamella/core/error.h"
#include "lamella/graph/runtime/sized_value.h"

namespace lamella::hlo {

void Executable::check_arguments(std::span<const Value> arguments) const {
  const std::vector<Instruction*>& parameters = module_->entry->parameters;
  LAMELLA_CHECK(arguments.size() == parameters.size(), "hlo: expected ", parameters.size(),
                " arguments for '", module_->entry->name, "', got ", arguments.size());
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Shape &given = arguments[i].shape(), &wanted = *parameters[i]->shape;
    bool fits = given.compatible(wanted) || (given.element_type() == wanted.element_type() &&
                                             is_within(wanted, given.dimensions()));
    LAMELLA_CHECK(fits, "hlo: expected argument ", i, " ('", parameters[i]->name, "') to be ",
                  wanted.to_string(false), ", got ", given.to_string(false));
  }
}

Value Executable::run(std::span<const Value> arguments) const {
  constexpr size_t kFew = 32;
  Value few[kFew];
  std::vector<Value> many(arguments.size() > kFew ? arguments.size() : 0);
  Value* shared = many.empty() ? few : many.data();
  for (size_t a = 0; a < arguments.size(); ++a) shared[a].share(arguments[a]);
  return run({shared, arguments.size()}, RunOptions());
}

}  // namespace lamella::hlo
