// Reads the fields of an entry. To add a field, add a row to kFields and its function.
#include "codegen/entry_reader.h"

#include <algorithm>
#include <array>
#include <span>

#include "codegen/docs.h"
#include "codegen/field_words.h"
#include "codegen/keys.h"
#include "codegen/pointwise.h"
#include "codegen/words.h"
#include "lamella/schema/parser.h"
#include "lamella/schema/policy_words.h"
#include "lamella/schema/suggest.h"

namespace lamella::codegen {
namespace {

std::string unknown_field_hint(const YamlNode& key, std::span<const std::string_view> names) {
  if (!key.is_scalar()) return "";
  if (key.text == "tag") return "; did you mean 'tags'?";
  if (key.text == "<<") return "; YAML's merging of maps is not supported, write the fields out";
  if (key.text.find(',') != std::string::npos || find_key(key.text).use != KeyUse::kUnknown) {
    return "; a dispatch key stands under 'dispatch', indented further than it";
  }
  return did_you_mean(key.text, names);
}

class Reader {
 public:
  Reader(const ModelOptions& options, const std::set<std::string>& tags, Diagnostics& diagnostics)
      : options_(options), tags_(tags), diagnostics_(diagnostics) {}

  std::optional<LocatedEntry> read(const YamlPtr& node);

 private:
  using Read = void (Reader::*)(const YamlNode& value);
  struct Field {
    std::string_view name;
    Read read;
  };
  static const std::array<Field, 25> kFields;

  // The signature is read before the other fields, wherever it stands.
  void nothing(const YamlNode&) {}
  bool func(const YamlNode& value);
  void variants(const YamlNode& value);
  void dispatch(const YamlNode& value);
  void dispatch_entry(const YamlNode& keys, const YamlNode& value);
  void add_kernel(const Piece& key, const YamlNode& keys, const Kernel& kernel);
  std::optional<Kernel> kernel(const YamlNode& value);
  void device_guard(const YamlNode& v) { boolean(v, "device_guard", f().device_guard); }
  void device_check(const YamlNode& value);
  void manual_kernel_registration(const YamlNode& v) {
    boolean(v, "manual_kernel_registration", f().manual_kernel_registration);
  }
  void manual_cpp_binding(const YamlNode& v) {
    boolean(v, "manual_cpp_binding", f().manual_cpp_binding);
  }
  void use_const_ref(const YamlNode& v) {
    boolean(v, "use_const_ref_for_mutable_tensors", f().use_const_ref_for_mutable_tensors);
  }
  void structured(const YamlNode& v) { boolean(v, "structured", f().structured); }
  void structured_delegate(const YamlNode& value);
  void structured_inherits(const YamlNode& value);
  void pointwise(const YamlNode& value) {
    f().pointwise = read_pointwise(value, f().schema, diagnostics_);
  }
  void precomputed(const YamlNode& value);
  void precomputed_line(const YamlNode& line, bool last);
  void ufunc_inner_loop(const YamlNode& value);
  void ufunc_loop(const std::string& key, const YamlNode& value);
  void cpp_no_default_args(const YamlNode& value);
  void python_module(const YamlNode& value);
  void category_override(const YamlNode& value);
  void tags(const YamlNode& value);
  void tag(const YamlNode& value);
  void alias_of(const YamlNode& value);
  bool out_names(const YamlNode& value, const Piece& piece, std::size_t open,
                 std::vector<std::string>& names);
  void autogen(const YamlNode& value);
  void autocast(const YamlNode& v) { policy(v, "autocast", f().autocast); }
  void batching(const YamlNode& v) { policy(v, "batching", f().batching); }
  void hlo(const YamlNode& v) { policy(v, "hlo", f().hlo); }
  void policy(const YamlNode& value, const char* name, std::string& into);
  void doc(const YamlNode& v) { f().doc = read_doc(v, diagnostics_), f().doc_where = v.where; }

  NativeFunction& f() { return entry_.function; }
  void report(Location where, std::string message) { diagnostics_.add(where, std::move(message)); }
  void boolean(const YamlNode& value, const char* field, bool& into);
  // False, with a report, unless `value` is text.
  bool is_text(const YamlNode& value, const std::string& field, const std::string& expected);

  const ModelOptions& options_;
  const std::set<std::string>& tags_;
  Diagnostics& diagnostics_;
  LocatedEntry entry_;
};

const std::array<Reader::Field, 25> Reader::kFields = {{
    {"func", &Reader::nothing},
    {"variants", &Reader::variants},
    {"dispatch", &Reader::dispatch},
    {"device_guard", &Reader::device_guard},
    {"device_check", &Reader::device_check},
    {"manual_kernel_registration", &Reader::manual_kernel_registration},
    {"manual_cpp_binding", &Reader::manual_cpp_binding},
    {"use_const_ref_for_mutable_tensors", &Reader::use_const_ref},
    {"structured", &Reader::structured},
    {"structured_delegate", &Reader::structured_delegate},
    {"structured_inherits", &Reader::structured_inherits},
    {"pointwise", &Reader::pointwise},
    {"precomputed", &Reader::precomputed},
    {"ufunc_inner_loop", &Reader::ufunc_inner_loop},
    {"cpp_no_default_args", &Reader::cpp_no_default_args},
    {"python_module", &Reader::python_module},
    {"category_override", &Reader::category_override},
    {"tags", &Reader::tags},
    {"tag", nullptr},  // a frequent mistake, listed so that it gets a better message
    {"alias_of", &Reader::alias_of},
    {"autogen", &Reader::autogen},
    {"autocast", &Reader::autocast},
    {"batching", &Reader::batching},
    {"hlo", &Reader::hlo},
    {"doc", &Reader::doc},
}};

std::optional<LocatedEntry> Reader::read(const YamlPtr& node) {
  if (!node->is_map()) {
    report(node->where,
           "expected an entry '- func: NAME(ARGUMENTS) -> RETURNS', got " + node->describe());
    return std::nullopt;
  }
  std::vector<std::string_view> names;
  for (const Field& field : kFields) {
    if (field.read != nullptr) names.push_back(field.name);
  }
  bool misspelt_func = false;
  std::vector<std::pair<Read, YamlPtr>> reads;
  for (const auto& [key, value] : node->entries) {
    const auto found = std::ranges::find_if(
        kFields, [&](const Field& field) { return key->is_scalar() && field.name == key->text; });
    if (found == kFields.end() || found->read == nullptr) {
      const std::string hint = unknown_field_hint(*key, names);
      misspelt_func = misspelt_func || hint.ends_with("'func'?");
      report(key->where, "unknown field " + key->describe() + hint);
      continue;
    }
    auto [place, fresh] = entry_.keys.emplace(key->text, key->where);
    if (!fresh) {
      report(key->where, "field '" + key->text +
                             "' appears twice in one entry; the first is on line " +
                             std::to_string(place->second.line));
      continue;
    }
    entry_.values[key->text] = value;
    reads.emplace_back(found->read, value);
  }
  bool readable = false;
  if (auto value = entry_.values.find("func"); value != entry_.values.end()) {
    entry_.func = value->second;
    readable = func(*value->second);
  } else if (!misspelt_func) {
    report(node->where, "the entry has no 'func' with the operator's signature");
  }
  for (const auto& [read, value] : reads) (this->*read)(*value);
  if (!readable) return std::nullopt;
  NativeFunction& function = f();
  if (function.pointwise) imply_structured(function, entry_.has("dispatch"));
  std::ranges::sort(function.tags);
  const bool delegated = function.structured_delegate.has_value();
  if (!entry_.has("dispatch") && !function.manual_kernel_registration && !delegated &&
      !function.structured) {
    function.default_dispatch = true;
    function.dispatch.emplace_back(
        "CompositeImplicitAutograd",
        Kernel{"", function.default_kernel_name(), entry_.func->where, entry_.func->where});
  }
  return std::move(entry_);
}

bool Reader::is_text(const YamlNode& value, const std::string& field, const std::string& expected) {
  if (value.is_scalar() && !value.text.empty()) return true;
  const bool empty = value.is_null() || value.is_scalar();
  report(value.where,
         "'" + field + "' expects " + expected + ", got " + (empty ? "nothing" : value.describe()));
  return false;
}

void Reader::boolean(const YamlNode& value, const char* field, bool& into) {
  if (value.is_scalar()) {
    if (value.text == "True" || value.text == "true") {
      into = true;
      return;
    }
    if (value.text == "False" || value.text == "false") {
      into = false;
      return;
    }
  }
  report(value.where,
         "'" + std::string(field) + "' expects True or False, got " + value.describe());
}

bool Reader::func(const YamlNode& value) {
  if (!is_text(value, "func", "a signature 'NAME(ARGUMENTS) -> RETURNS'")) return false;
  auto parsed = try_parse_schema(value.text);
  if (auto* problem = std::get_if<SchemaProblem>(&parsed)) {
    report(value.locate(problem->offset), problem->message);
    return false;
  }
  f().schema = std::move(std::get<FunctionSchema>(parsed));
  f().ns = f().schema.name.ns.empty() ? options_.default_namespace : f().schema.name.ns;
  f().where = value.where;
  return true;
}

void Reader::variants(const YamlNode& value) {
  if (!is_text(value, "variants", "'function', 'method' or 'function, method'")) return;
  bool function = false;
  bool method = false;
  constexpr std::array<std::string_view, 2> known = {"function", "method"};
  for (const Piece& piece : split(value.text, ',')) {
    if (piece.text != "function" && piece.text != "method") {
      report(value.locate(piece.offset), "unknown variant '" + piece.text +
                                             "': expected 'function', 'method' or both" +
                                             did_you_mean(piece.text, known));
      continue;
    }
    bool& flag = piece.text == "method" ? method : function;
    if (flag) report(value.locate(piece.offset), "variant '" + piece.text + "' appears twice");
    flag = true;
  }
  f().function_variant = function;
  f().method_variant = method;
}

void Reader::dispatch(const YamlNode& value) {
  if (!value.is_map()) {
    report(value.where,
           "'dispatch' expects a map from dispatch keys to kernels, like 'CPU: my_kernel', "
           "got " +
               value.describe());
    return;
  }
  // An empty map says that every kernel is registered elsewhere.
  for (const auto& [keys, kernel_name] : value.entries) dispatch_entry(*keys, *kernel_name);
}

void Reader::dispatch_entry(const YamlNode& keys, const YamlNode& value) {
  if (!keys.is_scalar() || keys.text.empty()) {
    report(keys.where, "expected a dispatch key, got " +
                           (keys.is_scalar() ? std::string("nothing") : keys.describe()));
    return;
  }
  const std::optional<Kernel> target = kernel(value);
  for (const Piece& key : split(keys.text, ',')) {
    if (key.text.empty()) {
      report(keys.locate(key.offset), "expected a dispatch key beside ','");
      continue;
    }
    const KeyInfo info = find_key(key.text);
    const Location where = keys.locate(key.offset);
    switch (info.use) {
      case KeyUse::kUnknown:
        report(where, "unknown dispatch key '" + key.text + "'" +
                          did_you_mean(key.text, dispatch_table_keys()));
        break;
      case KeyUse::kSynonym:
        report(where, "dispatch key '" + key.text + "' is an old name; write '" +
                          std::string(info.now) + "'");
        break;
      case KeyUse::kLayer:
        report(where, "'" + key.text +
                          "' is the key of a layer, not of a backend; register its kernel in C++ "
                          "with LAMELLA_LIBRARY_IMPL");
        break;
      default:
        if (target) add_kernel(key, keys, *target);
    }
  }
}

void Reader::add_kernel(const Piece& key, const YamlNode& keys, const Kernel& kernel) {
  if (const Kernel* first = f().find_kernel(key.text)) {
    report(keys.locate(key.offset),
           "dispatch key '" + key.text + "' appears twice; it already has '" + first->name + "'");
    return;
  }
  f().dispatch.emplace_back(key.text, kernel);
  f().dispatch.back().second.key = keys.locate(key.offset);
}

std::optional<Kernel> Reader::kernel(const YamlNode& value) {
  if (!is_text(value, "dispatch", "the name of a kernel")) return std::nullopt;
  auto parts = split_qualified(value.text);
  if (!parts) {
    report(value.where, "'" + value.text +
                            "' is not the name of a C++ function: write 'kernel' or 'ns::kernel'");
    return std::nullopt;
  }
  if (parts->size() > 3) {
    report(value.where, "a kernel's namespace is two deep at most, got " +
                            std::to_string(parts->size() - 1) + " in '" + value.text + "'");
    return std::nullopt;
  }
  Kernel kernel;
  kernel.name = parts->back();
  kernel.where = value.where;
  parts->pop_back();
  if (!parts->empty() && parts->back() == "native") {
    parts->pop_back();
    report(value.where, "'::native' is added to a kernel's namespace by itself: write '" +
                            (parts->empty() ? "" : parts->front() + "::") + kernel.name + "'");
    return std::nullopt;
  }
  for (const std::string& part : *parts) kernel.ns += part + "::";
  if (!kernel.ns.empty()) kernel.ns += "native";
  return kernel;
}

void Reader::device_check(const YamlNode& value) {
  if (!is_text(value, "device_check", "NoCheck or ExactSame")) return;
  if (value.text == "NoCheck") {
    f().device_check = DeviceCheck::kNone;
  } else if (value.text == "ExactSame") {
    f().device_check = DeviceCheck::kExactSame;
  } else {
    constexpr std::array<std::string_view, 2> known = {"NoCheck", "ExactSame"};
    report(value.where, "'device_check' expects NoCheck or ExactSame, got '" + value.text + "'" +
                            did_you_mean(value.text, known));
  }
}

void Reader::structured_delegate(const YamlNode& value) {
  if (!is_text(value, "structured_delegate", "the name of the structured out variant")) return;
  if (value.text.find("::") != std::string::npos) {
    report(value.where,
           "'structured_delegate' is in the operator's own namespace: write the name "
           "without '" +
               value.text.substr(0, value.text.rfind("::") + 2) + "'");
    return;
  }
  auto parsed = try_parse_operator_name(value.text);
  if (auto* problem = std::get_if<SchemaProblem>(&parsed)) {
    report(value.locate(problem->offset), problem->message);
    return;
  }
  f().structured_delegate = std::get<OperatorName>(parsed);
}

void Reader::structured_inherits(const YamlNode& value) {
  if (!is_text(value, "structured_inherits", "the name of a C++ class")) return;
  if (!is_identifier(value.text)) {
    report(value.where,
           "'structured_inherits' expects the name of a C++ class without namespace, got '" +
               value.text + "'");
    return;
  }
  f().structured_inherits = value.text;
}

void Reader::precomputed(const YamlNode& value) {
  if (!value.is_sequence() || value.items.empty()) {
    report(value.where, "'precomputed' expects a list of lines 'ARGUMENT -> TYPE NAME, ...', got " +
                            (value.is_sequence() ? "an empty list" : value.describe()));
    return;
  }
  for (std::size_t i = 0; i < value.items.size(); ++i) {
    precomputed_line(*value.items[i], i + 1 == value.items.size());
  }
}

void Reader::precomputed_line(const YamlNode& line, bool last) {
  if (!is_text(line, "precomputed", "lines 'ARGUMENT -> TYPE NAME, ...'")) return;
  Precomputed made;
  std::string_view rest = line.text;
  std::size_t base = 0;
  if (const std::size_t arrow = rest.find("->"); arrow != std::string_view::npos) {
    made.replaced = split(rest.substr(0, arrow), '\n').front().text;
    base = arrow + 2;
    if (!is_identifier(made.replaced)) {
      report(line.where,
             "expected the name of an argument before '->', got '" + made.replaced + "'");
      return;
    }
  } else if (!last) {
    report(line.where,
           "expected 'ARGUMENT -> TYPE NAME, ...'; only the last line may leave out "
           "'ARGUMENT ->'");
    return;
  }
  for (const Piece& piece : split(rest.substr(base), ',')) {
    const std::size_t space = piece.text.find_last_of(" \t");
    std::string name = space == std::string::npos ? "" : piece.text.substr(space + 1);
    if (!is_identifier(name)) {
      report(line.locate(base + piece.offset), "expected 'TYPE NAME', got '" + piece.text + "'");
      continue;
    }
    made.with.push_back(
        {piece.text.substr(0, piece.text.find_last_not_of(" \t", space) + 1), name});
  }
  f().precomputed.push_back(std::move(made));
}

void Reader::ufunc_inner_loop(const YamlNode& value) {
  if (value.is_scalar()) {
    ufunc_loop("Generic", value);
    return;
  }
  if (!value.is_map() || value.entries.empty()) {
    report(value.where, "'ufunc_inner_loop' expects 'FUNCTION (DTYPES)' or a map of such, got " +
                            (value.is_map() ? "an empty map" : value.describe()));
    return;
  }
  for (const auto& [key, loop] : value.entries) {
    if (!key->is_scalar() || std::ranges::find(kUfuncKeys, key->text) == kUfuncKeys.end()) {
      report(key->where, "unknown key " + key->describe() +
                             " of 'ufunc_inner_loop': expected Generic or ScalarOnly, or one of "
                             "CUDAFunctor, CUDAFunctorOnOther, CUDAFunctorOnSelf, CPUScalar and "
                             "CPUVector");
      continue;
    }
    ufunc_loop(key->text, *loop);
  }
}

void Reader::ufunc_loop(const std::string& key, const YamlNode& value) {
  if (!is_text(value, "ufunc_inner_loop", "'FUNCTION (DTYPES)'")) return;
  const std::size_t open = value.text.find('(');
  const bool closed = open != std::string::npos && value.text.back() == ')';
  std::string name = closed ? split(value.text.substr(0, open), ',').front().text : "";
  if (!is_identifier(name)) {
    report(value.where, "'ufunc_inner_loop' expects 'FUNCTION (DTYPES)', got '" + value.text + "'");
    return;
  }
  UfuncLoop loop{key, std::move(name), {}};
  const std::string inner = value.text.substr(open + 1, value.text.size() - open - 2);
  for (const Piece& piece : split(inner, ',')) {
    if (std::ranges::find(kUfuncTypes, piece.text) == kUfuncTypes.end()) {
      report(value.locate(open + 1 + piece.offset),
             "unknown dtype '" + piece.text + "'" + did_you_mean(piece.text, kUfuncTypes));
      continue;
    }
    loop.dtypes.push_back(piece.text);
  }
  f().ufunc_inner_loop.push_back(std::move(loop));
}

void Reader::cpp_no_default_args(const YamlNode& value) {
  if (!value.is_sequence()) {
    report(value.where,
           "'cpp_no_default_args' expects a list of argument names, like ['dim'], got " +
               value.describe());
    return;
  }
  for (const YamlPtr& item : value.items) {
    if (is_text(*item, "cpp_no_default_args", "names of arguments")) {
      f().cpp_no_default_args.push_back(item->text);
    }
  }
}

void Reader::python_module(const YamlNode& value) {
  if (!is_text(value, "python_module", "the name of a module")) return;
  if (std::ranges::find(kModules, value.text) == kModules.end()) {
    report(value.where, "unknown python_module '" + value.text +
                            "': expected nn, fft, linalg, sparse, special or nested" +
                            did_you_mean(value.text, kModules));
    return;
  }
  f().python_module = value.text;
}

void Reader::category_override(const YamlNode& value) {
  if (!is_text(value, "category_override", "'factory'")) return;
  constexpr std::array<std::string_view, 2> known = {"factory", "dummy"};
  if (std::ranges::find(known, value.text) == known.end()) {
    report(value.where, "'category_override' expects 'factory', got '" + value.text + "'" +
                            did_you_mean(value.text, known));
    return;
  }
  f().category_override = value.text;
}

void Reader::tags(const YamlNode& value) {
  if (value.is_sequence()) {
    if (value.items.empty()) report(value.where, "'tags' is empty; leave out the field");
    for (const YamlPtr& item : value.items) {
      if (is_text(*item, "tags", "names of tags")) tag(*item);
    }
  } else if (is_text(value, "tags", "a tag or a list of tags")) {
    tag(value);
  }
}

void Reader::tag(const YamlNode& value) {
  if (value.text.find(',') != std::string::npos) {
    report(value.where, "several tags are a list: write [" + value.text + "]");
    return;
  }
  if (!tags_.contains(value.text)) {
    std::vector<std::string_view> known(tags_.begin(), tags_.end());
    report(value.where, "unknown tag '" + value.text + "'" + did_you_mean(value.text, known));
    return;
  }
  if (f().has_tag(value.text)) {
    report(value.where, "tag '" + value.text + "' appears twice");
    return;
  }
  if (value.text == "generated") {
    report(value.where, "tag 'generated' marks what 'autogen' makes; it is not written by hand");
    return;
  }
  f().tags.push_back(value.text);
}

void Reader::alias_of(const YamlNode& value) {
  if (!is_text(value, "alias_of", "the name of an operator")) return;
  if (!is_identifier(value.text)) {
    report(value.where,
           "'alias_of' expects the name of an operator without namespace, overload and the '_' of "
           "in-place forms, got '" +
               value.text + "'");
    return;
  }
  f().alias_of = value.text;
}

// The names between the parentheses of `svd.U(U, S, V)`.
bool Reader::out_names(const YamlNode& value, const Piece& piece, std::size_t open,
                       std::vector<std::string>& names) {
  const bool closed = piece.text.back() == ')';
  const std::size_t end = closed ? piece.text.size() - 1 : piece.text.size();
  bool fits = closed;
  for (const Piece& name : split(piece.text.substr(open + 1, end - open - 1), ',')) {
    fits = fits && is_identifier(name.text);
    names.push_back(name.text);
  }
  if (!fits) {
    report(value.locate(piece.offset + open),
           "expected the names of the out arguments in parentheses, as in 'svd.U(U, S, V)', got '" +
               piece.text.substr(open) + "'");
  }
  return fits;
}

void Reader::autogen(const YamlNode& value) {
  if (!is_text(value, "autogen", "names of operators with commas between them")) return;
  std::set<std::string> named;
  for (const Piece& piece : split(value.text, ',')) {
    const std::size_t open = piece.text.find('(');
    auto parsed = try_parse_operator_name(piece.text.substr(0, open));
    if (auto* problem = std::get_if<SchemaProblem>(&parsed)) {
      report(value.locate(piece.offset + problem->offset), problem->message);
      continue;
    }
    Autogen made{std::get<OperatorName>(parsed), {}};
    if (!named.insert(made.name.str()).second) {
      report(value.locate(piece.offset), "'" + piece.text + "' appears twice in 'autogen'");
      continue;
    }
    if (open != std::string::npos && !out_names(value, piece, open, made.outs)) continue;
    f().autogen.push_back(std::move(made));
  }
}

void Reader::policy(const YamlNode& value, const char* name, std::string& into) {
  if (!is_text(value, name, "one word")) return;
  if (const std::optional<std::string> problem = policy_problem(name, value.text)) {
    report(value.where, "'" + std::string(name) + "' " + *problem);
    return;
  }
  into = value.text;
}

}  // namespace

Location LocatedEntry::place(const std::string& field) const {
  auto found = values.find(field);
  return found == values.end() ? func->where : found->second->where;
}

std::optional<LocatedEntry> read_entry(const YamlPtr& node, const ModelOptions& options,
                                       const std::set<std::string>& tags,
                                       Diagnostics& diagnostics) {
  return Reader(options, tags, diagnostics).read(node);
}

}  // namespace lamella::codegen
