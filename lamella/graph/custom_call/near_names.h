// Suggestions for misspelled names.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace lamella::hlo {

// The text "'a', 'b'" of at most three similar names, nearest first; empty if there is none. A name
// is similar if its edit distance is at most a third of the length of `name`, or if it contains
// `name`.
std::string near_names(std::string_view name, const std::vector<std::string>& names);

}  // namespace lamella::hlo
