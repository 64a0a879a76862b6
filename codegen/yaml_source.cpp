// Positions come from the YAML parser's events; scalars are then matched with the file's own bytes.
#include "codegen/yaml_source.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>

namespace lamella::codegen {
namespace {

// Bytes that continue a UTF-8 character are not columns.
bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// Messages show at most this much of a line, around the column.
constexpr std::size_t kMostShown = 240;

}  // namespace

SourceFile::SourceFile(std::string path, std::string text)
    : path_(std::move(path)), text_(std::move(text)) {
  if (text_.starts_with("\xEF\xBB\xBF")) text_.erase(0, 3);
  line_starts_.push_back(0);
  for (std::size_t i = 0; i < text_.size(); ++i) {
    const bool lone_return = text_[i] == '\r' && (i + 1 == text_.size() || text_[i + 1] != '\n');
    if (text_[i] == '\n' || lone_return) line_starts_.push_back(i + 1);
  }
  std::size_t seen = 0;
  for (std::size_t i = 0; i < text_.size(); ++i) {
    if (i % kStep == 0) characters_.push_back(seen);
    if (!continues_character(text_[i])) ++seen;
  }
  characters_.push_back(seen);
}

std::size_t SourceFile::characters(std::size_t offset) const {
  std::size_t i = offset / kStep * kStep;
  std::size_t seen = characters_[i / kStep];
  for (; i < offset; ++i) seen += continues_character(text_[i]) ? 0 : 1;
  return seen;
}

std::string_view SourceFile::line(int number) const {
  if (number < 1 || number > line_count()) return {};
  const auto index = static_cast<std::size_t>(number - 1);
  const std::size_t end = index + 1 < line_starts_.size() ? line_starts_[index + 1] : text_.size();
  std::string_view line =
      std::string_view(text_).substr(line_starts_[index], end - line_starts_[index]);
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.remove_suffix(1);
  return line;
}

Location SourceFile::at(std::size_t offset) const {
  offset = std::min(offset, text_.size());
  auto after = std::upper_bound(line_starts_.begin(), line_starts_.end(), offset);
  const int line = static_cast<int>(after - line_starts_.begin());
  const std::size_t start = line_starts_[static_cast<std::size_t>(line - 1)];
  return {this, line, static_cast<int>(characters(offset) - characters(start)) + 1};
}

std::size_t SourceFile::byte_of(const Location& where) const {
  const std::size_t start = line_starts_[static_cast<std::size_t>(where.line - 1)];
  const std::size_t end = start + line(where.line).size();
  const std::size_t wanted = characters(start) + static_cast<std::size_t>(where.column - 1);
  // The last block that begins at or before it, then character by character.
  auto after = std::upper_bound(characters_.begin(), characters_.end(), wanted);
  std::size_t i = static_cast<std::size_t>(after - characters_.begin() - 1) * kStep;
  std::size_t seen = i < start ? characters(start) : characters_[i / kStep];
  i = std::max(i, start);
  while (i < end && (seen < wanted || continues_character(text_[i]))) {
    if (!continues_character(text_[i])) ++seen;
    ++i;
  }
  return std::min(i, end);
}

std::size_t SourceFile::offset_of(int line, int column) const {
  if (line < 0) return 0;
  if (line >= line_count()) return text_.size();
  const std::size_t start = line_starts_[static_cast<std::size_t>(line)];
  return std::min(text_.size(), start + static_cast<std::size_t>(std::max(column, 0)));
}

void Diagnostics::add(Location where, std::string message) {
  items_.push_back({where, std::move(message)});
}

void Diagnostics::sort() {
  std::map<const SourceFile*, int> order;
  for (const Diagnostic& item : items_) order.emplace(item.where.file, order.size());
  auto key = [&](const Diagnostic& d) {
    return std::tuple(order[d.where.file], d.where.line, d.where.column);
  };
  std::ranges::stable_sort(items_, {}, key);
  auto same = [&](const Diagnostic& a, const Diagnostic& b) {
    return key(a) == key(b) && a.message == b.message;
  };
  items_.erase(std::unique(items_.begin(), items_.end(), same), items_.end());
}

std::string Diagnostics::str() const {
  std::string out;
  for (const Diagnostic& item : items_) {
    const Location& where = item.where;
    if (where.file != nullptr) out += where.file->path() + ":";
    if (where.line > 0) {
      out += std::to_string(where.line) + ":" + std::to_string(where.column) + ":";
    }
    out += (out.empty() || out.back() == '\n' ? "error: " : " error: ") + item.message + "\n";
    if (where.file == nullptr || where.line == 0) continue;
    std::string_view line = where.file->line(where.line);
    if (line.empty()) continue;
    const std::size_t start = static_cast<std::size_t>(line.data() - where.file->text().data());
    const std::size_t at = where.file->byte_of(where) - start;
    std::size_t from = 0;
    std::size_t to = line.size();
    if (line.size() > kMostShown) {
      from = at > kMostShown / 2 ? at - kMostShown / 2 : 0;
      to = std::min(line.size(), from + kMostShown);
      while (from < at && continues_character(line[from])) ++from;
      while (to < line.size() && continues_character(line[to])) ++to;
    }
    const std::string_view before = from > 0 ? "..." : "";
    out += "  " + std::string(before) + std::string(line.substr(from, to - from)) +
           (to < line.size() ? "..." : "") + "\n  " + std::string(before.size(), ' ');
    for (std::size_t i = from; i < at; ++i) {
      if (!continues_character(line[i])) out += line[i] == '\t' ? '\t' : ' ';
    }
    out += "^\n";
  }
  return out;
}

std::string YamlNode::describe() const {
  switch (kind) {
    case Kind::kMap:
      return "a map";
    case Kind::kSequence:
      return "a list";
    case Kind::kNull:
      return "nothing";
    case Kind::kScalar:
      break;
  }
  return "'" + (text.size() > 60 ? text.substr(0, 57) + "..." : text) + "'";
}

Location YamlNode::locate(std::size_t offset) const {
  if (where.file == nullptr || kind != Kind::kScalar) return where;
  return where.file->at(raw_offset(offset));
}

std::size_t YamlNode::raw_offset(std::size_t offset) const {
  const std::string& source = where.file->text();
  auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; };
  std::size_t p = raw;
  std::size_t begin = 0;
  // A tag or an anchor stands before the value.
  while (p < source.size() && (source[p] == '&' || source[p] == '!')) {
    while (p < source.size() && !blank(source[p])) ++p;
    while (p < source.size() && blank(source[p])) ++p;
  }
  char style = p < source.size() ? source[p] : '\0';
  if (style == '"' || style == '\'') {
    ++p;
  } else if (style == '|' || style == '>') {
    while (p < source.size() && source[p] != '\n') ++p;  // the header of a block scalar
    while (p < source.size() && blank(source[p])) ++p;
  } else {
    style = '\0';
  }
  // In double quotes, a backslash at the end of a line is dropped.
  auto skip_continuation = [&] {
    while (style == '"' && p + 1 < source.size() && source[p] == '\\' &&
           (source[p + 1] == '\n' || source[p + 1] == '\r')) {
      ++p;
      while (p < source.size() && blank(source[p])) ++p;
    }
  };
  skip_continuation();
  if (known_raw != 0 && known_offset <= offset) {
    begin = known_offset;
    p = known_raw;
  }
  known_offset = std::min(offset, text.size());
  for (std::size_t i = begin; i < offset && i < text.size() && p < source.size();
       ++i, skip_continuation()) {
    if (blank(text[i])) {
      // A fold: one blank of the value may be a line break and indentation in the file.
      const bool folded = source[p] == '\n' || source[p] == '\r';
      if (blank(source[p])) ++p;
      if (folded || text[i] == '\n' ||
          (p < source.size() && (source[p] == '\n' || source[p] == '\r'))) {
        while (p < source.size() && blank(source[p])) ++p;
      }
      if (source[p - 1] != '\\') continue;
    }
    if (style == '"' && source[p] == '\\') {
      const char kind_of_escape = p + 1 < source.size() ? source[p + 1] : '\0';
      p += kind_of_escape == 'x' ? 4 : kind_of_escape == 'u' ? 6 : kind_of_escape == 'U' ? 10 : 2;
    } else if (style == '\'' && source[p] == '\'') {
      p += 2;
    } else {
      ++p;
    }
  }
  known_raw = p;
  return p;
}

namespace {

// Builds the tree of one document.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(const SourceFile& file, int first_line, Diagnostics& diagnostics)
      : file_(file), first_line_(first_line), diagnostics_(diagnostics) {}

  YamlPtr root() const { return root_; }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    auto node = make(mark, YamlNode::Kind::kNull);
    const std::string& text = file_.text();
    const char first = node->raw < text.size() ? text[node->raw] : '\0';
    if (first != '~' && first != 'n' && first != 'N' && !open_.empty()) {
      // The mark of a missing value is that of the next token: step back to the key or the dash.
      const Open& parent = open_.back();
      if (parent.key != nullptr) {
        node->raw = parent.key->raw;
      } else if (std::size_t dash = text.rfind('-', node->raw); dash != std::string::npos) {
        node->raw = dash;
      }
      node->where = file_.at(node->raw);
    }
    finish(node, anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    auto found = anchors_.find(anchor);
    if (found != anchors_.end()) {
      attach(found->second);
      return;
    }
    auto node = make(mark, YamlNode::Kind::kNull);
    diagnostics_.add(node->where, "a YAML alias may not stand inside what it names");
    attach(node);
  }
  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                const std::string& value) override {
    auto node = make(mark, YamlNode::Kind::kScalar);
    node->text = value;
    const char quote = node->raw < file_.text().size() ? file_.text()[node->raw] : '\0';
    if (quote == '"' || quote == '\'') {
      // The parser takes the end of the file for a closing quote.
      const std::size_t end = node->raw_offset(value.size());
      if (end >= file_.text().size() || file_.text()[end] != quote) {
        throw YAML::ParserException(mark, "the quoted text is not closed");
      }
    }
    finish(node, anchor);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open_.push_back({make(mark, YamlNode::Kind::kSequence), anchor, nullptr});
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open_.push_back({make(mark, YamlNode::Kind::kMap), anchor, nullptr});
  }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    std::shared_ptr<YamlNode> node;
    YAML::anchor_t anchor;
    YamlPtr key;
  };

  std::shared_ptr<YamlNode> make(const YAML::Mark& mark, YamlNode::Kind kind) {
    auto node = std::make_shared<YamlNode>();
    node->kind = kind;
    node->raw = file_.offset_of(mark.line + first_line_, mark.column);
    node->where = file_.at(node->raw);
    return node;
  }

  void finish(const YamlPtr& node, YAML::anchor_t anchor) {
    if (anchor != 0) anchors_[anchor] = node;
    attach(node);
  }

  void close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    finish(done.node, done.anchor);
  }

  void attach(const YamlPtr& node) {
    if (open_.empty()) {
      root_ = node;
      return;
    }
    Open& parent = open_.back();
    if (parent.node->kind == YamlNode::Kind::kSequence) {
      parent.node->items.push_back(node);
    } else if (parent.key == nullptr) {
      parent.key = node;
    } else {
      parent.node->entries.emplace_back(std::move(parent.key), node);
      parent.key = nullptr;
    }
  }

  const SourceFile& file_;
  int first_line_;
  Diagnostics& diagnostics_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, YamlPtr> anchors_;
  YamlPtr root_;
};

struct SyntaxError {
  Location where;
  std::string message;
};

// The entries of `text`, which begins at line `first_line` (from 0) of the file.
std::optional<SyntaxError> parse_text(const SourceFile& file, const std::string& text,
                                      int first_line, std::vector<YamlPtr>& entries,
                                      Diagnostics& diagnostics) {
  TreeBuilder builder(file, first_line, diagnostics);
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder)) return std::nullopt;
    YamlPtr root = builder.root();
    TreeBuilder second(file, first_line, diagnostics);
    if (parser.HandleNextDocument(second) && second.root() != nullptr &&
        !second.root()->is_null()) {
      diagnostics.add(second.root()->where, "a file holds one YAML document; remove the '---'");
    }
    if (root == nullptr || root->is_null()) return std::nullopt;
    if (!root->is_sequence()) {
      diagnostics.add(root->where, "expected a list of entries, each beginning with '- ', got " +
                                       root->describe());
      return std::nullopt;
    }
    entries.insert(entries.end(), root->items.begin(), root->items.end());
    return std::nullopt;
  } catch (const YAML::Exception& error) {
    const std::size_t offset =
        error.mark.is_null() ? file.offset_of(first_line, 0)
                             : file.offset_of(error.mark.line + first_line, error.mark.column);
    return SyntaxError{file.at(offset), error.msg};
  }
}

// A tab in the indentation of lines [first, last], from 0, if there is one.
std::optional<Location> find_tab(const SourceFile& file, int first, int last) {
  for (int i = first; i < last; ++i) {
    std::string_view line = file.line(i + 1);
    const std::size_t indent = line.find_first_not_of(" \t");
    const std::size_t tab = line.find('\t');
    if (tab != std::string_view::npos && indent != std::string_view::npos && tab < indent) {
      return file.at(file.offset_of(i, static_cast<int>(tab)));
    }
  }
  return std::nullopt;
}

void report_syntax(const SourceFile& file, int first, int last, const SyntaxError& error,
                   Diagnostics& diagnostics) {
  if (auto tab = find_tab(file, first, last)) {
    diagnostics.add(*tab, "not valid YAML: a tab in the indentation; use spaces");
  } else {
    const bool map = error.message.find("illegal map value") != std::string::npos;
    diagnostics.add(error.where, "not valid YAML: " + error.message +
                                     (map ? "; a text that contains ': ' needs quotes" : ""));
  }
}

}  // namespace

std::vector<YamlPtr> read_entries(const SourceFile& file, Diagnostics& diagnostics) {
  std::vector<YamlPtr> entries;
  auto whole = parse_text(file, file.text(), 0, entries, diagnostics);
  if (!whole) return entries;
  // Each piece from one top-level '- ' to the next is read alone, so that one broken entry does not
  // hide the errors of the others.
  entries.clear();
  std::vector<int> starts;
  for (int i = 0; i < file.line_count(); ++i) {
    std::string_view line = file.line(i + 1);
    if (line == "-" || line.starts_with("- ") || line.starts_with("-\t")) starts.push_back(i);
  }
  bool reported = false;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const int last = i + 1 < starts.size() ? starts[i + 1] : file.line_count();
    const std::size_t begin = file.offset_of(starts[i], 0);
    const std::string piece = file.text().substr(begin, file.offset_of(last, 0) - begin);
    if (auto error = parse_text(file, piece, starts[i], entries, diagnostics)) {
      report_syntax(file, starts[i], last, *error, diagnostics);
      reported = true;
    }
  }
  if (!reported) report_syntax(file, 0, file.line_count(), *whole, diagnostics);
  return entries;
}

const SourceFile* SourceSet::add(std::string path, std::string text) {
  return &files_.emplace_back(std::move(path), std::move(text));
}

namespace {

// The first byte that is not UTF-8 text, or npos.
std::size_t first_bad_byte(std::string_view text) {
  std::size_t i = 0;
  while (i < text.size()) {
    const auto byte = static_cast<unsigned char>(text[i]);
    std::size_t more = 0;
    if (byte == 0) return i;
    if (byte >= 0x80) {
      if (byte >= 0xC2 && byte <= 0xDF) {
        more = 1;
      } else if (byte >= 0xE0 && byte <= 0xEF) {
        more = 2;
      } else if (byte >= 0xF0 && byte <= 0xF4) {
        more = 3;
      } else {
        return i;
      }
    }
    for (std::size_t k = 1; k <= more; ++k) {
      if (i + k >= text.size() || (static_cast<unsigned char>(text[i + k]) & 0xC0) != 0x80)
        return i;
    }
    i += more + 1;
  }
  return std::string_view::npos;
}

}  // namespace

const SourceFile* SourceSet::load(const std::string& path, Diagnostics& diagnostics) {
  if (std::filesystem::is_directory(path)) {
    diagnostics.add({add(path, ""), 0, 0}, "is a folder, not a file");
    return nullptr;
  }
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream content;
  if (stream) content << stream.rdbuf();
  if (!stream || stream.bad()) {
    diagnostics.add({add(path, ""), 0, 0}, "cannot read the file");
    return nullptr;
  }
  const SourceFile* file = add(path, content.str());
  const std::size_t bad = first_bad_byte(file->text());
  if (bad != std::string_view::npos) {
    Location where = file->at(bad);
    diagnostics.add({add(path, ""), where.line, where.column},
                    "not UTF-8 text: save the file as UTF-8");
    return nullptr;
  }
  return file;
}

}  // namespace lamella::codegen
