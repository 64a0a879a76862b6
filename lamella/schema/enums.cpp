// The table of words that a default may use, with their values.
#include "lamella/schema/enums.h"

namespace lamella {
namespace {

struct EnumWord {
  TypeKind kind;
  std::string_view word;
  std::int64_t value;
};

constexpr TypeKind kDtype = TypeKind::kScalarType;

constexpr EnumWord kEnumWords[] = {
    {TypeKind::kMemoryFormat, "contiguous_format", 0},
    {TypeKind::kMemoryFormat, "preserve_format", 1},
    {TypeKind::kMemoryFormat, "channels_last", 2},
    {TypeKind::kMemoryFormat, "channels_last_3d", 3},
    {TypeKind::kLayout, "strided", 0},
    {TypeKind::kLayout, "sparse_coo", 1},
    {TypeKind::kLayout, "sparse_csr", 2},
    {TypeKind::kLayout, "_mkldnn", 3},
    {TypeKind::kLayout, "sparse_csc", 4},
    {TypeKind::kLayout, "sparse_bsr", 5},
    {TypeKind::kLayout, "sparse_bsc", 6},
    {TypeKind::kLayout, "jagged", 7},
    {TypeKind::kInt, "Mean", 1},
    {TypeKind::kInt, "Sum", 2},
#define LAMELLA_SCALAR_TYPE(cpp, name, number, text, ...) {kDtype, #text, number},
#include "lamella/core/scalar_type.def"
    {kDtype, "byte", 0},
    {kDtype, "char", 1},
    {kDtype, "short", 2},
    {kDtype, "int", 3},
    {kDtype, "long", 4},
    {kDtype, "half", 5},
    {kDtype, "float", 6},
    {kDtype, "double", 7},
    {kDtype, "chalf", 8},
    {kDtype, "cfloat", 9},
    {kDtype, "cdouble", 10},
    {kDtype, "qint8", 12},
    {kDtype, "quint8", 13},
    {kDtype, "qint32", 14},
    {kDtype, "quint4x2", 16},
    {kDtype, "quint2x4", 17},
    {kDtype, "float8_e5m2fnuz", 25},
    {kDtype, "float8_e4m3fnuz", 26},
};

}  // namespace

std::optional<std::int64_t> enum_word_value(TypeKind kind, std::string_view word) {
  for (const EnumWord& entry : kEnumWords) {
    if (entry.kind == kind && entry.word == word) return entry.value;
  }
  return std::nullopt;
}

std::vector<std::string_view> enum_words(TypeKind kind) {
  std::vector<std::string_view> words;
  for (const EnumWord& entry : kEnumWords) {
    if (entry.kind == kind) words.push_back(entry.word);
  }
  return words;
}

}  // namespace lamella
