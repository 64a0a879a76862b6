// Converts text to JSON. Internal to lamella/graph/view.
#pragma once
#include <nlohmann/json.hpp>
#include <string_view>

namespace lamella::hlo {

// A string, or {"bytes": [numbers]} if the text is not UTF-8.
nlohmann::ordered_json json_text(std::string_view text);

}  // namespace lamella::hlo
