// Reading a module of StableHLO.
#include "lamella/graph/stablehlo/stablehlo.h"

#include "lamella/graph/hlo/scanner.h"
#include "lamella/graph/stablehlo/translation.h"

namespace lamella::hlo::stablehlo {

bool is_bytecode(std::string_view data) { return data.starts_with("ML\xefR"); }

// HLO begins with HloModule, a computation or an instruction; StableHLO with a module, a function
// or an alias behind '#'.
bool is_text(std::string_view text) {
  Scanner s(text, "stablehlo");
  const char first = s.peek();
  if (first == '#' || first == '!') return true;
  if (s.take('"')) return s.take("builtin.module") || s.take("func.func");
  for (std::string_view word : {"module", "builtin.module", "func.func"}) {
    if (!s.take(word)) continue;
    const bool is_whole = s.position() < text.size() && !Scanner::is_word(text[s.position()]);
    if (s.take('{')) return s.take("func.func") || s.take("\"func.func") || s.take('}');
    return is_whole &&
           (s.peek() == '@' || s.take("attributes ") || s.take("private ") || s.take("public "));
  }
  return false;
}

std::unique_ptr<Module> read(std::string_view data, bool verified, std::string_view entry) {
  auto module = std::make_unique<Module>("");
  // Strings and elements are views of the module's own copy.
  std::string_view kept = module->arena().copy(data);
  Program program =
      is_bytecode(data) ? read_bytecode(kept, module->arena()) : read_text(kept, module->arena());
  Translation translation(program, *module);
  translation.run(entry);
  if (verified) translation.verify();
  return module;
}

}  // namespace lamella::hlo::stablehlo
