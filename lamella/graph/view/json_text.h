// Text in JSON. Internal to the view room.
#pragma once
#include <nlohmann/json.hpp>
#include <string_view>

namespace lamella::hlo {

// A string, or {"bytes": [numbers]} where the text is no UTF-8.
nlohmann::ordered_json json_text(std::string_view text);

}  // namespace lamella::hlo
