// at::Dimname: the name of a dimension. Tensors have none here, so names can be made and not given.
#pragma once
#include <ATen/core/Tensor.h>

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
class Dimname {
 public:
  static Dimname fromSymbol(c10::Symbol symbol) { return Dimname(std::move(symbol)); }
  static Dimname wildcard() { return Dimname(c10::Symbol::wildcard()); }
  const c10::Symbol& symbol() const { return symbol_; }
  bool isWildcard() const { return symbol_ == c10::Symbol::wildcard(); }
  bool operator==(const Dimname&) const = default;

 private:
  explicit Dimname(c10::Symbol symbol) : symbol_(std::move(symbol)) {}
  c10::Symbol symbol_;
};
using DimnameList = c10::ArrayRef<Dimname>;
}  // namespace at
