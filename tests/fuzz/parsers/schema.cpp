// Operator signatures: an error with its position, or a schema that prints and reads back.
#include <fstream>

#include "lamella/schema/parser.h"
#include "target.h"

namespace lamella::fuzz {

// The signatures of the project's own operators.
std::vector<std::string> seeds() {
  std::vector<std::string> all{"ns::f.x(Tensor(a!)? self, int[2] d=[0, 1], *, str s='a') -> ()"};
  std::ifstream file(LAMELLA_OPERATORS);
  for (std::string line; std::getline(file, line);) {
    constexpr std::string_view kBefore = "- func: ";
    if (line.starts_with(kBefore)) all.push_back(line.substr(kBefore.size()));
  }
  return all;
}
std::vector<std::string> words() {
  return {"Tensor",
          "Tensor(a!)",
          "Tensor(a -> *)",
          "Tensor(a|b)",
          "?",
          "[]",
          "[2]",
          "SymInt",
          "Scalar",
          "Generator?",
          "->",
          " -> ()",
          "=None",
          "=[]",
          "*, ",
          "...",
          "float",
          "complex",
          "int[3]=1",
          "Dict(str, int)",
          "__torch__.torch.classes.a.B",
          "(",
          ")",
          "1e999",
          "Future(Tensor)",
          "Device?",
          "MemoryFormat?=contiguous_format"};
}

}  // namespace lamella::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lamella;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  auto parsed = try_parse_schema(text);
  if (auto* schema = std::get_if<FunctionSchema>(&parsed)) {
    std::string printed = schema->str();
    auto again = try_parse_schema(printed);
    auto* same = std::get_if<FunctionSchema>(&again);
    if (same == nullptr || same->str() != printed) fuzz::found("a schema that does not read back");
  }
  try_parse_operator_name(text);
  return 0;
}
