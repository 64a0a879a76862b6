// Derived from lamella/abi/dispatch_keys.def.
#include "codegen/keys.h"

#include <deque>
#include <string>
#include <unordered_map>

namespace lamella::codegen {
namespace {

constexpr std::string_view kAliases[] = {
#define LAMELLA_ALIAS(Name) #Name,
#include "lamella/abi/dispatch_keys.def"
};

constexpr std::pair<std::string_view, std::string_view> kSynonyms[] = {
#define LAMELLA_SYNONYM(Name, Key) {#Name, #Key},
#include "lamella/abi/dispatch_keys.def"
};

KeyUse use_of(std::string_view group) {
  return group == "Autograd"                     ? KeyUse::kAutograd
         : group == "Backend" || group == "Data" ? KeyUse::kBackend
                                                 : KeyUse::kLayer;
}

class KeyTable {
 public:
  KeyTable() {
#define LAMELLA_SPLIT_KEY(backend, number, text, prefix, group) \
  add(#prefix #backend, use_of(#group));
#define LAMELLA_FUNCTIONALITY(name, group) add(#name, use_of(#group));
#define LAMELLA_SPLIT(name, prefix, group) LAMELLA_BACKENDS(LAMELLA_SPLIT_KEY, prefix, group)
#define LAMELLA_SHARED(name, split, group)
#include "lamella/abi/dispatch_keys.def"
#undef LAMELLA_SPLIT_KEY
    for (std::string_view alias : kAliases) {
      add(std::string(alias), alias.starts_with("Composite") ? KeyUse::kComposite
                              : alias == "Autograd"          ? KeyUse::kAutograd
                                                             : KeyUse::kLayer);
    }
    for (const auto& [old, now] : kSynonyms) {
      keys_[std::string(old)] = {KeyUse::kSynonym, now};
    }
  }

  KeyInfo find(std::string_view name) const {
    auto found = keys_.find(std::string(name));
    return found == keys_.end() ? KeyInfo{} : found->second;
  }

  const std::vector<std::string_view>& usable() const { return usable_; }

 private:
  void add(std::string name, KeyUse use) {
    std::string_view kept = names_.emplace_back(std::move(name));
    keys_[std::string(kept)] = {use, kept};
    if (use != KeyUse::kLayer) usable_.push_back(kept);
  }

  std::deque<std::string> names_;
  std::unordered_map<std::string, KeyInfo> keys_;
  std::vector<std::string_view> usable_;
};

const KeyTable& table() {
  static const KeyTable table;
  return table;
}

}  // namespace

KeyInfo find_key(std::string_view name) { return table().find(name); }

const std::vector<std::string_view>& dispatch_table_keys() { return table().usable(); }

}  // namespace lamella::codegen
