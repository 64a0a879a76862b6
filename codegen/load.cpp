// Loads a model from files: reads and checks entries, makes variants, and forms groups.
#include <algorithm>
#include <unordered_map>

#include "codegen/entry_reader.h"
#include "codegen/tags.h"

namespace lamella::codegen {
namespace {

// Where another entry declared something, for messages.
std::string line_of(const NativeFunction& function, const Location& seen_from) {
  std::string text = "line " + std::to_string(function.where.line);
  if (function.where.file != seen_from.file) text += " of " + function.where.file->path();
  return text;
}

NativeFunction make_variant(const NativeFunction& base, FunctionSchema schema) {
  NativeFunction made;
  made.schema = std::move(schema);
  made.ns = base.ns;
  made.where = base.where;
  if (!base.alias_of.empty()) {
    made.alias_of = base.alias_of;
    made.default_dispatch = true;
    made.dispatch = base.dispatch;
    made.python_module = base.python_module;
    made.method_variant = base.method_variant && made.kind() != SchemaKind::kOut;
    return made;
  }
  made.device_guard = false;
  made.device_check = DeviceCheck::kNone;
  made.python_module = base.python_module;
  made.tags = {"generated"};
  for (const char* tag : {"core", "nondeterministic_seeded", "pointwise", "reduction"}) {
    if (base.has_tag(tag)) made.tags.emplace_back(tag);
  }
  std::ranges::sort(made.tags);
  // The autocast class and opcode are not copied, because only functional forms have them: an
  // operator that writes an argument keeps its dtype, and is not an HLO instruction.
  // A form whose base is a composite kernel is composite too. A form that copies the result of a
  // functional form is always composite: a batching rule of the functional form would get the wrong
  // arguments.
  const bool copies =
      !base.structured && base.kind() == SchemaKind::kFunctional && made.kind() == SchemaKind::kOut;
  made.batching = copies || (base.batching.empty() && base.has_composite_kernel()) ? "composite"
                                                                                   : base.batching;
  made.autogen_of = &base;
  made.method_variant = base.method_variant && made.kind() != SchemaKind::kOut;
  return made;
}

class Loader {
 public:
  explicit Loader(Diagnostics& diagnostics) : diagnostics_(diagnostics) {}

  void add(LocatedEntry entry) {
    const NativeFunction& f = entry.function;
    if (const NativeFunction* first = declared(f)) {
      diagnostics_.add(f.where, f.schema.name.str() + ": already declared on " +
                                    line_of(*first, f.where) +
                                    "; give one of them another overload name");
      return;
    }
    check_entry(entry, diagnostics_);
    model_.functions.push_back(f);
    by_name_.emplace(f.full_name(), &model_.functions.back());
    entries_.push_back(std::move(entry));
  }

  Model finish() {
    make_variants();
    make_groups();
    check_entries(entries_, model_, diagnostics_);
    return std::move(model_);
  }

 private:
  const NativeFunction* declared(const NativeFunction& function) const {
    auto found = by_name_.find(function.full_name());
    return found == by_name_.end() ? nullptr : found->second;
  }

  void make_variants() {
    std::deque<NativeFunction> all;
    std::deque<NativeFunction> declared_functions = std::move(model_.functions);
    const auto declared_names = std::move(by_name_);
    by_name_.clear();
    std::unordered_map<std::string, const NativeFunction*> made_names;
    for (NativeFunction& function : declared_functions) {
      all.push_back(std::move(function));
      const NativeFunction& base = all.back();
      by_name_.emplace(base.full_name(), &base);
      for (const Autogen& wanted : base.autogen) {
        if (auto schema = autogen_schema(base.schema, wanted)) {
          make(base, std::move(*schema), declared_names, made_names, all);
        }
      }
    }
    model_.functions = std::move(all);
  }

  void make(const NativeFunction& base, FunctionSchema schema,
            const std::unordered_map<std::string, const NativeFunction*>& declared_names,
            std::unordered_map<std::string, const NativeFunction*>& made_names,
            std::deque<NativeFunction>& all) {
    NativeFunction variant = make_variant(base, std::move(schema));
    const std::string name = variant.full_name();
    if (declared_names.contains(name)) {
      diagnostics_.add(base.where, base.schema.name.str() + ": 'autogen' would make '" +
                                       variant.schema.name.str() +
                                       "', which is declared as well; drop one of them");
      return;
    }
    // The functional and the in-place form may both ask for the same out variant.
    if (auto made = made_names.find(name); made != made_names.end()) {
      if (variant_signature(*made->second) != variant_signature(variant)) {
        diagnostics_.add(base.where, base.schema.name.str() + ": 'autogen' would make '" +
                                         variant.schema.name.str() + "', which " +
                                         line_of(*made->second, base.where) +
                                         " makes with other arguments");
      }
      return;
    }
    all.push_back(std::move(variant));
    by_name_.emplace(name, &all.back());
    made_names.emplace(name, &all.back());
  }

  void make_groups() {
    std::unordered_map<std::string, std::size_t> index;
    for (const NativeFunction& function : model_.functions) {
      auto [place, fresh] = index.emplace(variant_signature(function), model_.groups.size());
      if (fresh) model_.groups.emplace_back();
      NativeFunctionGroup& group = model_.groups[place->second];
      const NativeFunction*& slot = slot_of(group, function.kind());
      if (slot == nullptr) {
        slot = &function;
        continue;
      }
      diagnostics_.add(function.where,
                       function.schema.name.str() + ": has the same arguments as '" +
                           slot->schema.name.str() + "' on " + line_of(*slot, function.where) +
                           ", so a call could mean either; let them differ");
    }
  }

  static const NativeFunction*& slot_of(NativeFunctionGroup& group, SchemaKind kind) {
    switch (kind) {
      case SchemaKind::kFunctional:
        return group.functional;
      case SchemaKind::kInplace:
        return group.inplace;
      case SchemaKind::kOut:
        return group.out;
      case SchemaKind::kMutable:
        break;
    }
    return group.mutable_variant;
  }

  Diagnostics& diagnostics_;
  Model model_;
  std::deque<LocatedEntry> entries_;
  std::unordered_map<std::string, const NativeFunction*> by_name_;
};

}  // namespace

Model load_model(const std::vector<std::string>& paths, const ModelOptions& options,
                 SourceSet& sources, Diagnostics& diagnostics) {
  const std::set<std::string> tags = load_tags(options.tag_files, sources, diagnostics);
  Loader loader(diagnostics);
  for (const std::string& path : paths) {
    const SourceFile* file = sources.load(path, diagnostics);
    if (file == nullptr) continue;
    for (const YamlPtr& node : read_entries(*file, diagnostics)) {
      if (auto entry = read_entry(node, options, tags, diagnostics)) loader.add(std::move(*entry));
    }
  }
  Model model = loader.finish();
  diagnostics.sort();
  return model;
}

}  // namespace lamella::codegen
