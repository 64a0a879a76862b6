// Tokens of formulas, and the names and attribute expressions among them.
#include "codegen/derivative_formula.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>

namespace lamella::codegen {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool in_name(char c) { return is_letter(c) || is_digit(c); }

char closing(char open) { return open == '(' ? ')' : open == '[' ? ']' : '}'; }

}  // namespace

std::vector<FormulaToken> scan_formula(std::string_view text,
                                       std::vector<FormulaProblem>& problems) {
  using Kind = FormulaToken::Kind;
  std::vector<FormulaToken> tokens;
  std::vector<std::size_t> open;  // offsets of brackets
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    std::size_t end = at + 1;
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      ++at;
      continue;
    }
    if (text.substr(at, 2) == "//") {
      at = std::min(text.find('\n', at), text.size());
      continue;
    }
    if (text.substr(at, 2) == "/*") {
      const std::size_t close = text.find("*/", at + 2);
      if (close == std::string_view::npos) {
        problems.push_back({"the comment does not end: expected '*/'", at});
        return tokens;
      }
      at = close + 2;
      continue;
    }
    if (is_letter(c)) {
      while (end < text.size() && in_name(text[end])) ++end;
      tokens.push_back({Kind::kName, text.substr(at, end - at), at});
    } else if (is_digit(c) || (c == '.' && end < text.size() && is_digit(text[end]))) {
      // 1e-5 and 0x1p-3 hold a sign.
      while (end < text.size() &&
             (in_name(text[end]) || text[end] == '.' ||
              ((text[end] == '-' || text[end] == '+') &&
               std::string_view("eEpP").find(text[end - 1]) != std::string_view::npos))) {
        ++end;
      }
      tokens.push_back({Kind::kNumber, text.substr(at, end - at), at});
    } else if (c == '"' || c == '\'') {
      while (end < text.size() && text[end] != c && text[end] != '\n') {
        end += text[end] == '\\' ? 2 : 1;
      }
      if (end >= text.size() || text[end] != c) {
        problems.push_back({std::string("the text does not end: expected ") + c, at});
        return tokens;
      }
      ++end;
      tokens.push_back({Kind::kText, text.substr(at, end - at), at});
    } else {
      const std::string_view pair = text.substr(at, 2);
      if (pair == "::" || pair == "->") ++end;
      tokens.push_back({Kind::kMark, text.substr(at, end - at), at});
      if (c == '(' || c == '[' || c == '{') {
        open.push_back(at);
      } else if (c == ')' || c == ']' || c == '}') {
        if (open.empty()) {
          problems.push_back({std::string("'") + c + "' closes nothing", at});
          return tokens;
        }
        if (closing(text[open.back()]) != c) {
          problems.push_back(
              {std::string("expected '") + closing(text[open.back()]) + "' before this '" + c + "'",
               at});
          return tokens;
        }
        open.pop_back();
      }
    }
    at = end;
  }
  if (!open.empty()) {
    problems.push_back({std::string("'") + text[open.back()] + "' does not close: expected '" +
                            closing(text[open.back()]) + "'",
                        open.back()});
  }
  return tokens;
}

namespace {

struct Member {
  std::string_view name;
  Attribute attribute;
  NameKind of;
};
// x.NAME(), and with an argument x.size(d) and x.stride(d). The names with sym_ are PyTorch's.
constexpr std::array<Member, 16> kMembers = {{
    {"sizes", Attribute::kSizes, NameKind::kTensor},
    {"sym_sizes", Attribute::kSizes, NameKind::kTensor},
    {"strides", Attribute::kStrides, NameKind::kTensor},
    {"sym_strides", Attribute::kStrides, NameKind::kTensor},
    {"scalar_type", Attribute::kDtype, NameKind::kTensor},
    {"dtype", Attribute::kDtype, NameKind::kTensor},
    {"device", Attribute::kDevice, NameKind::kTensor},
    {"options", Attribute::kOptions, NameKind::kTensor},
    {"layout", Attribute::kLayout, NameKind::kTensor},
    {"dim", Attribute::kDim, NameKind::kTensor},
    {"numel", Attribute::kNumel, NameKind::kTensor},
    {"sym_numel", Attribute::kNumel, NameKind::kTensor},
    {"storage_offset", Attribute::kOffset, NameKind::kTensor},
    {"defined", Attribute::kDefined, NameKind::kTensor},
    {"has_value", Attribute::kDefined, NameKind::kTensor},
    {"size", Attribute::kCount, NameKind::kTensorList},
}};
constexpr std::array<Member, 4> kIndexed = {{
    {"size", Attribute::kSize, NameKind::kTensor},
    {"sym_size", Attribute::kSize, NameKind::kTensor},
    {"stride", Attribute::kStride, NameKind::kTensor},
    {"sym_stride", Attribute::kStride, NameKind::kTensor},
}};
// NAME(x)
constexpr std::array<Member, 7> kFunctions = {{
    {"zeros_like", Attribute::kZeros, NameKind::kTensor},
    {"TensorGeometry", Attribute::kGeometry, NameKind::kTensor},
    {"sizes_of", Attribute::kSizes, NameKind::kTensorList},
    {"to_args_sizes", Attribute::kSizes, NameKind::kTensorList},
    {"to_args_sizes_symint", Attribute::kSizes, NameKind::kTensorList},
    {"dtypes_of", Attribute::kDtype, NameKind::kTensorList},
    {"to_args_scalartypes", Attribute::kDtype, NameKind::kTensorList},
}};

template <std::size_t N>
std::optional<Attribute> look_up(const std::array<Member, N>& table, std::string_view name,
                                 NameKind kind) {
  for (const Member& member : table) {
    if (member.name == name && member.of == kind) return member.attribute;
  }
  return std::nullopt;
}

// Words that may appear in place of a variable, but are not variables.
constexpr std::array<std::string_view, 38> kWords = {
    "true",         "false",        "nullptr",     "return",   "const",      "auto",
    "bool",         "int",          "double",      "float",    "long",       "char",
    "unsigned",     "sizeof",       "void",        "if",       "else",       "for",
    "while",        "new",          "this",        "typename", "template",   "int64_t",
    "uint64_t",     "int32_t",      "size_t",      "uint32_t", "Tensor",     "Scalar",
    "Device",       "ScalarType",   "IntArrayRef", "Layout",   "TensorList", "DimVector",
    "MemoryFormat", "TensorOptions"};

// M_PI, LAMELLA_OK; kLong
bool is_constant(std::string_view name) {
  if (name.size() > 1 && name[0] == 'k' && name[1] >= 'A' && name[1] <= 'Z') return true;
  return name.size() > 1 && std::ranges::none_of(name, [](char c) { return c >= 'a' && c <= 'z'; });
}

class Finder {
 public:
  Finder(const std::vector<FormulaToken>& tokens, const std::vector<KnownName>& known)
      : tokens_(tokens), known_(known) {}

  FormulaNames run() {
    for (at_ = 0; at_ < tokens_.size(); ++at_) {
      if (mark(at_, "[") && (at_ == 0 || !ends_value(at_ - 1))) found_.makes_functions = true;
      if (tokens_[at_].kind == FormulaToken::Kind::kName) name();
    }
    return std::move(found_);
  }

 private:
  bool mark(std::size_t i, std::string_view text) const {
    return i < tokens_.size() && tokens_[i].kind == FormulaToken::Kind::kMark &&
           tokens_[i].text == text;
  }
  bool member_mark(std::size_t i) const { return mark(i, ".") || mark(i, "->"); }
  bool ends_value(std::size_t i) const {
    return tokens_[i].kind != FormulaToken::Kind::kMark || mark(i, ")") || mark(i, "]");
  }
  std::size_t end_of(std::size_t i) const { return tokens_[i].offset + tokens_[i].text.size(); }
  std::string_view name_at(std::size_t i) const {
    return i < tokens_.size() && tokens_[i].kind == FormulaToken::Kind::kName ? tokens_[i].text
                                                                              : std::string_view();
  }
  std::size_t known(std::string_view text) const {
    std::size_t i = 0;
    while (i < known_.size() && known_[i].name != text) ++i;
    return i;
  }

  void name() {
    const FormulaToken& token = tokens_[at_];
    if (at_ > 0 && (member_mark(at_ - 1) || mark(at_ - 1, "::"))) return;
    if (mark(at_ + 1, "::")) return;
    if (mark(at_ + 1, "(")) {
      function();
      return;
    }
    const std::size_t which = known(token.text);
    if (which == known_.size()) {
      if (token.text == "grads") {
        gradients();
      } else if (!mark(at_ + 1, "<") || !is_template(at_ + 1)) {
        unknown(token);
      }
      return;
    }
    const NameKind kind = known_[which].kind;
    Mention mention{token.offset, end_of(at_), which, Attribute::kValue};
    if (member_mark(at_ + 1) && mark(at_ + 3, "(")) {
      const std::string_view member = name_at(at_ + 2);
      mention.optional = mark(at_ + 1, "->");
      const bool empty = mark(at_ + 4, ")");
      const auto attribute =
          empty ? look_up(kMembers, member, kind) : look_up(kIndexed, member, kind);
      if (attribute) {
        mention.attribute = *attribute;
        mention.end = end_of(at_ + (empty ? 4 : 3));
        at_ += empty ? 4 : 3;
      }
    }
    found_.mentions.push_back(mention);
  }

  // zeros_like(x) and similar functions: recognised only if the argument is a known name.
  void function() {
    const std::size_t which = known(name_at(at_ + 2));
    if (which == known_.size() || !mark(at_ + 3, ")")) return;
    const auto attribute = look_up(kFunctions, tokens_[at_].text, known_[which].kind);
    if (!attribute) return;
    found_.mentions.push_back({tokens_[at_].offset, end_of(at_ + 3), which, *attribute});
    at_ += 3;
  }

  void gradients() {
    std::size_t index = SIZE_MAX;
    if (mark(at_ + 1, "[") && mark(at_ + 3, "]") &&
        tokens_[at_ + 2].kind == FormulaToken::Kind::kNumber) {
      const std::string_view digits = tokens_[at_ + 2].text;
      const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), index);
      if (read.ec != std::errc() || read.ptr != digits.data() + digits.size()) index = SIZE_MAX - 1;
    }
    found_.grad_indices.push_back(index);
    found_.grad_index_offsets.push_back(tokens_[at_].offset);
  }

  // Whether the `<` at token i opens template arguments: names, numbers, `::`, `,`, `*` and `&` up
  // to a `>` that a call, a brace or `::` follows.
  bool is_template(std::size_t i) const {
    int depth = 0;
    for (; i < tokens_.size(); ++i) {
      if (mark(i, "<")) ++depth;
      if (mark(i, ">") && --depth == 0) {
        return mark(i + 1, "(") || mark(i + 1, "{") || mark(i + 1, "::");
      }
      const bool inside = tokens_[i].kind != FormulaToken::Kind::kMark || mark(i, "<") ||
                          mark(i, ">") || mark(i, "::") || mark(i, ",") || mark(i, "*") ||
                          mark(i, "&");
      if (!inside) return false;
    }
    return false;
  }

  void unknown(const FormulaToken& token) {
    if (is_constant(token.text) || std::ranges::find(kWords, token.text) != kWords.end()) return;
    found_.unknown.push_back({token.text, token.offset});
  }

  const std::vector<FormulaToken>& tokens_;
  const std::vector<KnownName>& known_;
  FormulaNames found_;
  std::size_t at_ = 0;
};

}  // namespace

FormulaNames find_names(const std::vector<FormulaToken>& tokens,
                        const std::vector<KnownName>& known) {
  return Finder(tokens, known).run();
}

std::string describe(const KnownName& name, Attribute attribute) {
  const std::string& x = name.name;
  const bool list = name.kind == NameKind::kTensorList;
  switch (attribute) {
    case Attribute::kValue:
      return x;
    case Attribute::kSizes:
      return list ? "sizes_of(" + x + ")" : x + ".sizes()";
    case Attribute::kSize:
      return x + ".sizes()";
    case Attribute::kStrides:
    case Attribute::kStride:
      return x + ".strides()";
    case Attribute::kDtype:
      return list ? "dtypes_of(" + x + ")" : x + ".scalar_type()";
    case Attribute::kDevice:
      return x + ".device()";
    case Attribute::kOptions:
      return x + ".options()";
    case Attribute::kLayout:
      return x + ".layout()";
    case Attribute::kDim:
      return x + ".dim()";
    case Attribute::kNumel:
      return x + ".numel()";
    case Attribute::kOffset:
      return x + ".storage_offset()";
    case Attribute::kGeometry:
      return "TensorGeometry(" + x + ")";
    case Attribute::kZeros:
      return "zeros_like(" + x + ")";
    case Attribute::kDefined:
      return x + ".defined()";
    case Attribute::kCount:
      return x + ".size()";
  }
  return x;
}

std::string camel_case(std::string_view name) {
  std::string out;
  bool upper = true;
  for (char c : name) {
    const bool letter = is_letter(c) && c != '_';
    if (c != '_') {
      const char low = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
      out += letter && upper && low >= 'a' ? static_cast<char>(low - 'a' + 'A') : low;
    }
    upper = !letter;
  }
  return out;
}

}  // namespace lamella::codegen
