// Names that somebody may have meant.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace lamella::hlo {

// At most three of the names, nearest first: within a third of the letters of `name`, or with
// `name` inside them. In quotes, joined: "'a', 'b'"; empty if there is none.
std::string near_names(std::string_view name, const std::vector<std::string>& names);

}  // namespace lamella::hlo
