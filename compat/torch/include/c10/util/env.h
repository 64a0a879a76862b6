// c10::utils::get_env, check_env, set_env.
#pragma once
#include <cstdlib>
#include <optional>
#include <string>

#include <c10/lamella_names.h>

namespace c10::utils {
inline std::optional<std::string> get_env(const char* name) noexcept {
  const char* value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}
inline bool has_env(const char* name) noexcept { return std::getenv(name) != nullptr; }
// True for "1", false for "0", nullopt if the variable is unset or has another value.
inline std::optional<bool> check_env(const char* name) {
  std::optional<std::string> value = get_env(name);
  return value == "1" || value == "0" ? std::optional<bool>(value == "1") : std::nullopt;
}
inline void set_env(const char* name, const char* value, bool overwrite = true) {
  ::setenv(name, value, static_cast<int>(overwrite));
}
}  // namespace c10::utils
