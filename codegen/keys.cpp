// Derived from lamella/abi/dispatch_keys.def.
#include "codegen/keys.h"

#include <array>
#include <deque>
#include <string>
#include <unordered_map>

namespace lamella::codegen {
namespace {

constexpr std::string_view kBackends[] = {
#define LAMELLA_BACKEND(Name) #Name,
#include "lamella/abi/dispatch_keys.def"
};

struct Functionality {
  std::string_view name;
  std::string_view prefix;
  bool split;
};

constexpr Functionality kFunctionalities[] = {
#define LAMELLA_FUNCTIONALITY(Name) {#Name, "", false},
#define LAMELLA_SPLIT(Name, Prefix) {#Name, #Prefix, true},
#define LAMELLA_SHARED(Name, Split)
#include "lamella/abi/dispatch_keys.def"
};

constexpr std::string_view kAliases[] = {
#define LAMELLA_ALIAS(Name) #Name,
#include "lamella/abi/dispatch_keys.def"
};

constexpr std::pair<std::string_view, std::string_view> kSynonyms[] = {
#define LAMELLA_SYNONYM(Name, Key) {#Name, #Key},
#include "lamella/abi/dispatch_keys.def"
};

// Functionalities without a backend of their own that hold kernels for data, not layers.
constexpr std::array<std::string_view, 5> kDataKeys = {"Vulkan", "Metal", "CustomRNGKeyId",
                                                       "MkldnnCPU", "ZeroTensor"};

class KeyTable {
 public:
  KeyTable() {
    for (const Functionality& entry : kFunctionalities) {
      if (!entry.split) {
        add(std::string(entry.name), use_of(entry.name));
        continue;
      }
      const bool layer = entry.prefix == "Autocast";
      const KeyUse use = entry.prefix == "Autograd" ? KeyUse::kAutograd
                         : layer                    ? KeyUse::kLayer
                                                    : KeyUse::kBackend;
      for (std::string_view backend : kBackends) {
        add(std::string(entry.prefix) + std::string(backend), use);
      }
    }
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
  static KeyUse use_of(std::string_view name) {
    if (name.starts_with("Autograd")) return KeyUse::kAutograd;
    for (std::string_view key : kDataKeys) {
      if (key == name) return KeyUse::kBackend;
    }
    return KeyUse::kLayer;
  }

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
