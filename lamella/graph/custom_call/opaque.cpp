// Decodes backend_config to bytes.
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

std::string quoted_opaque(std::string_view bytes) {
  std::string text = "\"";
  for (char c : bytes) {
    auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      text += '\\';
      text += c;
    } else if (code >= 32 && code < 127) {
      text += c;
    } else {
      text += '\\';
      for (int shift : {6, 3, 0}) text += static_cast<char>('0' + (code >> shift & 7));
    }
  }
  return text + '"';
}

}  // namespace lamella::hlo
