// Errors name the operator that was called.
#include "lamella/dispatch/error_names.h"

#include <cstring>

#include "lamella/dispatch/registry.h"

namespace lamella {
namespace {

constexpr std::string_view kNameCharacters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:<>";

size_t length_of_name(std::string_view text) {
  size_t end = text.find_first_not_of(kNameCharacters);
  bool named =
      end != 0 && end != std::string_view::npos && text[end] == ' ' && text[end - 1] == ':';
  return named ? end + 1 : 0;
}

// Whether a name is the operator's in public: add of add_, batch_norm of native_batch_norm.
bool stands_for(std::string_view name, std::string_view op) {
  while (name.starts_with('_')) name.remove_prefix(1);
  while (name.ends_with('_')) name.remove_suffix(1);
  while (op.ends_with('_')) op.remove_suffix(1);
  if (op == name) return true;
  return (op.starts_with('_') || op.starts_with("native_")) &&
         op.ends_with("_" + std::string(name));
}

// Whether the argument that a message names first, if any, is one of an overload's.
bool is_about_arguments_of(const std::vector<OperatorEntry*>& overloads, std::string_view text) {
  size_t start = text.find('\'') + 1;
  size_t end = text.find('\'', start);
  if (start == 0 || end == std::string_view::npos) return true;
  for (OperatorEntry* op : overloads) {
    for (const Argument& argument : Registry::get().schema(op).arguments) {
      if (argument.name == text.substr(start, end - start)) return true;
    }
  }
  return false;
}

}  // namespace

size_t length_of_names(std::string_view text) {
  size_t all = 0;
  while (size_t one = length_of_name(text.substr(all))) all += one;
  return all;
}

lamella_status name_error(lamella_status status, const char* op) noexcept {
  if (std::strncmp(op, "aten::", 6) != 0) return status;
  if (status == LAMELLA_FOREIGN_ERROR || status == LAMELLA_INTERNAL_ERROR) return status;
  try {
    const std::string held = lamella_error_text();
    std::string_view text = held, called = op;
    called = called.substr(0, called.find('.'));
    std::string_view name = called.substr(called.rfind(':') + 1);
    size_t length = length_of_name(text);
    if (length == 0 || stands_for(text.substr(0, length - 2), name)) return status;
    // The innermost name says which operator's argument it is.
    while (size_t next = length_of_name(text.substr(length))) {
      text.remove_prefix(length);
      length = next;
    }
    const std::string inner(text.substr(0, length - 2));
    if (Registry::get().overloads("aten::" + inner).empty()) return status;
    const bool is_own = stands_for(inner, name);
    if (is_own || is_about_arguments_of(Registry::get().overloads(called), text)) {
      text.remove_prefix(length);
    }
    const std::string named = (is_own ? inner : std::string(name)) + ": " + std::string(text);
    return lamella_fail(status, named.data(), named.size());
  } catch (...) {
    return status;
  }
}

}  // namespace lamella
