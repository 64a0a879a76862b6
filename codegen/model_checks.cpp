// Checks that involve several entries.
#include <unordered_map>
#include <unordered_set>

#include "codegen/entry_reader.h"
#include "lamella/schema/suggest.h"

namespace lamella::codegen {
namespace {

class ModelCheck {
 public:
  ModelCheck(const std::deque<LocatedEntry>& entries, const Model& model, Diagnostics& diagnostics)
      : model_(model), diagnostics_(diagnostics) {
    for (const NativeFunction& function : model.functions) {
      by_name_.emplace(function.full_name(), &function);
      bases_.emplace(function.ns + "::" + function.schema.name.name, &function);
    }
    for (const LocatedEntry& entry : entries) {
      entries_.emplace(entry.function.full_name(), &entry);
      const auto& delegate = entry.function.structured_delegate;
      if (delegate) delegates_.insert(entry.function.ns + "::" + delegate->str());
    }
    for (const LocatedEntry& entry : entries) {
      check_delegate(entry);
      check_tag_bases(entry);
    }
    for (const NativeFunction& function : model.functions) check_alias(function);
    check_groups();
  }

 private:
  void report(const LocatedEntry& entry, Location where, const std::string& message) {
    diagnostics_.add(where, entry.function.schema.name.str() + ": " + message);
  }

  void check_delegate(const LocatedEntry& entry) {
    const NativeFunction& f = entry.function;
    if (!f.structured_delegate) return;
    const std::string target = f.ns + "::" + f.structured_delegate->str();
    auto found = by_name_.find(target);
    const Location where = entry.place("structured_delegate");
    if (found == by_name_.end()) {
      std::vector<std::string_view> names;
      std::vector<std::string> kept;
      const bool looks = missing_delegates_++ < kMaxHints;
      for (const NativeFunction& other : model_.functions) {
        if (looks && other.structured && other.ns == f.ns) kept.push_back(other.schema.name.str());
      }
      names.assign(kept.begin(), kept.end());
      report(entry, where,
             "no operator is named '" + f.structured_delegate->str() + "'" +
                 did_you_mean(f.structured_delegate->str(), names));
    } else if (!found->second->structured) {
      report(
          entry, where,
          "'" + f.structured_delegate->str() + "' is not structured; add 'structured: True' to it");
    } else if (f.kind() != SchemaKind::kOut &&
               variant_signature(f) != variant_signature(*found->second)) {
      report(entry, where,
             "'" + f.structured_delegate->str() +
                 "' is not the out variant of this operator: its arguments or returns "
                 "differ");
    }
  }

  void check_alias(const NativeFunction& f) {
    if (f.alias_of.empty() || model_.alias_target(f) != nullptr) return;
    const LocatedEntry* entry = entry_of(f);
    diagnostics_.add(
        entry != nullptr ? entry->place("alias_of") : f.where,
        f.schema.name.str() + ": no form of '" + f.alias_of + "' takes the same arguments");
  }

  void check_tag_bases(const LocatedEntry& entry) {
    const NativeFunction& f = entry.function;
    const std::string& name = f.schema.name.name;
    if (f.has_tag("inplace_view") && f.kind() == SchemaKind::kInplace && name != "resize_" &&
        name != "resize_as_") {
      const std::string base = f.schema.name.base_name();
      if (!bases_.contains(f.ns + "::" + base)) {
        report(entry, entry.place("tags"),
               "an operator with tag 'inplace_view' needs the view that "
               "it is the in-place form of: declare '" +
                   base + "'");
      }
    }
    if (f.has_tag("view_copy") && name.ends_with("_copy")) {
      std::string base = name.substr(0, name.size() - 5);
      if (!bases_.contains(f.ns + "::" + base)) {
        report(entry, entry.place("tags"),
               "an operator with tag 'view_copy' needs the view that it "
               "copies: declare '" +
                   base + "'");
      }
    }
  }

  // The entry of a function; null for functions made by autogen.
  const LocatedEntry* entry_of(const NativeFunction& function) const {
    auto found = entries_.find(function.full_name());
    return found == entries_.end() ? nullptr : found->second;
  }

  void check_groups() {
    for (const NativeFunctionGroup& group : model_.groups) {
      if (group.out == nullptr || !group.out->structured) continue;
      const LocatedEntry* out = entry_of(*group.out);
      // A delegate whose arguments differ has been reported already.
      if (group.functional == nullptr && !delegates_.contains(group.out->full_name())) {
        report(*out, out->keys.at("structured"),
               "a structured out variant needs its functional form: declare one with the same "
               "arguments but 'out', and 'structured_delegate: " +
                   out->function.schema.name.str() + "'");
      }
      for (const NativeFunction* member : {group.functional, group.inplace}) {
        if (member == nullptr || member->structured_delegate) continue;
        const LocatedEntry* entry = entry_of(*member);
        if (entry == nullptr || entry->has("structured_delegate")) continue;
        report(
            *entry,
            entry->func->where, "its out variant is structured: add 'structured_delegate: " + [&] {
              OperatorName bare = group.out->schema.name;
              bare.ns.clear();
              return bare.str();
            }() + "'");
      }
    }
  }

  const Model& model_;
  Diagnostics& diagnostics_;
  // Suggestions compare a name with all others, so only the first wrong names get one.
  static constexpr int kMaxHints = 20;
  int missing_delegates_ = 0;
  std::unordered_map<std::string, const LocatedEntry*> entries_;
  std::unordered_set<std::string> delegates_;
  std::unordered_map<std::string, const NativeFunction*> by_name_;
  std::unordered_map<std::string, const NativeFunction*> bases_;
};

}  // namespace

void check_entries(const std::deque<LocatedEntry>& entries, const Model& model,
                   Diagnostics& diagnostics) {
  ModelCheck check(entries, model, diagnostics);
}

}  // namespace lamella::codegen
