// Splitting of field texts, and checks of C++ names.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lamella::codegen {

struct Piece {
  std::string text;
  std::size_t offset;  // in the text it was taken from
};

// `text` at each `separator` outside parentheses, trimmed.
std::vector<Piece> split(std::string_view text, char separator);
// True if the text is a C++ identifier.
bool is_identifier(std::string_view text);
// The parts between '::', or nothing if one is not an identifier.
std::optional<std::vector<std::string>> split_qualified(std::string_view text);

}  // namespace lamella::codegen
