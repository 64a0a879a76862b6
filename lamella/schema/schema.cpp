// Properties of a schema, and comparison of two schemas.
#include "lamella/schema/schema.h"

#include <algorithm>
#include <array>

namespace lamella {
namespace {

// Python's augmented assignments: __iadd__ and the like.
constexpr std::array<std::string_view, 12> kInplaceDunders = {
    "add", "sub", "mul",    "matmul", "truediv", "floordiv",
    "mod", "pow", "lshift", "rshift", "and",     "xor"};

bool is_augmented_assignment(std::string_view name) {
  if (!name.starts_with("__i") || !name.ends_with("__") || name.size() < 6) return false;
  std::string_view inner = name.substr(3, name.size() - 5);
  return inner == "or" || std::ranges::find(kInplaceDunders, inner) != kInplaceDunders.end();
}

}  // namespace

bool OperatorName::is_dunder() const {
  return name.size() > 4 && name.starts_with("__") && name.ends_with("__");
}

bool OperatorName::is_inplace() const {
  if (is_dunder()) return is_augmented_assignment(name);
  return name.size() > 1 && name.ends_with('_') && !name.ends_with("__");
}

std::string OperatorName::base_name() const {
  if (!is_inplace()) return name;
  if (is_dunder()) return "__" + name.substr(3);
  return name.substr(0, name.size() - 1);
}

bool Argument::is_write() const {
  return std::ranges::any_of(aliases, [](const AliasInfo& alias) { return alias.is_write; });
}

std::string_view to_string(SchemaKind kind) {
  switch (kind) {
    case SchemaKind::kFunctional:
      return "functional";
    case SchemaKind::kInplace:
      return "in-place";
    case SchemaKind::kOut:
      return "out";
    case SchemaKind::kMutable:
      return "mutable";
  }
  return "";
}

SchemaKind FunctionSchema::kind() const {
  for (const Argument& argument : arguments) {
    if (argument.is_out()) return SchemaKind::kOut;
  }
  if (name.is_inplace() && !arguments.empty() && arguments[0].is_write()) {
    return SchemaKind::kInplace;
  }
  return is_mutable() ? SchemaKind::kMutable : SchemaKind::kFunctional;
}

bool FunctionSchema::is_mutable() const {
  return std::ranges::any_of(arguments, [](const Argument& a) { return a.is_write(); });
}

bool FunctionSchema::is_view() const {
  if (is_mutable()) return false;
  return std::ranges::any_of(returns, [](const Argument& r) {
    return r.alias() != nullptr && !r.alias()->is_wildcard() && r.type.holds_tensor();
  });
}

int FunctionSchema::argument_index(std::string_view argument_name) const {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].name == argument_name) return static_cast<int>(i);
  }
  return -1;
}

const Argument* FunctionSchema::find_argument(std::string_view argument_name) const {
  const int index = argument_index(argument_name);
  return index < 0 ? nullptr : &arguments[static_cast<std::size_t>(index)];
}

namespace {

// True if a parameter of type `wide` accepts every value that one of type `narrow` accepts.
bool accepts(SchemaType wide, SchemaType narrow) {
  if (wide == narrow || wide.kind() == TypeKind::kAny) return true;
  if (wide.is_optional()) return accepts(wide.element(), narrow.without_optional());
  if (wide.is_list() && narrow.is_list()) {
    // Dropping or changing N would lose the calls that pass a bare number.
    const bool size = !narrow.fixed_size() || wide.fixed_size() == narrow.fixed_size();
    return size && accepts(wide.element(), narrow.element());
  }
  return wide.kind() == TypeKind::kScalar &&
         (narrow.kind() == TypeKind::kInt || narrow.kind() == TypeKind::kFloat ||
          narrow.kind() == TypeKind::kBool || narrow.kind() == TypeKind::kComplex);
}

class Compatibility {
 public:
  Compatibility(const FunctionSchema& now, const FunctionSchema& old) : now_(now), old_(old) {}

  // Why `now` cannot be called like `old`; empty if it can.
  std::string reason() const {
    if (now_.name != old_.name) return "the name was " + old_.name.str();
    if (old_.is_vararg && !now_.is_vararg) return "it no longer takes '...'";
    if (old_.is_varret != now_.is_varret || old_.returns.size() != now_.returns.size()) {
      return "it returned " + count(old_) + " and now returns " + count(now_);
    }
    for (std::size_t i = 0; i < old_.returns.size(); ++i) {
      if (auto why = check_return(i); !why.empty()) return why;
    }
    for (std::size_t i = 0; i < old_.arguments.size(); ++i) {
      if (auto why = check_argument(i); !why.empty()) return why;
    }
    for (const Argument& argument : now_.arguments) {
      if (!argument.default_value && old_.argument_index(argument.name) < 0) {
        return "the new argument '" + argument.name + "' has no default";
      }
    }
    return "";
  }

 private:
  static std::string count(const FunctionSchema& schema) {
    if (schema.is_varret) return "'...'";
    const std::size_t n = schema.returns.size();
    return std::to_string(n) + (n == 1 ? " value" : " values");
  }

  std::string check_return(std::size_t i) const {
    const Argument& now = now_.returns[i];
    const Argument& old = old_.returns[i];
    const std::string which = "return " + std::to_string(i);
    // A return may become narrower, never wider.
    if (!accepts(old.type, now.type)) {
      return which + " was " + old.type.str() + " and is now " + now.type.str();
    }
    if (!old.name.empty() && old.name != now.name) {
      return which + " was named '" + old.name + "' and is now " +
             (now.name.empty() ? "unnamed" : "named '" + now.name + "'");
    }
    return now.aliases == old.aliases ? "" : which + " changed its alias annotation";
  }

  std::string check_argument(std::size_t i) const {
    const Argument& old = old_.arguments[i];
    const std::string which = "argument '" + old.name + "'";
    const int found = now_.argument_index(old.name);
    if (found < 0) return which + " is gone";
    const Argument& now = now_.arguments[static_cast<std::size_t>(found)];
    if (!old.kwarg_only) {
      if (now.kwarg_only) return which + " is now keyword-only";
      if (static_cast<std::size_t>(found) != i) {
        return which + " was at position " + std::to_string(i) + " and is now at position " +
               std::to_string(found);
      }
    }
    if (!accepts(now.type, old.type)) {
      return which + " was " + old.type.str() + " and is now " + now.type.str();
    }
    if (old.default_value && !now.default_value) return which + " lost its default";
    if (old.default_value && *old.default_value != *now.default_value) {
      return "the default of " + which + " was " + old.default_value->str() + " and is now " +
             now.default_value->str();
    }
    return now.aliases == old.aliases ? "" : which + " changed its alias annotation";
  }

  const FunctionSchema& now_;
  const FunctionSchema& old_;
};

std::string describe(const Argument& a) {
  return a.str() + (a.kwarg_only ? " (keyword-only)" : "");
}

}  // namespace

bool FunctionSchema::is_backward_compatible_with(const FunctionSchema& old,
                                                 std::string* why) const {
  std::string reason = Compatibility(*this, old).reason();
  if (reason.empty()) return true;
  if (why != nullptr) *why = name.str() + ": " + reason;
  return false;
}

std::string describe_difference(const FunctionSchema& a, const FunctionSchema& b) {
  if (a.name != b.name) return "the names are " + a.name.str() + " and " + b.name.str();
  auto lists = [](const std::vector<Argument>& x, const std::vector<Argument>& y,
                  const std::string& what) -> std::string {
    for (std::size_t i = 0; i < std::max(x.size(), y.size()); ++i) {
      const std::string which = what + " " + std::to_string(i);
      if (i >= x.size()) return which + " is missing in the first: '" + describe(y[i]) + "'";
      if (i >= y.size()) return which + " is missing in the second: '" + describe(x[i]) + "'";
      if (x[i] != y[i]) return which + " is '" + describe(x[i]) + "' and '" + describe(y[i]) + "'";
    }
    return "";
  };
  if (auto text = lists(a.arguments, b.arguments, "argument"); !text.empty()) return text;
  if (auto text = lists(a.returns, b.returns, "return"); !text.empty()) return text;
  if (a.is_vararg != b.is_vararg) return "only one takes '...'";
  if (a.is_varret != b.is_varret) return "only one returns '...'";
  return "";
}

}  // namespace lamella
