// Edit distance with adjacent swaps, counted in half units so that a letter in the wrong case costs
// less than a wrong letter.
#include "lamella/schema/suggest.h"

#include <algorithm>
#include <cctype>

namespace lamella {
namespace {

int lower(char c) { return std::tolower(static_cast<unsigned char>(c)); }

int letter_cost(char a, char b) {
  if (a == b) return 0;
  return lower(a) == lower(b) ? 1 : 2;
}

bool same_but_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, lower, lower);
}

int distance(std::string_view a, std::string_view b) {
  // The row of a letter of `a`, and the two before it.
  std::vector<int> rows[3];
  for (std::vector<int>& row : rows) row.resize(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) rows[0][j] = 2 * static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::vector<int>& now = rows[i % 3];
    const std::vector<int>& before = rows[(i + 2) % 3];
    const std::vector<int>& second = rows[(i + 1) % 3];
    now[0] = 2 * static_cast<int>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      int best = std::min(before[j], now[j - 1]) + 2;
      best = std::min(best, before[j - 1] + letter_cost(a[i - 1], b[j - 1]));
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        best = std::min(best, second[j - 2] + 2);
      }
      now[j] = best;
    }
  }
  return rows[a.size() % 3][b.size()];
}

}  // namespace

std::optional<std::string> nearest_word(std::string_view word,
                                        std::span<const std::string_view> candidates) {
  if (word.empty() || word.size() > 100) return std::nullopt;
  // A third of the letters may differ, and at least one.
  const int limit = std::max<int>(2, 2 * static_cast<int>(word.size()) / 3);
  int best = limit + 1;
  std::optional<std::string> found;
  for (std::string_view candidate : candidates) {
    // The distance is at least the difference of the lengths.
    const auto longer = std::max(word.size(), candidate.size());
    const auto shorter = std::min(word.size(), candidate.size());
    if (2 * (longer - shorter) >= static_cast<std::size_t>(best)) continue;
    // A word that differs only in case is always accepted.
    const int d = same_but_case(word, candidate) ? 1 : distance(word, candidate);
    if (d < best) {
      best = d;
      found = std::string(candidate);
    }
  }
  return found;
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates) {
  auto found = nearest_word(word, candidates);
  return found ? "; did you mean '" + *found + "'?" : "";
}

}  // namespace lamella
