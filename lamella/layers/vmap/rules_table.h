// The named rules of built-in operators. Internal.
#pragma once
#include <string_view>

#include "lamella/layers/vmap/rule.h"

namespace lamella::vmap {

// NULL: no family has a rule of that name.
Rule find_operator_rule(std::string_view name);

}  // namespace lamella::vmap
