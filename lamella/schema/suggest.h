// "Did you mean ...?": finds the known word nearest to an unknown one.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lamella/core/macros.h"

namespace lamella {

// The candidate within a few edits of `word` (case counts half), nearest first; none if all are
// far.
std::optional<std::string> nearest_word(std::string_view word,
                                        std::span<const std::string_view> candidates);

// "; did you mean 'X'?" or "".
LAMELLA_PRIVATE_API std::string did_you_mean(std::string_view word,
                                             std::span<const std::string_view> candidates);

}  // namespace lamella
