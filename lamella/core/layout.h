// Layout: how a tensor's elements are stored.
#pragma once
#include <cstdint>
#include <string>

#include "lamella/core/error.h"

namespace lamella {

enum class Layout : int8_t {
  Strided = 0,
  Sparse = 1,
  SparseCsr = 2,
  Mkldnn = 3,
  SparseCsc = 4,
  SparseBsr = 5,
  SparseBsc = 6,
  Jagged = 7,
  NumOptions
};
LAMELLA_HIDDEN inline constexpr Layout kStrided = Layout::Strided;

inline constexpr const char* toString(Layout layout) {
  constexpr const char* names[] = {"Strided",   "Sparse",    "SparseCsr", "Mkldnn",
                                   "SparseCsc", "SparseBsr", "SparseBsc", "Jagged"};
  auto index = static_cast<uint8_t>(layout);
  return index < 8 ? names[index] : "Unknown";
}
inline void append(std::string& out, Layout layout) { append(out, toString(layout)); }

}  // namespace lamella
