// c10::List, and lists of any values.
#pragma once
#include <ATen/core/jit_type.h>

#include <optional>
#include <string>

template <>
struct lamella::ConstListEntry<std::optional<std::string>> {
  using type = std::optional<std::reference_wrapper<const std::string>>;
  LAMELLA_LAZY static type of(const std::optional<std::string>& text) {
    return text ? type(*text) : type();
  }
};
