// YAML with positions: a file's text, its tree of nodes, and diagnostics that point into it.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lamella::codegen {

class SourceFile;

// A place in a file. Line and column count from 1, columns in characters; 0 is the file as a whole.
struct Location {
  const SourceFile* file = nullptr;
  int line = 0;
  int column = 0;
};

class SourceFile {
 public:
  // `text` must be UTF-8 for positions to make sense; a byte order mark is dropped.
  SourceFile(std::string path, std::string text);

  const std::string& path() const { return path_; }
  const std::string& text() const { return text_; }
  // Without its line end. Lines count from 1.
  std::string_view line(int number) const;
  int line_count() const { return static_cast<int>(line_starts_.size()); }
  // The place of byte `offset` of text().
  Location at(std::size_t offset) const;
  // The byte where the character of a place is, or the line's end before it.
  std::size_t byte_of(const Location& where) const;
  // Byte offset of a line's byte column, both from 0, as YAML parsers count.
  std::size_t offset_of(int line, int column) const;

 private:
  std::string path_;
  std::string text_;
  // Characters in front of byte `offset`.
  std::size_t characters(std::size_t offset) const;
  static constexpr std::size_t kStep = 256;

  std::vector<std::size_t> line_starts_;
  std::vector<std::size_t> characters_;  // in front of every kStep-th byte
};

struct Diagnostic {
  Location where;
  std::string message;
};

// Collects every error of a run.
class Diagnostics {
 public:
  void add(Location where, std::string message);
  bool empty() const { return items_.empty(); }
  const std::vector<Diagnostic>& items() const { return items_; }
  // By file (in the order first reported), line and column; without exact repetitions.
  void sort();
  // `FILE:LINE:COLUMN: error: message`, then the line at fault and a caret under the column.
  std::string str() const;

 private:
  std::vector<Diagnostic> items_;
};

struct YamlNode;
using YamlPtr = std::shared_ptr<const YamlNode>;

struct YamlNode {
  enum class Kind { kNull, kScalar, kSequence, kMap };

  Kind kind = Kind::kNull;
  Location where;
  std::string text;  // of a scalar
  std::vector<YamlPtr> items;
  std::vector<std::pair<YamlPtr, YamlPtr>> entries;  // of a map, repetitions included
  std::size_t raw = 0;                               // byte where it starts in the file

  bool is_scalar() const { return kind == Kind::kScalar; }
  bool is_map() const { return kind == Kind::kMap; }
  bool is_sequence() const { return kind == Kind::kSequence; }
  bool is_null() const { return kind == Kind::kNull; }
  // "a map", "a list", "nothing" or the quoted text, for messages.
  std::string describe() const;
  // The place in the file of byte `offset` of `text`, through quotes, escapes and folded lines.
  Location locate(std::size_t offset) const;
  // The same place as a byte of the file.
  std::size_t raw_offset(std::size_t offset) const;

  // The last result of raw_offset(), from which the next call starts if its offset is not smaller.
  mutable std::size_t known_offset = 0;
  mutable std::size_t known_raw = 0;  // 0: not computed yet
};

// Holds files for as long as locations point into them.
class SourceSet {
 public:
  // Reads a file; null, with a diagnostic, when it cannot be read or is not UTF-8 text.
  const SourceFile* load(const std::string& path, Diagnostics& diagnostics);
  const SourceFile* add(std::string path, std::string text);

 private:
  std::deque<SourceFile> files_;
};

// The entries of a file whose document is a list, in order. Where the file is not valid YAML, the
// error is reported and the entries around it are still read. Null for an empty entry.
std::vector<YamlPtr> read_entries(const SourceFile& file, Diagnostics& diagnostics);

}  // namespace lamella::codegen
