// Reading backend_config as bytes.
#include "lamella/graph/custom_call/opaque.h"

#include "lamella/graph/hlo/attribute_scanner.h"

namespace lamella::hlo {

std::string opaque_of(const Instruction& instruction) {
  std::string_view text = instruction.text(AttributeKey::BackendConfig);
  if (text.empty() || text.front() != '"') return std::string(text);
  Arena arena;
  Scanner scanner(text, "hlo: backend_config");
  return std::string(scan_quoted(scanner, arena));
}

}  // namespace lamella::hlo
