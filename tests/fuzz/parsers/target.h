// The interface of the fuzz targets in this folder. The same targets run under libFuzzer
// (libfuzzer.cpp) and under our own driver (driver.cpp).
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

// Reads the bytes. Whatever they are, it returns: a crash, an error that is not expected or a
// result that does not hold what it must is a finding.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace lamella::fuzz {

// Inputs to begin with.
std::vector<std::string> seeds();
// Words that the format is made of.
std::vector<std::string> words();

// Ends the process, which the driver reports with the input.
[[noreturn]] void found(std::string_view what);

// Numbers near the ends of what sizes, strides and counts are kept in.
inline constexpr int64_t kHostile[] = {
    0,
    1,
    -1,
    2,
    7,
    64,
    255,
    INT32_MAX,
    INT32_MIN,
    int64_t{1} << 31,
    int64_t{1} << 32,
    int64_t{1} << 58,
    int64_t{1} << 60,
    (int64_t{1} << 61) + 1,
    int64_t{1} << 62,
    INT64_MAX - 1,
    INT64_MAX,
    INT64_MIN + 1,
    INT64_MIN,
};

// Takes an input apart; zeros come behind its end.
class Bytes {
 public:
  Bytes(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  bool empty() const { return size_ == 0; }
  uint8_t byte() { return take<uint8_t>(); }
  size_t below(size_t count) { return count == 0 ? 0 : byte() % count; }
  template <class T>
  T take() {
    T value{};
    size_t taken = sizeof(T) < size_ ? sizeof(T) : size_;
    std::memcpy(&value, data_, taken);
    data_ += taken;
    size_ -= taken;
    return value;
  }
  // Small most of the time, else hostile, else anything.
  int64_t number() {
    uint8_t kind = byte();
    if (kind < 160) return kind % 6;
    if (kind < 224) return kHostile[byte() % std::size(kHostile)];
    return take<int64_t>();
  }
  std::vector<int64_t> numbers(size_t count) {
    std::vector<int64_t> all(count);
    for (int64_t& one : all) one = number();
    return all;
  }
  std::string text(size_t most) {
    std::string all(below(most + 1), '\0');
    for (char& c : all) c = static_cast<char>(byte());
    return all;
  }

 private:
  const uint8_t* data_;
  size_t size_;
};

}  // namespace lamella::fuzz
