// NameTable: a hash table from names to small numbers, built at compile time. Internal to
// lamella/graph.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lamella::hlo {

inline constexpr uint32_t hash_of(std::string_view text) {
  uint32_t hash = 2166136261u;
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return hash ^ (hash >> 15);
}

// `Slots`: a power of two, at least twice the number of names.
template <size_t Slots, size_t N>
class NameTable {
 public:
  constexpr explicit NameTable(const std::array<std::string_view, N>& names) : names_(names) {
    static_assert((Slots & (Slots - 1)) == 0 && Slots >= 2 * N && N < 255);
    for (size_t i = 0; i < N; ++i) {
      size_t at = hash_of(names[i]) & (Slots - 1);
      while (slots_[at] != 0) at = (at + 1) & (Slots - 1);
      slots_[at] = static_cast<uint8_t>(i + 1);
    }
  }
  // The number of a name, or -1 if the table lacks it.
  constexpr int find(std::string_view name) const {
    for (size_t at = hash_of(name) & (Slots - 1); slots_[at] != 0; at = (at + 1) & (Slots - 1)) {
      if (names_[slots_[at] - 1u] == name) return slots_[at] - 1;
    }
    return -1;
  }
  constexpr std::string_view name(size_t i) const { return names_[i]; }

 private:
  std::array<std::string_view, N> names_;
  std::array<uint8_t, Slots> slots_{};
};

}  // namespace lamella::hlo
