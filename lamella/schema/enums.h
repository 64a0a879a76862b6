// The integers behind the words a default may use: contiguous_format, long, strided, Mean.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "lamella/core/macros.h"
#include "lamella/schema/type.h"

namespace lamella {

// The value of `word` as a default of an argument of kind `kind` (kScalarType, kMemoryFormat,
// kLayout, or kInt for reductions), numbered as PyTorch numbers them; nothing when it is not such a
// word.
LAMELLA_PRIVATE_API std::optional<std::int64_t> enum_word_value(TypeKind kind,
                                                                std::string_view word);

// The words that `kind` knows.
LAMELLA_PRIVATE_API std::vector<std::string_view> enum_words(TypeKind kind);

}  // namespace lamella
