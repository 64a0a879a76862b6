// Errors name the operator that was called.
#include "lamella/dispatch/error_names.h"

#include <algorithm>
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

// Whether messages call the operator by this name: add_ by add, native_batch_norm by batch_norm,
// and any by aten::NAME where it has no kernel.
bool stands_for(std::string_view name, std::string_view op) {
  if (name.starts_with("aten::")) name.remove_prefix(6);
  name = name.substr(0, name.find('.'));
  while (name.starts_with('_')) name.remove_prefix(1);
  while (name.ends_with('_')) name.remove_suffix(1);
  while (op.ends_with('_')) op.remove_suffix(1);
  if (op == name) return true;
  return (op.starts_with('_') || op.starts_with("native_")) &&
         op.ends_with("_" + std::string(name));
}

// "expected ... to be floating point, got bool", "... got one expanded to [2, 3]; clone it first"
bool is_about_kind_or_memory(std::string_view text) {
  if (text.ends_with("; clone it first")) return true;
  std::string_view last = text.substr(text.rfind(' ') + 1);
  for (const char* start : {"bool", "int", "uint", "float", "bfloat", "complex", "cpu", "meta"}) {
    if (last.starts_with(start)) return true;
  }
  return false;
}

bool only_tensors(const std::vector<Argument>& arguments) {
  return std::all_of(arguments.begin(), arguments.end(),
                     [](const Argument& one) { return one.type.holds_tensor(); });
}

// Replaces the first argument that a message of the inner operator names by the outer operator's.
// That is the argument of the same name, or else the one in the same place if the arguments of both
// have the same types, as those of matmul and mm have; tensors beside numbers may be in another
// order. False if there is no such argument.
bool name_argument(const std::vector<OperatorEntry*>& outer,
                   const std::vector<OperatorEntry*>& inner, std::string* text) {
  size_t start = text->find('\'') + 1;
  size_t end = text->find('\'', start);
  if (start == 0 || end == std::string::npos) return true;
  const std::string name = text->substr(start, end - start);
  for (OperatorEntry* op : outer) {
    for (const Argument& argument : Registry::get().schema(op).arguments) {
      if (argument.name == name) return true;
    }
  }
  for (OperatorEntry* op : outer) {
    const auto& arguments = Registry::get().schema(op).arguments;
    for (OperatorEntry* part : inner) {
      const auto& parts = Registry::get().schema(part).arguments;
      bool alike = std::equal(
          arguments.begin(), arguments.end(), parts.begin(), parts.end(),
          [](const Argument& a, const Argument& b) { return a.type == b.type && !a.is_out(); });
      for (size_t i = 0; alike && i < parts.size(); ++i) {
        if (parts[i].name != name) continue;
        if (parts[i].type.holds_tensor() && !only_tensors(parts)) break;
        text->replace(start, end - start, arguments[i].name);
        return true;
      }
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
    // The innermost operator is the one whose argument the text is about.
    std::string inner;
    std::vector<OperatorEntry*> parts;
    std::string_view rest = text;
    while (size_t next = length_of_name(rest)) {
      const std::string one(rest.substr(0, next - 2));
      auto found = Registry::get().overloads("aten::" + one);
      if (found.empty()) break;
      inner = one;
      parts = std::move(found);
      text = rest;
      rest.remove_prefix(next);
    }
    // Names that are not an operator's are a backend's own, or a kernel's that refuses a dtype.
    if (parts.empty() && status != LAMELLA_NOT_IMPLEMENTED && !is_about_kind_or_memory(text)) {
      return status;
    }
    std::string said(rest);
    const bool is_own = stands_for(inner, name);
    if (!is_own && !parts.empty() &&
        !name_argument(Registry::get().overloads(called), parts, &said)) {
      said = text;
    }
    const std::string named = (is_own ? inner : std::string(name)) + ": " + said;
    return lamella_fail(status, named.data(), named.size());
  } catch (...) {
    return status;
  }
}

}  // namespace lamella
