// torch::jit::parseSchema, parseName; c10::findSchemaDifferences.
#pragma once
#include <ATen/core/dispatch/Dispatcher.h>

namespace torch::jit {
// A schema that was read from a text, which Library::def() takes.
class ParsedSchema : public c10::FunctionSchema {
 public:
  ParsedSchema(c10::FunctionSchema schema, std::string text)
      : FunctionSchema(schema), text_(std::move(text)) {}
  operator const std::string&() const { return text_; }  // NOLINT: as in PyTorch

 private:
  std::string text_;
};
// The schema of a text. Each text stays declared, in a namespace that only this function uses.
LAMELLA_LAZY ParsedSchema parseSchema(const std::string& text) {
  static std::vector<lamella::RegistrationHandleRAII> declared;
  const std::string name = text.substr(0, text.find('('));
  const size_t colons = name.find("::");
  const std::string place = lamella::str("lamella_parsed_", declared.size(), "::");
  std::string schema = place + text.substr(colons == std::string::npos ? 0 : colons + 2);
  declared.push_back(lamella::Dispatcher::singleton().registerDef(schema.c_str(), "parseSchema"));
  schema.resize(schema.find('('));
  const size_t dot = schema.find('.');
  auto op = lamella::Dispatcher::singleton().findSchemaOrThrow(
      schema.substr(0, dot).c_str(),
      dot == std::string::npos ? "" : schema.substr(dot + 1).c_str());
  return {op.schema(), text};
}
LAMELLA_LAZY c10::OperatorName parseName(const std::string& text) {
  const size_t dot = text.find('.');
  return {text.substr(0, dot), dot == std::string::npos ? "" : text.substr(dot + 1)};
}
}  // namespace torch::jit

namespace c10 {
// What two schemas differ in, apart from names and defaults; nothing if they agree.
LAMELLA_LAZY std::optional<std::string> findSchemaDifferences(const FunctionSchema& one,
                                                              const FunctionSchema& other) {
  auto compare = [](const std::vector<Argument>& a, const std::vector<Argument>& b,
                    const char* what) -> std::optional<std::string> {
    if (a.size() != b.size()) {
      return lamella::str("expected as many ", what, "s, got ", a.size(), " and ", b.size());
    }
    for (size_t i = 0; i < a.size(); ++i) {
      if (a[i].type_text() == b[i].type_text()) continue;
      return lamella::str("expected equal types of ", what, " ", i + 1, ", got ", a[i].type_text(),
                          " and ", b[i].type_text());
    }
    return std::nullopt;
  };
  auto difference = compare(one.arguments(), other.arguments(), "argument");
  return difference ? difference : compare(one.returns(), other.returns(), "return");
}
}  // namespace c10
