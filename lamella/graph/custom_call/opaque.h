// The opaque bytes of a custom call.
#pragma once
#include <string>
#include <string_view>

#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// A custom call's `opaque`, which XLA's text stores in backend_config. A quoted text with escapes
// is decoded to bytes; any other text ({...}) is returned unchanged; "" if there is none.
std::string opaque_of(const Instruction& instruction);
// The quoted text that encodes the bytes.
std::string quoted_opaque(std::string_view bytes);

}  // namespace lamella::hlo
