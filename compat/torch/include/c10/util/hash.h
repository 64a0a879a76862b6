// c10::hash, c10::get_hash, c10::hash_combine.
#pragma once
#include <c10/lamella_names.h>
#include <torch/standard_headers.h>

namespace c10 {

inline size_t hash_combine(size_t seed, size_t value) {
  return seed ^ (value + 0x9e3779b9 + (seed << 6U) + (seed >> 2U));
}

template <class T>
struct hash;

template <class... T>
size_t get_hash(const T&... values) {
  size_t seed = 0;
  if constexpr (sizeof...(T) == 1) {
    return (hash<T>()(values), ...);
  } else {
    ((seed = hash_combine(seed, hash<T>()(values))), ...);
    return seed;
  }
}

// Types with neither std::hash nor a static member hash(const T&) are treated as ranges or tuples.
template <class T>
struct hash {
  size_t operator()(const T& value) const {
    if constexpr (requires { T::hash(value); }) {
      return static_cast<size_t>(T::hash(value));
    } else if constexpr (std::is_enum_v<T>) {
      return std::hash<std::underlying_type_t<T>>()(static_cast<std::underlying_type_t<T>>(value));
    } else if constexpr (requires { std::hash<T>()(value); }) {
      return std::hash<T>()(value);
    } else if constexpr (requires { value.begin() != value.end(); }) {
      size_t seed = 0;
      for (const auto& entry : value) seed = hash_combine(seed, get_hash(entry));
      return seed;
    } else {
      return std::apply([](const auto&... entries) { return get_hash(entries...); }, value);
    }
  }
};

template <class T>
using hash_t = hash<T>;

}  // namespace c10
