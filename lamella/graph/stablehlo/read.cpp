// Reading a module of StableHLO.
#include "lamella/graph/stablehlo/stablehlo.h"

#include "lamella/graph/stablehlo/translation.h"

namespace lamella::hlo::stablehlo {

bool is_bytecode(std::string_view data) { return data.starts_with("ML\xefR"); }

std::unique_ptr<Module> read(std::string_view data, bool verified) {
  auto module = std::make_unique<Module>("");
  // Strings and elements are views of the module's own copy.
  std::string_view kept = module->arena().copy(data);
  Program program =
      is_bytecode(data) ? read_bytecode(kept, module->arena()) : read_text(kept, module->arena());
  Translation(program, *module).run();
  if (verified) verify(*module);
  return module;
}

}  // namespace lamella::hlo::stablehlo
