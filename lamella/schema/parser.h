// The one parser of operator signatures: `ns::name.overload(Type arg=default, *, ...) -> Returns`.
#pragma once

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>

#include "lamella/schema/schema.h"

namespace lamella {

// Where and why a signature could not be parsed. Positions refer to the given text.
struct SchemaProblem {
  std::string message;
  std::uint32_t offset = 0;  // bytes from the start of the text
  int line = 1;              // both from 1
  int column = 1;
};

// The message, the line of `text` at fault and a caret under the column:
//   schema error at column 5: unknown type 'tensor'; did you mean 'Tensor'?
//     foo(tensor x) -> Tensor
//         ^
LAMELLA_PRIVATE_API std::string format_problem(std::string_view text, const SchemaProblem& problem);

// A problem with the line and column of its offset in `text`.
SchemaProblem locate(std::string_view text, std::string message, std::uint32_t offset);
// Sets the lines and columns of problems from their offsets, which must ascend.
void locate_all(std::string_view text, std::span<SchemaProblem> problems);

class SchemaError : public std::runtime_error {
 public:
  SchemaError(std::string_view text, SchemaProblem problem)
      : std::runtime_error(format_problem(text, problem)), problem_(std::move(problem)) {}
  const std::string& message() const { return problem_.message; }
  int line() const { return problem_.line; }
  int column() const { return problem_.column; }
  const SchemaProblem& problem() const { return problem_; }

 private:
  SchemaProblem problem_;
};

// Throws SchemaError.
LAMELLA_PRIVATE_API FunctionSchema parse_schema(std::string_view text);
OperatorName parse_operator_name(std::string_view text);
// A type alone, with its annotations: "Tensor(a!)[]". The argument has no name.
Argument parse_type(std::string_view text);
// `name.overload` alone, or a whole signature.
std::variant<OperatorName, FunctionSchema> parse_schema_or_name(std::string_view text);

// The same without throwing.
std::variant<FunctionSchema, SchemaProblem> try_parse_schema(std::string_view text);
std::variant<OperatorName, SchemaProblem> try_parse_operator_name(std::string_view text);

}  // namespace lamella
