// The bytes that go with a custom call.
#pragma once
#include <string>
#include <string_view>

#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// What a custom call's `opaque` says, which XLA's text keeps in backend_config: a quoted text with
// escapes stands for its bytes, anything else ({...}) for itself; "" where there is none.
std::string opaque_of(const Instruction& instruction);
// The quoted text that stands for bytes.
std::string quoted_opaque(std::string_view bytes);

}  // namespace lamella::hlo
