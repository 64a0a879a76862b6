// See the list of rules in the header. Signatures of TorchScript's containers (append on a list of
// `t`, setdefault on a Dict) use wildcard sets; only the rules on sets apply to them.
#include "lamella/schema/alias_check.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace lamella {
namespace {

using Names = std::unordered_set<std::string_view>;

bool share_a_set(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  if (a.size() == 1) return std::ranges::find(b, a[0]) != b.end();
  const Names names(b.begin(), b.end());
  return std::ranges::any_of(a, [&](const std::string& name) { return names.contains(name); });
}

bool named_out(std::string_view name) {
  if (!name.starts_with("out")) return false;
  name.remove_prefix(3);
  return std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; });
}

class Checker {
 public:
  Checker(const FunctionSchema& schema, std::string_view text, SchemaRules rules)
      : schema_(schema), text_(text), rules_(rules) {
    for (const Argument& result : schema_.returns) {
      if (const AliasInfo* alias = result.alias()) {
        returned_.insert(alias->before.begin(), alias->before.end());
      }
    }
    for (const Argument& argument : schema_.arguments) {
      for (const AliasInfo& alias : argument.aliases) {
        for (const auto* sets : {&alias.before, &alias.after}) {
          for (const std::string& set : *sets) {
            Carriers& carriers = carriers_[set];
            carriers.member = &argument;
            if (alias.is_write) carriers.writer = &argument;
          }
        }
      }
    }
  }

  std::vector<SchemaProblem> run() {
    if (rules_ == SchemaRules::kDeclared) check_names();
    check_inplace();
    check_out();
    check_defaults();
    check_returns();
    std::ranges::stable_sort(problems_, {}, &SchemaProblem::offset);
    locate_all(text_, problems_);
    return std::move(problems_);
  }

 private:
  void report(std::uint32_t offset, std::string message) {
    problems_.emplace_back().message = schema_.name.str() + ": " + std::move(message);
    problems_.back().offset = offset;
  }

  // The annotation of `argument` where it has one, else its type.
  static std::uint32_t place(const Argument& argument) {
    return argument.alias() != nullptr ? argument.alias()->offset : argument.type_offset;
  }

  void check_names() {
    check_names(schema_.arguments, "argument");
    check_names(schema_.returns, "return");
  }

  void check_names(const std::vector<Argument>& list, const std::string& what) {
    Names seen;
    for (const Argument& one : list) {
      if (one.name.empty() || seen.insert(one.name).second) continue;
      report(one.name_offset, what + " '" + one.name + "' appears twice: names must differ");
    }
  }

  bool is_returned(const Argument& argument) const {
    const AliasInfo* alias = argument.alias();
    return alias != nullptr && std::ranges::any_of(alias->before, [&](const std::string& set) {
             return returned_.contains(set);
           });
  }

  void check_inplace() {
    if (schema_.arguments.empty()) return;
    const Argument& self = schema_.arguments[0];
    if (self.name != "self" || !self.type.holds_tensor()) return;
    if (!schema_.name.is_inplace()) {
      const bool written = std::ranges::any_of(
          schema_.returns, [](const Argument& result) { return result.is_write(); });
      if (!self.is_write() || !is_returned(self) || !written) return;
      report(0, "it writes and returns its 'self', so it is in-place: end its name in '_', '" +
                    schema_.name.name + "_'");
      return;
    }
    if (!self.is_write()) {
      report(place(self), "an in-place operator (its name ends in '_') writes its 'self': write '" +
                              written(self) + " self'");
      return;
    }
    if (schema_.returns.empty() || schema_.is_varret) return;
    const Argument& result = schema_.returns[0];
    if (!result.type.holds_tensor()) return;
    const AliasInfo* alias = result.alias();
    if (alias == nullptr || !share_a_set(alias->before, self.alias()->before)) {
      report(place(result), "an in-place operator returns its 'self': write '" + self.type_str() +
                                "' as the first return, or '()'");
    }
  }

  // The type of `argument` with the annotation of a write on its Tensor.
  static std::string written(const Argument& argument) {
    Argument copy = argument;
    int depth = 0;
    for (SchemaType t = copy.type; t.is_optional() || t.is_list(); t = t.element()) ++depth;
    AliasInfo alias;
    alias.before = alias.after = {"a"};
    if (argument.alias() != nullptr) alias.before = alias.after = argument.alias()->before;
    alias.is_write = true;
    alias.depth = static_cast<std::uint8_t>(depth);
    copy.aliases = {alias};
    return copy.type_str();
  }

  void check_out() {
    bool any_out = false;
    for (const Argument& argument : schema_.arguments) {
      if (named_out(argument.name) && argument.type.holds_tensor()) {
        if (rules_ == SchemaRules::kDeclared && !argument.kwarg_only && argument.is_write() &&
            is_returned(argument) && !schema_.name.is_inplace()) {
          report(argument.type_offset,
                 "'" + argument.name + "' must be keyword-only: put '*, ' before it");
          continue;
        }
        if (argument.kwarg_only && !argument.is_write()) {
          report(place(argument), "the out argument '" + argument.name + "' is written: write '" +
                                      written(argument) + " " + argument.name + "'");
          continue;
        }
      }
      if (!argument.is_out()) continue;
      any_out = true;
      if (argument.default_value) {
        report(argument.default_offset,
               "the out argument '" + argument.name + "' has a default; out arguments have none");
      }
    }
    if (any_out) check_out_returns();
  }

  void check_out_returns() {
    if (schema_.name.is_inplace()) {
      report(0, "an operator with an out argument is not in-place: its name must not end in '_'");
    }
    // Valid: no returns, or additional returns that are not tensors.
    std::size_t next = 0;
    std::vector<const Argument*> outs;
    for (const Argument& argument : schema_.arguments) {
      if (argument.is_out()) outs.push_back(&argument);
    }
    for (const Argument& result : schema_.returns) {
      if (!result.type.is_tensor()) continue;
      if (next >= outs.size()) {
        report(place(result), "an out operator returns its out arguments and no other tensor");
        return;
      }
      const AliasInfo* alias = result.alias();
      if (alias == nullptr || !alias->is_write ||
          !share_a_set(alias->before, outs[next]->alias()->before)) {
        report(place(result), "an out operator returns its out arguments in order: write '" +
                                  outs[next]->type_str() + "' for '" + outs[next]->name + "'");
        return;
      }
      ++next;
    }
  }

  void check_defaults() {
    const Argument* with_default = nullptr;
    for (const Argument& argument : schema_.arguments) {
      if (argument.kwarg_only) break;
      if (argument.default_value) {
        with_default = &argument;
      } else if (with_default != nullptr && !argument.type.is_list()) {
        report(argument.name_offset, "'" + argument.name + "' has no default but follows '" +
                                         with_default->name +
                                         "', which has one: give it a default or move it before");
        return;
      }
    }
  }

  void check_returns() {
    for (const Argument& result : schema_.returns) {
      for (const AliasInfo& alias : result.aliases) check_return(result, alias);
    }
  }

  void check_return(const Argument& result, const AliasInfo& alias) {
    if (alias.is_wildcard() || schema_.is_vararg) return;
    if (alias.shorthand) {
      report(alias.offset,
             "a return names the set it shares: write 'Tensor(a!)' here and at the "
             "argument");
      return;
    }
    bool any_known = false;
    for (const std::string& set : alias.before) {
      const auto carriers = carriers_.find(set);
      if (carriers == carriers_.end()) continue;
      const Argument* member = carriers->second.member;
      const Argument* writer = carriers->second.writer;
      any_known = true;
      if (alias.is_write && writer == nullptr) {
        report(alias.offset, "the return is written in alias set '" + set + "', but '" +
                                 member->name +
                                 "' of that set is not: a view does not write; "
                                 "drop the '!', or write '(" +
                                 set + "!)' at '" + member->name + "' too");
      } else if (!alias.is_write && writer != nullptr && result.type.holds_tensor()) {
        report(alias.offset, "a view does not write, but '" + writer->name + "' of alias set '" +
                                 set + "' is written: write '(" + set +
                                 "!)' at the return too, or drop the '!'");
      }
    }
    // One known set is enough: a return may also be in a set of its own, (a|b).
    if (!any_known) {
      report(alias.offset, "the return is in alias set '" + alias.before[0] +
                               "', which no argument carries: annotate the argument that it "
                               "shares memory with");
    }
  }

  // The last arguments that carry an alias set, and that are written in it.
  struct Carriers {
    const Argument* member = nullptr;
    const Argument* writer = nullptr;
  };

  const FunctionSchema& schema_;
  Names returned_;  // alias sets
  std::unordered_map<std::string_view, Carriers> carriers_;
  std::string_view text_;
  SchemaRules rules_;
  std::vector<SchemaProblem> problems_;
};

}  // namespace

std::vector<SchemaProblem> check_alias_rules(const FunctionSchema& schema, std::string_view text,
                                             SchemaRules rules) {
  return Checker(schema, text, rules).run();
}

}  // namespace lamella
