// ZIP archives (PKWARE's APPNOTE 6.3) as far as PyTorch's files need them: uncompressed entries, in
// archives of less than 4 GiB.
#pragma once
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <string_view>

#include "lamella/core/error.h"

namespace lamella::serialize::detail {

// CRC-32 of ISO 3309, as ZIP uses it.
LAMELLA_LAZY uint32_t checksum(std::string_view bytes) {
  uint32_t table[256];
  for (uint32_t i = 0; i < 256; ++i) {
    table[i] = i;
    for (int bit = 0; bit < 8; ++bit) {
      table[i] = (table[i] >> 1) ^ ((table[i] & 1) != 0 ? 0xedb88320u : 0u);
    }
  }
  uint32_t sum = ~0u;
  for (char c : bytes) sum = (sum >> 8) ^ table[(sum ^ static_cast<uint8_t>(c)) & 0xff];
  return ~sum;
}

LAMELLA_LAZY void put(std::string& out, uint64_t number, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(number >> (8 * i));
}
// A little-endian number; 0 where the bytes end before it does.
LAMELLA_LAZY uint64_t number_at(std::string_view bytes, size_t at, int count) {
  if (at > bytes.size() || bytes.size() - at < static_cast<size_t>(count)) return 0;
  uint64_t number = 0;
  for (int i = 0; i < count; ++i) {
    number |= uint64_t{static_cast<uint8_t>(bytes[at + static_cast<size_t>(i)])} << (8 * i);
  }
  return number;
}

LAMELLA_LAZY class ZipWriterOf {
 public:
  // Contents are aligned to 64 bytes, so that a reader may map them.
  void add(const std::string& name, std::string_view contents) {
    constexpr uint64_t kMost = 0xffffffff;
    LAMELLA_CHECK(contents.size() < kMost && bytes_.size() + contents.size() < kMost,
                  "save: expected an archive of less than 4 GiB");
    const auto begin = bytes_.size();
    const size_t unpadded = begin + 30 + name.size() + 4;
    const size_t padding = (64 - unpadded % 64) % 64;
    std::string facts;  // the fields that both headers share
    put(facts, 0, 2);   // method: stored
    put(facts, 0, 4);   // no time stamp, so that equal contents make equal files
    put(facts, checksum(contents), 4);
    put(facts, contents.size(), 4);
    put(facts, contents.size(), 4);
    put(facts, name.size(), 2);
    put(bytes_, 0x04034b50, 4);
    put(bytes_, 20, 2);
    put(bytes_, 0, 2);
    bytes_ += facts;
    put(bytes_, 4 + padding, 2);
    bytes_ += name;
    bytes_ += "FB";
    put(bytes_, padding, 2);
    bytes_.append(padding, 'Z');
    bytes_ += contents;
    put(directory_, 0x02014b50, 4);
    put(directory_, 20, 2);
    put(directory_, 20, 2);
    put(directory_, 0, 2);
    directory_ += facts;
    directory_.append(12, '\0');  // no extra field, comment, disk, attributes
    put(directory_, begin, 4);
    directory_ += name;
    ++count_;
  }
  std::string finish() {
    const auto begin = bytes_.size();
    bytes_ += directory_;
    put(bytes_, 0x06054b50, 4);
    put(bytes_, 0, 4);
    put(bytes_, count_, 2);
    put(bytes_, count_, 2);
    put(bytes_, directory_.size(), 4);
    put(bytes_, begin, 4);
    put(bytes_, 0, 2);
    return std::move(bytes_);
  }

 private:
  std::string bytes_, directory_;
  uint64_t count_ = 0;
};

// The entries by name, without the folder that contains them all. Error if the bytes are not such
// an archive; get() refuses compressed entries.
LAMELLA_LAZY class ZipReaderOf {
 public:
  explicit ZipReaderOf(std::string_view bytes) : bytes_(bytes) {
    size_t end = bytes.rfind(std::string_view("PK\x05\x06", 4));
    LAMELLA_CHECK(end != std::string_view::npos && bytes.size() - end >= 22,
                  "load: expected a file that save() wrote, got another one");
    const uint64_t count = number_at(bytes, end + 10, 2);
    size_t at = number_at(bytes, end + 16, 4);
    for (uint64_t i = 0; i < count; ++i) {
      LAMELLA_CHECK(number_at(bytes, at, 4) == 0x02014b50, kDamaged);
      const size_t name_size = number_at(bytes, at + 28, 2);
      const size_t others = number_at(bytes, at + 30, 2) + number_at(bytes, at + 32, 2);
      LAMELLA_CHECK(at + 46 + name_size <= bytes.size(), kDamaged);
      std::string_view name = bytes.substr(at + 46, name_size);
      name.remove_prefix(std::min(name.size(), name.find('/') + 1));
      entries_[std::string(name)] = {number_at(bytes, at + 10, 2), number_at(bytes, at + 20, 4),
                                     number_at(bytes, at + 42, 4)};
      at += 46 + name_size + others;
    }
  }
  bool has(const std::string& name) const { return entries_.count(name) != 0; }
  std::string_view get(const std::string& name) const {
    auto found = entries_.find(name);
    LAMELLA_CHECK(found != entries_.end(), "load: expected the archive to have '", name,
                  "', got none");
    const Entry& entry = found->second;
    LAMELLA_CHECK(entry.method == 0, "load: expected '", name,
                  "' to be stored as it is, got it compressed");
    const size_t at = entry.begin;
    LAMELLA_CHECK(number_at(bytes_, at, 4) == 0x04034b50, kDamaged);
    const size_t contents = at + 30 + number_at(bytes_, at + 26, 2) + number_at(bytes_, at + 28, 2);
    LAMELLA_CHECK(contents <= bytes_.size() && bytes_.size() - contents >= entry.size, kDamaged);
    return bytes_.substr(contents, entry.size);
  }

 private:
  static constexpr const char* kDamaged =
      "load: expected an archive that is whole, got a damaged one";
  struct Entry {
    uint64_t method, size, begin;
  };
  std::string_view bytes_;
  std::map<std::string, Entry> entries_;
};

}  // namespace lamella::serialize::detail
