// An autocast file is a list of maps: `device` and, by class, the operators that are cast.
#include "codegen/autocast_lists.h"

#include <algorithm>
#include <map>

#include "lamella/schema/policy_words.h"
#include "lamella/schema/suggest.h"

namespace lamella::codegen {
namespace {

constexpr std::string_view kDefault = "default";

class Lists {
 public:
  Lists(const ModelOptions& options, Model& model, Diagnostics& diagnostics)
      : options_(options), diagnostics_(diagnostics) {
    for (NativeFunction& function : model.functions) {
      by_name_.emplace(function.full_name(), &function);
    }
  }

  void entry(const YamlPtr& node) {
    if (!node->is_map()) {
      report(node->where, "expected an entry '- device: TYPE', got " + node->describe());
      return;
    }
    const std::string device = device_of(*node);
    if (device.empty()) return;
    for (const auto& [key, value] : node->entries) {
      if (key->text == "device") continue;
      if (key->text == "not_declared") {
        if (!value->is_map()) {
          report(value->where, "'not_declared' expects a map from classes to operators, got " +
                                   value->describe());
        }
        for (const auto& [word, names] : value->entries) {
          if (is_class(*word)) each(*names, [&](const YamlNode& name) { absent(name); });
        }
        continue;
      }
      if (!is_class(*key)) continue;
      each(*value, [&](const YamlNode& name) { list(device, key->text, name); });
    }
  }

  // Called after all files are read: operators that no list of a device type names get the class
  // that `default` gives them.
  void apply() {
    for (const auto& [function, words] : words_) {
      const auto general = words.find(std::string(kDefault));
      if (general != words.end()) {
        if (!function->autocast.empty()) {
          report(general->second.where, function->schema.name.str() +
                                            ": is listed here, and its entry says 'autocast: " +
                                            function->autocast + "'; drop one of them");
          continue;
        }
        function->autocast = general->second.word;
      }
      for (const std::string& device : devices_) {
        const auto own = words.find(device);
        std::string word = own != words.end()       ? own->second.word
                           : general != words.end() ? std::string("none")
                                                    : std::string();
        if (!word.empty() && word != function->autocast) {
          function->device_autocast.emplace_back(device, std::move(word));
        }
      }
    }
  }

 private:
  struct Word {
    std::string word;
    Location where;
  };

  void report(Location where, std::string message) { diagnostics_.add(where, std::move(message)); }

  std::string device_of(const YamlNode& node) {
    const auto found = std::ranges::find_if(
        node.entries, [](const auto& entry) { return entry.first->text == "device"; });
    if (found == node.entries.end()) {
      report(node.where, "the entry has no 'device' that says which type it is for");
      return "";
    }
    const YamlNode& value = *found->second;
    if (value.is_scalar() && value.text == kDefault) return value.text;
    if (!value.is_scalar() || !is_device_type(value.text)) {
      report(value.where,
             "'device' expects default or a device type such as cpu, got " + value.describe());
      return "";
    }
    if (std::ranges::find(devices_, value.text) != devices_.end()) {
      report(value.where, "device type '" + value.text + "' has a list already");
      return "";
    }
    devices_.push_back(value.text);
    return value.text;
  }

  bool is_class(const YamlNode& key) {
    const auto classes = autocast_classes();
    if (key.is_scalar() && std::ranges::find(classes, key.text) != classes.end()) return true;
    report(key.where, "unknown autocast class " + key.describe() +
                          (key.is_scalar() ? did_you_mean(key.text, classes) : ""));
    return false;
  }

  template <class F>
  void each(const YamlNode& names, F&& f) {
    if (!names.is_sequence()) {
      report(names.where, "expected a list of operators, got " + names.describe());
      return;
    }
    for (const YamlPtr& name : names.items) {
      if (name->is_scalar() && !name->text.empty()) {
        f(*name);
      } else {
        report(name->where, "expected the name of an operator, got " + name->describe());
      }
    }
  }

  NativeFunction* find(const std::string& name) const {
    const bool qualified = name.find("::") != std::string::npos;
    const auto found = by_name_.find(qualified ? name : options_.default_namespace + "::" + name);
    return found == by_name_.end() ? nullptr : found->second;
  }

  void absent(const YamlNode& name) {
    if (find(name.text) == nullptr) return;
    report(name.where, "'" + name.text + "' is declared; move it to the list of its class");
  }

  void list(const std::string& device, const std::string& word, const YamlNode& name) {
    NativeFunction* function = find(name.text);
    if (function == nullptr) {
      std::vector<std::string_view> known;
      for (const auto& [full, unused] : by_name_) {
        known.push_back(std::string_view(full).substr(full.find("::") + 2));
      }
      report(name.where, "unknown operator '" + name.text + "'" + did_you_mean(name.text, known));
      return;
    }
    if (function->kind() != SchemaKind::kFunctional) {
      report(name.where,
             "'" + name.text + "' writes an argument, and autocast never casts what is written");
      return;
    }
    auto [before, fresh] = words_[function].emplace(device, Word{word, name.where});
    if (!fresh) {
      report(name.where, "'" + name.text + "' is in the list already, as " + before->second.word);
    }
  }

  const ModelOptions& options_;
  Diagnostics& diagnostics_;
  std::map<std::string, NativeFunction*> by_name_;
  std::vector<std::string> devices_;
  std::map<NativeFunction*, std::map<std::string, Word>> words_;
};

}  // namespace

void apply_autocast_lists(const std::vector<std::string>& paths, const ModelOptions& options,
                          Model& model, SourceSet& sources, Diagnostics& diagnostics) {
  if (paths.empty()) return;
  Lists lists(options, model, diagnostics);
  for (const std::string& path : paths) {
    const SourceFile* file = sources.load(path, diagnostics);
    if (file == nullptr) continue;
    for (const YamlPtr& node : read_entries(*file, diagnostics)) lists.entry(node);
  }
  lists.apply();
  diagnostics.sort();
}

}  // namespace lamella::codegen
