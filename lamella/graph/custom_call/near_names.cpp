// Similar names by Levenshtein distance, ignoring case.
#include "lamella/graph/custom_call/near_names.h"

#include <algorithm>
#include <set>
#include <utility>

namespace lamella::hlo {
namespace {

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower;
}

// The number of letters to insert, delete or replace; at most limit + 1.
size_t distance(std::string_view a, std::string_view b, size_t limit) {
  size_t apart = a.size() > b.size() ? a.size() - b.size() : b.size() - a.size();
  if (apart > limit) return limit + 1;
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 0; i < a.size(); ++i) {
    size_t corner = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      size_t changed = corner + (a[i] == b[j] ? 0 : 1);
      corner = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, corner + 1});
    }
  }
  return std::min(row[b.size()], limit + 1);
}

}  // namespace

std::string near_names(std::string_view name, const std::vector<std::string>& names) {
  std::string asked = lower_case(name);
  size_t limit = std::max<size_t>(1, asked.size() / 3);
  std::set<std::pair<size_t, std::string>> near;
  for (const std::string& one : names) {
    std::string candidate = lower_case(one);
    size_t apart = distance(asked, candidate, limit);
    // A name without an overload is compared without overloads: "aten::softmx" is near to
    // aten::softmax.int.
    if (asked.find('.') == std::string::npos && candidate.find("::") != std::string::npos) {
      apart = std::min(apart, distance(asked, candidate.substr(0, candidate.find('.')), limit));
    }
    if (apart > limit && asked.size() >= 4 && candidate.find(asked) != std::string::npos) {
      apart = limit;
    }
    if (apart <= limit) near.emplace(apart, one);
  }
  std::string text;
  size_t count = 0;
  for (const auto& [apart, one] : near) {
    if (count++ == 3) break;
    text += (text.empty() ? "'" : ", '") + one + "'";
  }
  return text;
}

}  // namespace lamella::hlo
