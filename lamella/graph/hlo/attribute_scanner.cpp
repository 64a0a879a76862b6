// Parsing attribute values that do not refer to other parts of the module.
#include "lamella/graph/hlo/attribute_scanner.h"

#include <algorithm>

#include "lamella/graph/hlo/device_lists.h"
#include "lamella/graph/hlo/literal.h"
#include "lamella/graph/hlo/shape_scanner.h"

namespace lamella::hlo {
namespace {

std::string unescaped(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    char c = text[++i];
    if (c == 'n') {
      out += '\n';
    } else if (c == 't') {
      out += '\t';
    } else if (c == 'r') {
      out += '\r';
    } else if (c >= '0' && c <= '7') {  // up to three octal digits
      int code = 0;
      size_t stop = std::min(i + 3, text.size());
      for (; i < stop && text[i] >= '0' && text[i] <= '7'; ++i) code = code * 8 + (text[i] - '0');
      --i;
      out += static_cast<char>(code);
    } else if (c == 'x' && i + 1 < text.size()) {
      int code = 0;
      auto [end, error] = std::from_chars(text.data() + i + 1,
                                          text.data() + std::min(i + 3, text.size()), code, 16);
      if (error == std::errc()) i = static_cast<size_t>(end - text.data()) - 1;
      out += static_cast<char>(code);
    } else {
      out += c;
    }
  }
  return out;
}

// 3x3, 2x1: numbers between 'x'.
std::vector<int64_t> by_x(Scanner& s) {
  std::vector<int64_t> numbers{s.integer()};
  while (s.at('x')) {
    s.take('x');
    numbers.push_back(s.integer());
  }
  return numbers;
}

// A literal behind its shape, or a tuple of those in parentheses.
void scan_typed_literal(Scanner& s, int depth) {
  if (depth > kMostNestedTuples) s.fail("expected at most ", kMostNestedTuples, " nested tuples");
  if (s.take('(')) {
    while (!s.take(')')) {
      scan_typed_literal(s, depth + 1);
      if (s.peek() != ')') s.expect(',');
    }
    return;
  }
  Shape shape = scan_shape(s);
  Literal::scan(s, shape);
}

bool begins_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

}  // namespace

bool is_keyword(std::string_view word) {
  static constexpr std::string_view kWords[] = {
      "true",        "false",      "inf",           "nan",       "HloModule",
      "ENTRY",       "ROOT",       "FileLocations", "FileNames", "FunctionNames",
      "StackFrames", "maximal",    "replicated",    "manual",    "last_tile_dim_replicate",
      "shard_as",    "shard_like", "unknown",       "unreduced"};
  return word.size() < 24 &&
         (std::ranges::find(kWords, word) != std::end(kWords) || is_type_name(word));
}
bool is_type_name(std::string_view word) {
  if (word.size() > 13) return false;
  auto type = element_from_name(word);
  return type && *type != ElementType::TUPLE && *type != ElementType::Invalid;
}

std::string name_in_text(std::string_view wanted, NameOf of) {
  std::string name(wanted);
  for (char& c : name) {
    if (!Scanner::is_word(c)) c = '_';
  }
  if (name.empty() || !begins_name(name[0])) name.insert(name.begin(), '_');
  if (of == NameOf::Instruction && !name.starts_with("__xla_")) {
    while (name.starts_with("__")) name.erase(name.begin());
  }
  if (of == NameOf::Module ? is_keyword(name) : is_type_name(name)) name += '_';
  return name;
}

std::string_view scan_name(Scanner& s) {
  s.skip();
  size_t begin = s.position();
  bool marked = s.at('%') && s.take('%');
  std::string_view text = s.text();
  if (s.position() >= text.size() || !begins_name(text[s.position()])) {
    s.seek(begin);
    return {};
  }
  std::string_view name = s.word();
  if (s.at(':')) {
    s.take(':');
  } else if (!marked && is_keyword(name)) {
    s.seek(begin);
    return {};
  }
  return name;
}

std::string_view scan_computation_name(Scanner& s) {
  std::string_view name = scan_name(s);
  if (!name.empty()) return name;
  size_t begin = s.position();
  name = s.word();
  if (!is_type_name(name)) {
    s.seek(begin);
    return {};
  }
  return name;
}

bool at_word(Scanner& s, std::string_view wanted) {
  s.skip();
  size_t begin = s.position();
  bool found = s.word() == wanted;
  s.seek(begin);
  return found;
}

bool shape_follows(Scanner& s) {
  if (s.peek() == '(') return true;
  size_t begin = s.position();
  std::string_view word = s.word();
  bool found = is_type_name(word) || (word == "b" && s.peek() == '(');
  s.seek(begin);
  return found;
}

// {{0}: (1, {}), {1}: (0, {2})}
std::vector<OperandAlias> scan_operand_aliases(Scanner& s) {
  std::vector<OperandAlias> aliases;
  s.expect('{');
  while (!s.take('}')) {
    OperandAlias alias;
    alias.output = scan_braced_integers(s);
    s.expect(':');
    s.expect('(');
    alias.operand = s.integer();
    s.expect(',');
    alias.operand_index = scan_braced_integers(s);
    s.expect(')');
    aliases.push_back(std::move(alias));
    if (s.peek() != '}') s.expect(',');
  }
  return aliases;
}

void scan_text_value(Scanner& s, AttributeKey key) {
  switch (key) {
    case AttributeKey::Literal:  // s32[2] {1, 2}
      return scan_typed_literal(s, 0);
    case AttributeKey::ReplicaGroups:
      return scan_replica_groups(s);
    case AttributeKey::Sharding:
      return scan_sharding(s);
    case AttributeKey::ResultAccuracy:  // {mode=highest}, {tolerance={atol=0,rtol=0,ulps=2}}
      s.expect('{');
      if (s.take("mode=")) {
        std::string_view mode = s.word();
        if (mode != "default" && mode != "highest" && mode != "DEFAULT" && mode != "HIGHEST") {
          s.fail("expected default or highest, got '", mode, "'");
        }
      } else {
        s.expect("tolerance=");
        skip_brackets(s, '{');
      }
      return s.expect('}');
    case AttributeKey::FrontendAttributes:
      s.expect('{');
      while (!s.take('}')) {
        if (s.word().empty()) s.fail("expected the name of an attribute, got ", s.next());
        s.expect('=');
        if (s.peek() != '"' && s.peek() != '\'' && s.peek() != '{') {
          s.fail("expected a string or an object in braces, got ", s.next());
        }
        skip_value(s);
        if (s.peek() != '}') s.expect(',');
      }
      return;
    case AttributeKey::BackendConfig:
      if (s.peek() != '"' && s.peek() != '\'' && s.peek() != '{') {
        s.fail("expected a string or an object in braces, got ", s.next());
      }
      return skip_value(s);
    default:
      if (s.peek() != '{') s.fail("expected '{', got ", s.next());
      return skip_value(s);
  }
}

bool scan_boolean(Scanner& s) {
  if (s.take("true")) return true;
  if (s.take("false")) return false;
  s.fail("expected true or false, got ", s.next());
}

std::string_view scan_quoted(Scanner& s, Arena& arena) {
  const char quote = s.peek() == '\'' ? '\'' : '"';
  s.expect(quote);
  size_t begin = s.position();
  std::string_view text = s.text();
  size_t end = begin;
  bool escaped = false;
  while (end < text.size() && text[end] != quote) {
    escaped |= text[end] == '\\';
    end += text[end] == '\\' ? 2 : 1;
  }
  if (end >= text.size()) s.fail_at(begin - 1, "expected '\"' to end the string, got the end");
  s.seek(end + 1);
  std::string_view inside = text.substr(begin, end - begin);
  if (!escaped) return inside;
  return arena.copy(std::string_view(unescaped(inside)));
}

std::vector<WindowDimension> scan_window(Scanner& s) {
  std::vector<WindowDimension> dimensions;
  auto sized = [&](size_t count, std::string_view what) {
    if (dimensions.empty()) dimensions.resize(count);
    if (dimensions.size() != count) {
      s.fail("expected '", what, "' of the window to have ", dimensions.size(), " dimensions, got ",
             count);
    }
  };
  s.expect('{');
  while (!s.take('}')) {
    std::string_view what = s.word();
    s.expect('=');
    if (what == "pad") {
      std::vector<std::pair<int64_t, int64_t>> pads;
      do {
        int64_t low = s.integer();
        s.expect('_');
        pads.emplace_back(low, s.integer());
      } while (s.at('x') && s.take('x'));
      sized(pads.size(), what);
      for (size_t i = 0; i < pads.size(); ++i) {
        dimensions[i].padding_low = pads[i].first;
        dimensions[i].padding_high = pads[i].second;
      }
      continue;
    }
    int64_t WindowDimension::*member = what == "size"         ? &WindowDimension::size
                                       : what == "stride"     ? &WindowDimension::stride
                                       : what == "lhs_dilate" ? &WindowDimension::base_dilation
                                       : what == "rhs_dilate" ? &WindowDimension::window_dilation
                                                              : nullptr;
    if (member == nullptr && what != "rhs_reversal") {
      s.fail("expected size, stride, pad, lhs_dilate, rhs_dilate or rhs_reversal, got '", what,
             "'");
    }
    std::vector<int64_t> numbers = by_x(s);
    sized(numbers.size(), what);
    for (size_t i = 0; i < numbers.size(); ++i) {
      if (member != nullptr) {
        dimensions[i].*member = numbers[i];
      } else {
        dimensions[i].reversal = numbers[i] != 0;
      }
    }
  }
  return dimensions;
}
std::vector<PaddingDimension> scan_padding(Scanner& s) {
  std::vector<PaddingDimension> dimensions;
  s.skip();
  // A scalar's padding is empty.
  if (s.peek() != '-' && (s.peek() < '0' || s.peek() > '9')) return dimensions;
  do {
    PaddingDimension one;
    one.low = s.integer();
    s.expect('_');
    one.high = s.integer();
    if (s.at('_')) {
      s.take('_');
      one.interior = s.integer();
    }
    dimensions.push_back(one);
  } while (s.at('x') && s.take('x'));
  return dimensions;
}
std::vector<SliceDimension> scan_slices(Scanner& s) {
  std::vector<SliceDimension> dimensions;
  s.expect('{');
  while (!s.take('}')) {
    s.expect('[');
    SliceDimension one{s.integer(), 0, 1};
    s.expect(':');
    one.limit = s.integer();
    if (s.take(':')) one.stride = s.integer();
    s.expect(']');
    dimensions.push_back(one);
    if (s.peek() != '}') s.expect(',');
  }
  return dimensions;
}
// b01f_01io->b01f
ConvolutionDimensions scan_dim_labels(Scanner& s) {
  s.skip();
  size_t begin = s.position();
  std::string_view text = s.text();
  size_t end = begin;
  while (end < text.size() && (Scanner::is_word(text[end]) || text[end] == '>' || text[end] == '?'))
    ++end;
  std::string_view labels = text.substr(begin, end - begin);
  size_t bar = labels.find('_'), arrow = labels.find("->");
  if (bar == std::string_view::npos || arrow == std::string_view::npos || arrow < bar) {
    s.fail("expected labels like b01f_01io->b01f, got '", labels, "'");
  }
  s.seek(end);
  ConvolutionDimensions d{};
  auto read = [&](std::string_view part, char first, char second, int64_t* a, int64_t* b,
                  std::vector<int64_t>* spatial) {
    *a = *b = -1;
    // '?' stands for a dimension that takes no part.
    auto places = part.size() - static_cast<size_t>(std::ranges::count(part, '?'));
    spatial->assign(places < 2 ? 0 : places - 2, -1);
    bool good = part.size() >= 2;
    for (size_t i = 0; i < part.size() && good; ++i) {
      char c = part[i];
      auto place = static_cast<int64_t>(i);
      if (c == first && *a < 0) {
        *a = place;
      } else if (c == second && *b < 0) {
        *b = place;
      } else if (c >= '0' && c <= '9' && static_cast<size_t>(c - '0') < spatial->size() &&
                 (*spatial)[static_cast<size_t>(c - '0')] < 0) {
        (*spatial)[static_cast<size_t>(c - '0')] = place;
      } else {
        good = c == '?';
      }
    }
    if (!good || *a < 0 || *b < 0) {
      s.fail_at(begin, str("expected labels like b01f_01io->b01f, got '", labels, "'"));
    }
  };
  read(labels.substr(0, bar), 'b', 'f', &d.input_batch, &d.input_feature, &d.input_spatial);
  read(labels.substr(bar + 1, arrow - bar - 1), 'i', 'o', &d.kernel_input_feature,
       &d.kernel_output_feature, &d.kernel_spatial);
  read(labels.substr(arrow + 2), 'b', 'f', &d.output_batch, &d.output_feature, &d.output_spatial);
  if (d.input_spatial.size() != d.kernel_spatial.size() ||
      d.input_spatial.size() != d.output_spatial.size()) {
    s.fail_at(begin, str("expected labels of as many dimensions in each part, got '", labels, "'"));
  }
  return d;
}

namespace {

// Skips a value, or, if `one_group` is set, brackets with what they contain.
void skip(Scanner& s, bool one_group) {
  s.skip();
  size_t begin = s.position();
  std::string_view text = s.text();
  int depth = 0;
  size_t i = begin;
  for (; i < text.size(); ++i) {
    char c = text[i];
    if (c == '"' || c == '\'') {
      for (++i; i < text.size() && text[i] != c; ++i) {
        if (text[i] == '\\') ++i;
      }
      if (i >= text.size()) s.fail_at(begin, "expected '\"' to end a string, got the end");
    } else if (c == '{' || c == '(' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ')' || c == ']') {
      if (depth == 0) break;
      if (--depth == 0 && one_group) {
        ++i;
        break;
      }
    } else if (depth == 0 && (c == ',' || c == '\n' || c == ' ')) {
      break;
    }
  }
  if (depth != 0) s.fail_at(begin, "expected a closing bracket, got the end");
  if (i == begin) s.fail("expected a value, got ", s.next());
  s.seek(i);
}

}  // namespace

void skip_value(Scanner& s) { skip(s, s.peek() == '('); }
void skip_brackets(Scanner& s, char open) {
  if (s.peek() != open) s.fail("expected '", std::string_view(&open, 1), "', got ", s.next());
  skip(s, true);
}

}  // namespace lamella::hlo
