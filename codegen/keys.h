// The dispatch keys that a `dispatch` table may name, from the table of all dispatch keys.
#pragma once

#include <string_view>
#include <vector>

namespace lamella::codegen {

enum class KeyUse {
  kBackend,    // CPU, SparseCUDA, MkldnnCPU: where data lives
  kAutograd,   // Autograd, AutogradCPU
  kComposite,  // CompositeExplicitAutograd and similar keys
  kLayer,      // a layer's own key: not for a dispatch table
  kSynonym,    // an old name; `now` is the key's
  kUnknown,
};

struct KeyInfo {
  KeyUse use = KeyUse::kUnknown;
  std::string_view now;
};

KeyInfo find_key(std::string_view name);

// The keys that a dispatch table may name.
const std::vector<std::string_view>& dispatch_table_keys();

}  // namespace lamella::codegen
