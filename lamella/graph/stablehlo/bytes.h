// Bytes: reads the numbers of MLIR's bytecode. Internal to lamella/graph/stablehlo.
#pragma once
#include <bit>

#include "lamella/graph/stablehlo/operation.h"

namespace lamella::hlo::stablehlo {

class Bytes {
 public:
  Bytes(const Source* source, size_t begin, size_t end) : source_(source), at_(begin), end_(end) {}

  size_t position() const { return at_; }
  size_t left() const { return end_ - at_; }
  bool at_end() const { return at_ == end_; }
  template <class... Parts>
  [[noreturn]] LAMELLA_COLD void fail(const Parts&... parts) const {
    source_->fail(at_, parts...);
  }

  uint8_t byte() { return static_cast<uint8_t>(raw(1)[0]); }
  std::string_view raw(uint64_t count) {
    if (count > left()) fail("expected ", count, " bytes more, got ", left());
    std::string_view found = source_->data.substr(at_, count);
    at_ += count;
    return found;
  }
  // A number of 1 to 9 bytes: zeros below the lowest bit that is set count the bytes that follow.
  uint64_t number() {
    auto first = static_cast<uint8_t>(raw(1)[0]);
    if ((first & 1) != 0) return first >> 1;
    const int more = first == 0 ? 8 : std::countr_zero(first);
    std::string_view rest = raw(static_cast<uint64_t>(more));
    uint64_t value = 0;
    for (int i = more; i-- > 0;)
      value = value << 8 | static_cast<uint8_t>(rest[static_cast<size_t>(i)]);
    if (first == 0) return value;
    return value << (7 - more) | static_cast<uint64_t>(first >> (more + 1));
  }
  int64_t signed_number() {
    uint64_t value = number();
    return static_cast<int64_t>(value >> 1 ^ (~(value & 1) + 1));
  }
  // A number whose lowest bit is a flag.
  uint64_t flagged(bool* flag) {
    uint64_t value = number();
    *flag = (value & 1) != 0;
    return value >> 1;
  }
  // The number of items of a list; each takes a byte at least.
  size_t count() { return count_of(number()); }
  size_t count_of(uint64_t number) {
    if (number > left()) fail("expected a list within the input, got ", number, " items");
    return static_cast<size_t>(number);
  }
  // An integer whose type has this many bits, its sign extended if it has one.
  uint64_t integer(int bits) {
    if (bits <= 8) return byte();
    if (bits <= 64) return static_cast<uint64_t>(signed_number());
    fail("expected an integer of at most 64 bits, got ", bits);
  }
  std::vector<int64_t> signed_numbers() {
    std::vector<int64_t> all(count());
    for (int64_t& one : all) one = signed_number();
    return all;
  }

 private:
  const Source* source_;
  size_t at_;
  size_t end_;
};

}  // namespace lamella::hlo::stablehlo
