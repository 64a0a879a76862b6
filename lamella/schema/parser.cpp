// Recursive descent over the signature text. Every failure carries the byte where it was noticed.
#include "lamella/schema/parser.h"

#include <algorithm>
#include <cctype>
#include <unordered_set>

#include "lamella/schema/default_parser.h"
#include "lamella/schema/lexer.h"
#include "lamella/schema/suggest.h"

namespace lamella {
namespace {

using detail::Cursor;

constexpr int kMaxDepth = 32;

// t, t1, tVal, tKey_2: single-letter type variables as signatures of containers use them.
bool is_type_var(std::string_view word) {
  if (word.empty() || word[0] != 't') return false;
  if (word.size() == 1) return true;
  const unsigned char second = static_cast<unsigned char>(word[1]);
  return std::isdigit(second) || std::isupper(second);
}

class Parser {
 public:
  explicit Parser(std::string_view text) : in_(text) {}

  FunctionSchema schema() {
    FunctionSchema schema;
    schema.name = operator_name();
    schema_after_name(schema);
    return schema;
  }

  std::variant<OperatorName, FunctionSchema> schema_or_name() {
    OperatorName name = operator_name();
    if (in_.at_end()) return name;
    FunctionSchema schema;
    schema.name = std::move(name);
    schema_after_name(schema);
    return schema;
  }

  OperatorName whole_name() {
    OperatorName name = operator_name();
    in_.expect_end("after the operator's name");
    return name;
  }

  Argument whole_type() {
    Argument argument;
    type(argument);
    in_.expect_end("after the type");
    return argument;
  }

 private:
  OperatorName operator_name() {
    OperatorName name;
    in_.skip_space();
    name.name = identifier("an operator's name");
    if (in_.accept("::")) {
      name.ns = std::move(name.name);
      name.name = identifier("an operator's name after '::'");
      in_.skip_space();
      if (in_.peek("::")) {
        in_.fail("an operator's name has one namespace at most: write 'ns::name'");
      }
    }
    if (in_.peek(".") && !in_.peek("...")) {
      in_.accept(".");
      const std::uint32_t at = in_.offset();
      name.overload_name = identifier("an overload name after '.'");
      if (name.overload_name == "default") {
        in_.fail_at(at, "the overload name 'default' is reserved for the overload without a name");
      }
    }
    return name;
  }

  std::string identifier(const char* what) {
    in_.skip_space();
    std::string_view word = in_.take_identifier();
    if (word.empty()) in_.fail("expected " + std::string(what) + ", got " + in_.describe());
    return std::string(word);
  }

  void schema_after_name(FunctionSchema& schema) {
    in_.expect("(", "after the operator's name");
    arguments(schema);
    if (!in_.accept("->")) {
      in_.fail("expected '->' and the returns after the arguments, got " + in_.describe());
    }
    returns(schema);
    in_.expect_end("after the returns");
  }

  void arguments(FunctionSchema& schema) {
    bool kwarg_only = false;
    if (in_.accept(")")) return;
    while (true) {
      if (in_.accept("...")) {
        schema.is_vararg = true;
        in_.expect(")", "after '...', which must come last");
        return;
      }
      if (in_.peek("*")) {
        const std::uint32_t star = in_.offset();
        in_.accept("*");
        if (kwarg_only) in_.fail_at(star, "'*' appears twice: it may mark keyword-only once");
        kwarg_only = true;
        if (in_.peek(")")) {
          in_.fail_at(star, "'*' must be followed by at least one keyword-only argument");
        }
      } else {
        Argument argument = one_argument();
        argument.kwarg_only = kwarg_only;
        schema.arguments.push_back(std::move(argument));
      }
      if (in_.accept(")")) return;
      if (!in_.accept(","))
        in_.fail("expected ',' or ')' after an argument, got " + in_.describe());
    }
  }

  Argument one_argument() {
    Argument argument;
    type(argument);
    in_.skip_space();
    argument.name_offset = in_.offset();
    std::string_view word = in_.take_identifier();
    if (word.empty()) {
      in_.fail("expected an argument name after '" + argument.type_str() + "', got " +
               in_.describe());
    }
    argument.name = std::string(word);
    if (in_.accept("=")) {
      in_.skip_space();
      argument.default_offset = in_.offset();
      argument.default_value = detail::parse_default(in_, argument.type);
    }
    return argument;
  }

  void returns(FunctionSchema& schema) {
    if (in_.accept("...")) {
      schema.is_varret = true;
      return;
    }
    if (in_.accept_word("None")) return;  // PyTorch's other word for ()
    if (!in_.accept("(")) {
      schema.returns.push_back(one_return());
      return;
    }
    if (in_.accept(")")) return;
    while (true) {
      if (in_.accept("...")) {
        schema.is_varret = true;
        in_.expect(")", "after '...', which must come last");
        return;
      }
      schema.returns.push_back(one_return());
      if (in_.accept(")")) break;
      if (!in_.accept(",")) in_.fail("expected ',' or ')' after a return, got " + in_.describe());
    }
  }

  Argument one_return() {
    Argument result;
    type(result);
    in_.skip_space();
    result.name_offset = in_.offset();
    result.name = std::string(in_.take_identifier());
    if (in_.peek("=")) in_.fail("a return cannot have a default value");
    return result;
  }

  // Reads a type with its annotations into `argument`.
  void type(Argument& argument) {
    in_.skip_space();
    argument.type_offset = in_.offset();
    SchemaType type = base_type();
    int suffixes = 0;
    annotation(argument, suffixes);
    while (true) {
      const std::uint32_t at = in_.offset_after_space();
      if (in_.accept("[")) {
        type = SchemaType::list_of(type, list_size());
        in_.expect("]", "to close the list type");
      } else if (in_.accept("?")) {
        if (type.is_optional()) in_.fail_at(at, "'?' appears twice: a type is optional once");
        type = SchemaType::optional_of(type);
      } else {
        break;
      }
      if (++suffixes > kMaxDepth) in_.fail_at(at, "the type is nested too deeply");
      annotation(argument, suffixes);
    }
    argument.type = type;
    // The depth was counted from the inside so far; reverse it, outermost first.
    for (AliasInfo& alias : argument.aliases) {
      alias.depth = static_cast<std::uint8_t>(suffixes - alias.depth);
    }
    std::reverse(argument.aliases.begin(), argument.aliases.end());
  }

  std::optional<int> list_size() {
    in_.skip_space();
    const std::uint32_t at = in_.offset();
    std::string_view digits = in_.take_digits();
    if (digits.empty()) {
      if (!in_.peek("]")) {
        in_.fail("expected a length or ']' in the list type, got " + in_.describe());
      }
      return std::nullopt;
    }
    if (digits.size() > 6) in_.fail_at(at, "the length of a list type is at most 999999");
    const int size = std::stoi(std::string(digits));
    if (size == 0)
      in_.fail_at(at, "the length of a list type must be positive; write '[]' for any");
    return size;
  }

  SchemaType base_type() {
    if (++depth_ > kMaxDepth) in_.fail("the type is nested too deeply");
    SchemaType type = base_type_inner();
    --depth_;
    return type;
  }

  SchemaType base_type_inner() {
    in_.skip_space();
    const std::uint32_t at = in_.offset();
    if (in_.accept("(")) {
      std::vector<SchemaType> members;
      if (!in_.accept(")")) {
        do {
          members.push_back(inner_type());
        } while (in_.accept(","));
        in_.expect(")", "to close the tuple type");
      }
      return SchemaType::tuple_of(members);
    }
    std::string_view word = in_.take_identifier();
    if (word.empty()) in_.fail("expected a type, got " + in_.describe());
    if (word == "__torch__") return class_type(at);
    if (word == "Dict") {
      in_.expect("(", "after 'Dict'");
      SchemaType key = inner_type();
      in_.expect(",", "between the key and the value of a Dict");
      SchemaType value = inner_type();
      in_.expect(")", "to close the Dict");
      return SchemaType::dict_of(key, value);
    }
    if (word == "Future" || word == "Await" || word == "RRef") {
      const TypeKind kind = word == "Future"  ? TypeKind::kFuture
                            : word == "Await" ? TypeKind::kAwait
                                              : TypeKind::kRRef;
      in_.expect("(", word == "Future"  ? "after 'Future'"
                      : word == "Await" ? "after 'Await'"
                                        : "after 'RRef'");
      SchemaType element = inner_type();
      in_.expect(")", "to close the type");
      return SchemaType::wrapper_of(kind, element);
    }
    if (auto type = SchemaType::from_word(word)) return *type;
    if (is_type_var(word)) return SchemaType::type_var(word);
    std::string hint = did_you_mean(word, type_words());
    if (word == "double" || word == "Float") hint = "; did you mean 'float'?";
    if (word == "string" || word == "String") hint = "; did you mean 'str'?";
    if (word == "int64_t" || word == "long") hint = "; did you mean 'int'?";
    if (word == "TensorList") hint = "; did you mean 'Tensor[]'?";
    if (word == "IntArrayRef" || word == "IntList") hint = "; did you mean 'int[]'?";
    if (word == "dtype") hint = "; did you mean 'ScalarType'?";
    in_.fail_at(at, "unknown type '" + std::string(word) + "'" + hint);
  }

  SchemaType class_type(std::uint32_t at) {
    std::string name = "__torch__";
    while (in_.peek_raw('.')) {
      in_.take_char();
      std::string_view part = in_.take_identifier();
      if (part.empty()) in_.fail("expected a name after '.', got " + in_.describe());
      name += '.';
      name += part;
    }
    if (name == "__torch__") {
      in_.fail_at(at, "expected a class name like '__torch__.torch.classes.ns.Name'");
    }
    return SchemaType::custom_class(name);
  }

  // A member of a Dict, tuple or Future: a type without annotations.
  SchemaType inner_type() {
    Argument member;
    type(member);
    if (!member.aliases.empty()) {
      in_.fail_at(member.aliases[0].offset,
                  "an alias annotation may not stand inside a Dict, a tuple or a Future");
    }
    return member.type;
  }

  void annotation(Argument& argument, int depth) {
    // An annotation follows its type without a space; `Tensor (` would be a tuple elsewhere.
    const bool open = in_.peek_raw('(');
    if (!open && !in_.peek_raw('!')) return;
    AliasInfo alias;
    alias.offset = in_.offset();
    alias.depth = static_cast<std::uint8_t>(depth);
    in_.take_char();
    if (!open) {
      alias.shorthand = true;
      alias.is_write = true;
      alias.before = alias.after = {"$" + std::to_string(fresh_++)};
      argument.aliases.push_back(std::move(alias));
      return;
    }
    alias.before = alias_set();
    alias.is_write = in_.accept("!");
    if (in_.accept("->")) {
      alias.after = alias_set();
      if (in_.peek("!")) in_.fail("'!' belongs before '->': write '(a! -> b)'");
    } else {
      alias.after = alias.before;
    }
    if (!in_.accept(")")) {
      in_.fail("expected ')' to close the alias annotation, got " + in_.describe());
    }
    if (in_.peek_raw('(')) in_.fail("a type carries one alias annotation");
    argument.aliases.push_back(std::move(alias));
  }

  std::vector<std::string> alias_set() {
    std::vector<std::string> names;
    std::unordered_set<std::string> seen;
    do {
      in_.skip_space();
      const std::uint32_t at = in_.offset();
      if (in_.accept("*")) {
        if (!names.empty()) in_.fail_at(at, "'*' is every set: it stands alone");
        names.push_back("*");
        if (in_.peek("|")) in_.fail("'*' is every set: it stands alone");
        break;
      }
      std::string name = identifier("the name of an alias set");
      if (!seen.insert(name).second) in_.fail_at(at, "alias set '" + name + "' appears twice");
      names.push_back(std::move(name));
    } while (in_.accept("|"));
    return names;
  }

  Cursor in_;
  int depth_ = 0;
  int fresh_ = 0;
};

template <typename Result, typename Parse>
std::variant<Result, SchemaProblem> guarded(std::string_view text, Parse parse) {
  try {
    Parser parser(text);
    return parse(parser);
  } catch (const detail::Failure& failure) {
    return locate(text, failure.message, failure.offset);
  }
}

template <typename Result>
Result or_throw(std::string_view text, std::variant<Result, SchemaProblem> outcome) {
  if (auto* problem = std::get_if<SchemaProblem>(&outcome)) throw SchemaError(text, *problem);
  return std::move(std::get<Result>(outcome));
}

}  // namespace

SchemaProblem locate(std::string_view text, std::string message, std::uint32_t offset) {
  SchemaProblem problem;
  problem.message = std::move(message);
  problem.offset = offset;
  locate_all(text, {&problem, 1});
  return problem;
}

void locate_all(std::string_view text, std::span<SchemaProblem> problems) {
  std::size_t i = 0;
  int line = 1;
  int column = 1;
  for (SchemaProblem& problem : problems) {
    for (; i < problem.offset && i < text.size(); ++i) {
      column = text[i] == '\n' ? 1 : column + 1;
      line += text[i] == '\n';
    }
    problem.line = line;
    problem.column = column;
  }
}

std::string format_problem(std::string_view text, const SchemaProblem& problem) {
  std::string out = "schema error at ";
  if (problem.line > 1) out += "line " + std::to_string(problem.line) + ", ";
  out += "column " + std::to_string(problem.column) + ": " + problem.message + "\n  ";
  std::size_t begin = 0;
  for (int line = 1; line < problem.line; ++line) begin = text.find('\n', begin) + 1;
  std::string_view line = text.substr(begin, text.find('\n', begin) - begin);
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  out += line;
  out += "\n  ";
  // Tabs are repeated so that the caret stays under its column.
  for (int i = 0; i + 1 < problem.column; ++i) {
    out += static_cast<std::size_t>(i) < line.size() && line[static_cast<std::size_t>(i)] == '\t'
               ? '\t'
               : ' ';
  }
  return out + "^";
}

std::variant<FunctionSchema, SchemaProblem> try_parse_schema(std::string_view text) {
  return guarded<FunctionSchema>(text, [](Parser& parser) { return parser.schema(); });
}

std::variant<OperatorName, SchemaProblem> try_parse_operator_name(std::string_view text) {
  return guarded<OperatorName>(text, [](Parser& parser) { return parser.whole_name(); });
}

FunctionSchema parse_schema(std::string_view text) {
  return or_throw(text, try_parse_schema(text));
}

OperatorName parse_operator_name(std::string_view text) {
  return or_throw(text, try_parse_operator_name(text));
}

Argument parse_type(std::string_view text) {
  return or_throw(text,
                  guarded<Argument>(text, [](Parser& parser) { return parser.whole_type(); }));
}

std::variant<OperatorName, FunctionSchema> parse_schema_or_name(std::string_view text) {
  using Either = std::variant<OperatorName, FunctionSchema>;
  return or_throw(text,
                  guarded<Either>(text, [](Parser& parser) { return parser.schema_or_name(); }));
}

}  // namespace lamella
