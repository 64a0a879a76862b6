// FunctionSchema: one operator's signature as data. Made by parse_schema (parser.h) or by hand.
#pragma once

#include <complex>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lamella/core/macros.h"
#include "lamella/schema/type.h"

namespace lamella {

// `ns::name.overload`; ns and overload may be empty. An empty namespace means the library's to the
// dispatcher, and the default namespace to the generator.
struct LAMELLA_PRIVATE_API OperatorName {
  std::string ns;
  std::string name;
  std::string overload_name;

  // `ns::name.overload`, without the parts that are empty.
  std::string str() const;
  // `ns::name`.
  std::string qualified_name() const;
  // True for names like __iand__.
  bool is_dunder() const;
  // True if the operator writes its first argument: the name ends in one `_`, or is one of the
  // dunder names that Python's augmented assignments call (__iadd__, __iand__, ...).
  bool is_inplace() const;
  // The name without the mark of an in-place operator: add_ -> add, __iand__ -> __and__.
  std::string base_name() const;

  friend bool operator==(const OperatorName&, const OperatorName&) = default;
};

// The alias annotation of one argument or return: which sets of tensors it may share memory with.
//   (a)       before {a}, after {a}            (a!)        the same, written to
//   (a -> *)  before {a}, after {*}            (a! -> a|b) written, then in both sets
//   Tensor!   before {$0}, after {$0}, written, `shorthand`
struct AliasInfo {
  std::vector<std::string> before;
  std::vector<std::string> after;
  bool is_write = false;
  bool shorthand = false;
  // How many `?` and `[]` stand outside the annotation: 0 for Tensor[](a!), 1 for Tensor(a!)[].
  std::uint8_t depth = 0;
  // Byte offset in the parsed text. Not compared.
  std::uint32_t offset = 0;

  // With the parentheses, or `!` for the shorthand.
  std::string str() const;
  bool is_wildcard() const { return before.size() == 1 && before[0] == "*"; }
  friend bool operator==(const AliasInfo& a, const AliasInfo& b) {
    return a.before == b.before && a.after == b.after && a.is_write == b.is_write &&
           a.depth == b.depth;
  }
};

// A default, already of the argument's type: an int given to a float is a double, a bare number
// given to int[2] is a list of two, and a word (Mean, long, contiguous_format, strided) is the
// int64 that stands for it. [] for a Tensor is None, which then means an undefined tensor.
struct LAMELLA_PRIVATE_API DefaultValue {
  using None = std::monostate;
  using Value = std::variant<None, bool, std::int64_t, double, std::complex<double>, std::string,
                             std::vector<bool>, std::vector<std::int64_t>, std::vector<double>,
                             std::vector<std::string>>;
  Value value;
  // The default as it is spelled, in canonical form: double quotes, ", " between elements. Empty if
  // made by hand.
  std::string text;

  bool is_none() const { return std::holds_alternative<None>(value); }
  // The spelling if known; else resolved_str().
  std::string str() const;
  // The value itself, as PyTorch prints it at run time: 1., 1.0000000000000001e-05, [1, 1], "mean".
  std::string resolved_str() const;
  friend bool operator==(const DefaultValue& a, const DefaultValue& b) {
    return a.value == b.value;
  }
};

// One argument, or one return (whose name may be empty).
struct LAMELLA_PRIVATE_API Argument {
  std::string name;
  SchemaType type;
  std::optional<DefaultValue> default_value;
  // Outermost first; almost always none or one.
  std::vector<AliasInfo> aliases;
  bool kwarg_only = false;
  // Byte offsets in the parsed text, for diagnostics. Not compared.
  std::uint32_t type_offset = 0;
  std::uint32_t name_offset = 0;
  std::uint32_t default_offset = 0;

  // The outermost annotation, or null.
  const AliasInfo* alias() const { return aliases.empty() ? nullptr : &aliases.front(); }
  bool is_write() const;
  // A keyword-only tensor (or list of tensors) that is written to.
  bool is_out() const { return kwarg_only && is_write() && type.holds_tensor(); }
  // The type with its annotations: Tensor(a!)[]
  std::string type_str() const;
  std::string str() const;

  friend bool operator==(const Argument& a, const Argument& b) {
    return a.name == b.name && a.type == b.type && a.default_value == b.default_value &&
           a.aliases == b.aliases && a.kwarg_only == b.kwarg_only;
  }
};

// What the signature says about mutation. `kMutable` writes something that is neither `self` of an
// in-place name nor an out argument.
enum class SchemaKind : std::uint8_t { kFunctional, kInplace, kOut, kMutable };
std::string_view to_string(SchemaKind kind);

struct LAMELLA_PRIVATE_API FunctionSchema {
  OperatorName name;
  // In the order of the text; keyword-only ones come last.
  std::vector<Argument> arguments;
  std::vector<Argument> returns;
  bool is_vararg = false;  // ends in `...`
  bool is_varret = false;  // `-> ...`

  // The schema as it was parsed: defaults and SymInt keep their spelling. parse_schema(str()) gives
  // the same schema.
  std::string str() const;
  // The schema as PyTorch prints it at run time: defaults by value, DeviceIndex as int.
  std::string resolved_str() const;

  SchemaKind kind() const;
  // True if some argument is written to.
  bool is_mutable() const;
  // True if nothing is written and some return shares memory with an argument.
  bool is_view() const;
  // Index in `arguments`, or -1.
  int argument_index(std::string_view argument_name) const;
  const Argument* find_argument(std::string_view argument_name) const;

  // True if callers written for `old` can still call this. If not, `why` (when given) gets the
  // reason in one sentence that begins with the operator's name.
  bool is_backward_compatible_with(const FunctionSchema& old, std::string* why = nullptr) const;

  // Structural: names, types, defaults by value, annotations.
  friend bool operator==(const FunctionSchema&, const FunctionSchema&) = default;
};

std::ostream& operator<<(std::ostream& out, const OperatorName& name);
std::ostream& operator<<(std::ostream& out, const FunctionSchema& schema);

// The first difference between two schemas in one sentence; empty when they are equal.
std::string describe_difference(const FunctionSchema& a, const FunctionSchema& b);

}  // namespace lamella
