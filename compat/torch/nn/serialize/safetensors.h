// Files of the safetensors format, which Python's lamella.save() writes: the length of a header
// (8 bytes, little endian), the header as JSON, and the tensors' bytes without gaps.
#pragma once
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>

#include "lamella/nn/serialize/tree.h"
#include "lamella/nn/serialize/zip.h"

namespace lamella::serialize::detail {

// The name in the format and the type of each dtype that it has.
struct FormatType {
  ScalarType dtype;
  std::string_view name;
};
inline constexpr FormatType kFormatTypes[] = {
#define LAMELLA_SCALAR_TYPE(cpp, Name, number, text, code, format, safetensors) \
  {ScalarType::Name, safetensors},
#include "lamella/core/scalar_type.def"
};
inline constexpr size_t kLongestHeader = 100'000'000;

// Reads the JSON that a header consists of, and no other: objects of texts and lists of counts.
LAMELLA_LAZY class HeaderReaderOf {
 public:
  explicit HeaderReaderOf(std::string_view text) : text_(text) {}

  // Calls entry(name) for each name of an object; `entry` reads the value.
  template <class F>
  void object(F&& entry) {
    expect('{');
    std::map<std::string, bool> names;
    for (bool first = true; !take('}'); first = false) {
      if (!first) expect(',');
      std::string name = text();
      expect(':');
      if (!names.emplace(name, true).second) fail("names that differ", '\'' + name + "' twice");
      entry(name);
    }
  }
  std::string text() {
    expect('"');
    std::string all;
    while (next() != '"') {
      if (static_cast<unsigned char>(next()) < 0x20) fail("a text", "a control character");
      if (next() != '\\') {
        all += text_[at_++];
        continue;
      }
      ++at_;
      const size_t escape = std::string_view("\"\\/bfnrt").find(next());
      if (escape != std::string_view::npos) {
        all += "\"\\/\b\f\n\r\t"[escape];
        ++at_;
      } else {
        expect('u');
        code_point(all);
      }
    }
    ++at_;
    return all;
  }
  std::vector<int64_t> counts() {
    std::vector<int64_t> all;
    expect('[');
    while (!take(']')) {
      if (!all.empty()) expect(',');
      skip();
      const size_t begin = at_;
      int64_t count = 0;
      for (; next() >= '0' && next() <= '9'; ++at_) {
        if (__builtin_mul_overflow(count, 10, &count) ||
            __builtin_add_overflow(count, next() - '0', &count)) {
          fail("a count within int64", "a larger one");
        }
      }
      const bool padded = at_ - begin > 1 && text_[begin] == '0';
      if (at_ == begin || padded) fail("a count", "'" + std::string(1, text_[begin]) + "'");
      all.push_back(count);
    }
    return all;
  }
  void end() {
    skip();
    if (at_ != text_.size()) fail("the end of the header", "more");
  }
  [[noreturn]] void fail(const std::string& expected, const std::string& got) const {
    throw ValueError(
        str("load: expected ", expected, " at byte ", at_, " of the header, got ", got));
  }

 private:
  char next() const {
    if (at_ == text_.size()) fail("JSON that is whole", "its end");
    return text_[at_];
  }
  void skip() {
    while (at_ < text_.size() &&
           std::string_view(" \t\r\n").find(text_[at_]) != std::string::npos) {
      ++at_;
    }
  }
  bool take(char c) {
    skip();
    if (next() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail(str('\'', c, '\''), str('\'', next(), '\''));
  }
  uint32_t four_digits() {
    uint32_t code = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      const size_t digit = std::string_view("0123456789abcdef").find(next() | 0x20);
      if (digit == std::string_view::npos) fail("four hexadecimal digits", "another character");
      code = code * 16 + static_cast<uint32_t>(digit);
    }
    return code;
  }
  void code_point(std::string& to) {
    uint32_t code = four_digits();
    if (code >= 0xd800 && code < 0xdc00 && text_.substr(at_, 2) == "\\u") {
      at_ += 2;
      const uint32_t low = four_digits();
      if (low < 0xdc00 || low > 0xdfff) fail("the second half of a character", "another one");
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    } else if (code >= 0xd800 && code < 0xe000) {
      fail("a character", "half of one");
    }
    auto put = [&](uint32_t lead, int shift) {
      to += static_cast<char>(lead | (code >> shift));
      for (; (shift -= 6) >= 0;) to += static_cast<char>(0x80 | ((code >> shift) & 0x3f));
    };
    code < 0x80      ? put(0, 0)
    : code < 0x800   ? put(0xc0, 6)
    : code < 0x10000 ? put(0xe0, 12)
                     : put(0xf0, 18);
  }

  std::string_view text_;
  size_t at_ = 0;
};

// Whether text is UTF-8: whole characters, none of them longer than need be or half of a pair.
LAMELLA_LAZY bool is_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const auto lead = static_cast<uint8_t>(text[at++]);
    const int more = lead < 0x80 ? 0 : lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
    if (more == 0) continue;
    uint32_t code = lead & (0x3f >> more);
    for (int i = 0; i < more; ++i, ++at) {
      if (at == text.size() || (text[at] & 0xc0) != 0x80) return false;
      code = code << 6 | (text[at] & 0x3f);
    }
    constexpr uint32_t kLeast[] = {0, 0x80, 0x800, 0x10000};
    const bool half = code >= 0xd800 && code < 0xe000;
    if (lead < 0xc0 || lead > 0xf7 || code < kLeast[more] || half || code > 0x10ffff) return false;
  }
  return true;
}
// Whether bytes begin as such a file does, where archives have "PK".
inline bool is_safetensors(std::string_view bytes) { return bytes.size() > 8 && bytes[8] == '{'; }

// The tensors of a file by name; ValueError for bytes that break a rule of the format.
LAMELLA_LAZY std::map<std::string, Tensor> read_safetensors(std::string_view bytes) {
  auto check = [](bool right, const auto& expected, const auto& got) {
    if (!right) throw ValueError(str("load: expected ", expected, ", got ", got));
  };
  check(bytes.size() >= 8, "a header", str(bytes.size(), " bytes"));
  const uint64_t length = number_at(bytes, 0, 8);
  check(length <= std::min(kLongestHeader, bytes.size() - 8),
        str("a header within ", bytes.size(), " bytes"), str("one of ", length, " bytes"));
  check(is_utf8(bytes.substr(8, length)), "a header of UTF-8", "other bytes");
  struct Entry {
    std::string name;
    const FormatType* type = nullptr;
    std::vector<int64_t> shape, place;
  };
  std::vector<Entry> entries;
  HeaderReaderOf<lazy_> header(bytes.substr(8, length));
  header.object([&](const std::string& name) {
    if (name == "__metadata__") return header.object([&](const std::string&) { header.text(); });
    Entry entry;
    entry.name = name;
    int fields = 0;
    header.object([&](const std::string& field) {
      ++fields;
      if (field == "dtype") {
        const std::string dtype = header.text();
        for (const FormatType& type : kFormatTypes) {
          if (!dtype.empty() && type.name == dtype) entry.type = &type;
        }
        check(entry.type != nullptr, str("a known dtype of '", name, "'"), str('\'', dtype, '\''));
      } else if (field == "shape") {
        entry.shape = header.counts();
      } else if (field == "data_offsets") {
        entry.place = header.counts();
      } else {
        header.fail("'dtype', 'shape' or 'data_offsets'", str('\'', field, '\''));
      }
    });
    check(fields == 3 && entry.place.size() == 2,
          str("a dtype, a shape and two offsets of '", name, '\''), "others");
    entries.push_back(std::move(entry));
  });
  header.end();
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.place < b.place; });
  const size_t begin = 8 + length;
  int64_t reached = 0;
  std::map<std::string, Tensor> tensors;
  for (const Entry& entry : entries) {
    check(entry.place[0] == reached, str('\'', entry.name, "' at byte ", reached), entry.place[0]);
    int64_t size = static_cast<int64_t>(element_size(entry.type->dtype));
    bool fits = true;
    for (int64_t each : entry.shape) fits = fits && !__builtin_mul_overflow(size, each, &size);
    check(fits && entry.place[1] - reached == size,
          fits ? str(size, " bytes for '", entry.name, '\'')
               : str("a size of '", entry.name, "' within int64"),
          str(entry.place[1] - reached));
    check(static_cast<uint64_t>(size) <= bytes.size() - begin - static_cast<uint64_t>(reached),
          str("a file of ", begin + static_cast<uint64_t>(entry.place[1]), " bytes"), bytes.size());
    Tensor tensor = lamella::empty(entry.shape, TensorOptions().dtype(entry.type->dtype));
    if (size != 0) {
      std::memcpy(tensor.mutable_data_ptr(), bytes.data() + begin + reached,
                  static_cast<size_t>(size));
    }
    reached = entry.place[1];
    tensors.emplace(entry.name, std::move(tensor));
  }
  const uint64_t whole = begin + static_cast<uint64_t>(reached);
  check(whole == bytes.size(), str("a file of ", whole, " bytes"), bytes.size());
  return tensors;
}

// The tensors as values of an archive: parts of a name before a dot or slash are archives inside,
// and a file of one tensor without a name has it as "0", as files of save(tensor) do.
LAMELLA_LAZY std::shared_ptr<ArchiveTreeOf<lazy_>> safetensors_tree(std::string_view bytes) {
  auto tree = std::make_shared<ArchiveTreeOf<lazy_>>();
  for (auto& [name, tensor] : read_safetensors(bytes)) {
    std::string last = name.empty() ? "0" : name;
    auto* to = tree->place(&last, "./");
    to->entries.push_back({last, ArchiveTreeOf<lazy_>::Kind::kAttribute, IValue(tensor), {}});
  }
  return tree;
}

LAMELLA_LAZY std::string quoted_json(const std::string& text) {
  std::string all = "\"";
  for (char c : text) {
    const size_t escape = std::string_view("\"\\\b\f\n\r\t").find(c);
    if (escape != std::string_view::npos) {
      all += str('\\', "\"\\bfnrt"[escape]);
    } else if (static_cast<unsigned char>(c) < 0x20) {
      all += str("\\u00", c < 16 ? '0' : '1', "0123456789abcdef"[c & 15]);
    } else {
      all += c;
    }
  }
  return all + '"';
}

}  // namespace lamella::serialize::detail

namespace lamella {

// The tensors of a safetensors file by name, as Python's lamella.load_file().
LAMELLA_LAZY std::map<std::string, Tensor> load_file(const std::string& filename) {
  std::ifstream file(filename, std::ios::binary);
  LAMELLA_CHECK(file, "load: expected a file '", filename, "', got none that can be read");
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  return serialize::detail::read_safetensors(bytes);
}

// Writes tensors by name, as Python's lamella.save_file(), to a temporary file that replaces
// `filename` when it is complete. metadata: further text by key.
LAMELLA_LAZY void save_file(const std::map<std::string, Tensor>& tensors,
                            const std::string& filename,
                            const std::map<std::string, std::string>& metadata = {}) {
  using namespace serialize::detail;
  struct Row {
    const std::string* name;
    std::string_view type;
    Tensor tensor;
  };
  std::vector<Row> rows;
  for (const auto& [name, tensor] : tensors) {
    LAMELLA_CHECK(name != "__metadata__", "save_file: expected names of tensors, got '", name, "'");
    LAMELLA_CHECK(tensor.defined(), "save_file: expected '", name,
                  "' to be defined, got an undefined tensor");
    std::string_view type;
    for (const FormatType& each : kFormatTypes) {
      if (each.dtype == tensor.scalar_type()) type = each.name;
    }
    LAMELLA_CHECK_TYPE(!type.empty(), "save_file: expected '", name,
                       "' to have a dtype of the format, got ", tensor.scalar_type());
    rows.push_back({&name, type, tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()});
  }
  // Tensors with wide elements come first, so that each tensor is aligned to its element size.
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return a.tensor.element_size() > b.tensor.element_size();
  });
  std::string header = "{";
  auto separate = [&header] { header += header.size() == 1 ? "" : ","; };
  if (!metadata.empty()) {
    header += "\"__metadata__\":{";
    bool first = true;
    for (const auto& [key, text] : metadata) {
      header += str(first ? "" : ",", quoted_json(key), ':', quoted_json(text));
      first = false;
    }
    header += '}';
  }
  uint64_t place = 0;
  for (const Row& row : rows) {
    separate();
    header += str(quoted_json(*row.name), ":{\"dtype\":\"", row.type, "\",\"shape\":[");
    for (int64_t d = 0; d < row.tensor.dim(); ++d) {
      header += str(d == 0 ? "" : ",", row.tensor.size(d));
    }
    const uint64_t end = place + row.tensor.nbytes();
    header += str("],\"data_offsets\":[", place, ',', end, "]}");
    place = end;
  }
  header += '}';
  header.append((8 - header.size() % 8) % 8, ' ');
  const std::string partial = filename + ".partial";
  std::ofstream file(partial, std::ios::binary | std::ios::trunc);
  std::string length;
  put(length, header.size(), 8);
  file << length << header;
  for (const Row& row : rows) {
    file.write(static_cast<const char*>(row.tensor.const_data_ptr()),
               static_cast<std::streamsize>(row.tensor.nbytes()));
  }
  file.close();
  const bool written = file && std::rename(partial.c_str(), filename.c_str()) == 0;
  if (!written) std::remove(partial.c_str());
  LAMELLA_CHECK(written, "save_file: expected to write '", filename, "'");
}

}  // namespace lamella
