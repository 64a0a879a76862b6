// Reads signatures, one a line, from a file or stdin. Prints each that does not survive: that does
// not parse, whose text changes beyond quotes and spaces inside lists, or that breaks an alias
// rule.
//   roundtrip [--exact] [--registered] [--resolved] [FILE]
// --exact: the printed text must equal the line. --registered: use the rules of registered
// operators.
// --resolved: print each line's resolved form instead.
#include <fstream>
#include <iostream>
#include <string>

#include "lamella/schema/alias_check.h"
#include "lamella/schema/parser.h"

namespace {

bool exact = false;
bool resolved = false;
lamella::SchemaRules rules = lamella::SchemaRules::kDeclared;

// Canonical form of what may differ: string quotes, and the space after a comma inside a list.
std::string normalized(const std::string& line) {
  std::string out;
  int brackets = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '[') ++brackets;
    if (c == ']') --brackets;
    if (brackets > 0 && c == ' ') continue;
    // \' and ' and " are one: what they enclose was compared by parsing.
    if (c == '\\' && i + 1 < line.size() && (line[i + 1] == '\'' || line[i + 1] == '"')) continue;
    out += c == '\'' ? '"' : c;
  }
  return out;
}

std::string failure_of(const std::string& line) {
  lamella::FunctionSchema schema = lamella::parse_schema(line);
  const std::string printed = schema.str();
  if (exact ? printed != line : normalized(printed) != normalized(line)) {
    return "printed as\n  " + printed;
  }
  for (const std::string& text : {printed, schema.resolved_str()}) {
    lamella::FunctionSchema again = lamella::parse_schema(text);
    if (again != schema) return lamella::describe_difference(schema, again) + " in\n  " + text;
  }
  if (lamella::parse_schema(printed).str() != printed) return "printing is not stable";
  auto problems = lamella::check_alias_rules(schema, line, rules);
  if (!problems.empty()) return lamella::format_problem(line, problems[0]);
  return "";
}

}  // namespace

int main(int argc, char** argv) {
  std::ifstream file;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (arg == "--exact") {
      exact = true;
    } else if (arg == "--registered") {
      rules = lamella::SchemaRules::kRegistered;
    } else if (arg == "--resolved") {
      resolved = true;
    } else {
      file.open(arg);
      if (!file) {
        std::cerr << "cannot read " << arg << "\n";
        return 2;
      }
    }
  }
  std::istream& in = file.is_open() ? file : std::cin;
  int count = 0;
  int failures = 0;
  for (std::string line; std::getline(in, line);) {
    if (line.empty()) continue;
    ++count;
    try {
      if (resolved) {
        std::cout << lamella::parse_schema(line).resolved_str() << "\n";
        continue;
      }
      const std::string failure = failure_of(line);
      if (failure.empty()) continue;
      std::cout << line << "\n  " << failure << "\n";
    } catch (const lamella::SchemaError& error) {
      std::cout << error.what() << "\n";
    }
    ++failures;
  }
  if (!resolved) std::cout << count << " signatures, " << failures << " lost\n";
  return failures == 0 && count > 0 ? 0 : 1;
}
