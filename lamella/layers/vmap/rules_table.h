// The named rules of built-in operators. Internal.
#pragma once
#include <string_view>

#include "lamella/layers/vmap/rule.h"

namespace lamella::vmap {

// The rule with this name; NULL if there is none.
Rule find_operator_rule(std::string_view name);

}  // namespace lamella::vmap
