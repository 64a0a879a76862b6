// at::Dimname: the name of a dimension. Tensors have none here, so names can be made and not given.
#pragma once
#include <ATen/core/Tensor.h>

#include <cctype>
#include <optional>
#include <string>
#include <vector>

namespace c10 {
class Symbol {
 public:
  static Symbol dimname(std::string name) { return Symbol(std::move(name)); }
  static Symbol wildcard() { return Symbol("*"); }
  std::string toUnqualString() const { return name_; }
  bool operator==(const Symbol&) const = default;

 private:
  explicit Symbol(std::string name) : name_(std::move(name)) {}
  std::string name_;
};
}  // namespace c10
namespace at {
using c10::Symbol;
enum class NameType : uint8_t { BASIC, WILDCARD };

class Dimname {
 public:
  // Throws unless the name is "*" or an identifier.
  static Dimname fromSymbol(c10::Symbol symbol) {
    Dimname name(std::move(symbol));
    LAMELLA_CHECK(name.isWildcard() || isValidName(name.symbol_.toUnqualString()),
                  "Dimname: expected an identifier, got '", name.symbol_.toUnqualString(), "'");
    return name;
  }
  static bool isValidName(const std::string& name) {
    bool valid = !name.empty() && (name[0] < '0' || name[0] > '9');
    for (unsigned char c : name) valid = valid && (std::isalnum(c) || c == '_');
    return valid;
  }
  static Dimname wildcard() { return Dimname(c10::Symbol::wildcard()); }
  const c10::Symbol& symbol() const { return symbol_; }
  bool isWildcard() const { return symbol_ == c10::Symbol::wildcard(); }
  NameType type() const { return isWildcard() ? NameType::WILDCARD : NameType::BASIC; }
  // The name that stands for both, where one is a wildcard or they are equal.
  std::optional<Dimname> unify(const Dimname& other) const {
    if (other.isWildcard() || *this == other) return *this;
    return isWildcard() ? std::optional(other) : std::nullopt;
  }
  bool matches(const Dimname& other) const { return unify(other).has_value(); }
  bool operator==(const Dimname&) const = default;

 private:
  explicit Dimname(c10::Symbol symbol) : symbol_(std::move(symbol)) {}
  c10::Symbol symbol_;
};
using DimnameList = c10::ArrayRef<Dimname>;
}  // namespace at
