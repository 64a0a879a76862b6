// Splitting of field texts, and checks of C++ names.
#include "codegen/words.h"

#include <algorithm>

namespace lamella::codegen {

std::vector<Piece> split(std::string_view text, char separator) {
  std::vector<Piece> pieces;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && (text[i] == '(' || text[i] == '<')) ++depth;
    if (i < text.size() && (text[i] == ')' || text[i] == '>')) --depth;
    if (i < text.size() && (text[i] != separator || depth > 0)) continue;
    std::size_t from = begin;
    std::size_t to = i;
    while (from < to && (text[from] == ' ' || text[from] == '\t')) ++from;
    while (to > from && (text[to - 1] == ' ' || text[to - 1] == '\t')) --to;
    pieces.push_back({std::string(text.substr(from, to - from)), from});
    begin = i + 1;
  }
  return pieces;
}

bool is_identifier(std::string_view text) {
  if (text.empty() || (text[0] >= '0' && text[0] <= '9')) return false;
  return std::ranges::all_of(text, [](char c) {
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  });
}

std::optional<std::vector<std::string>> split_qualified(std::string_view text) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t colon = text.find("::");
    std::string_view part = text.substr(0, colon);
    if (!is_identifier(part)) return std::nullopt;
    parts.emplace_back(part);
    if (colon == std::string_view::npos) return parts;
    text.remove_prefix(colon + 2);
  }
}

}  // namespace lamella::codegen
