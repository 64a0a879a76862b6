// Op: a value of a computation under construction. Operand, Operands and Within: argument types of
// builder functions that also record the source location of the call.
//
// Note [Where]
//   A builder function takes one of its arguments (an op, a list of ops, or the builder) as a type
//   with an implicit conversion, whose default argument std::source_location::current() captures
//   the call site. So functions need no extra parameter, operators (a + b) have a location too, and
//   an error that Build() returns can still name the line that caused it.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <source_location>
#include <span>
#include <type_traits>
#include <utility>

namespace lamella::hlo {

class Builder;

// A non-owning array reference: std::span that can also be made from {a, b, c}.
template <class T>
class Span : public std::span<const T> {
 public:
  using std::span<const T>::span;
  Span() = default;
  Span(std::span<const T> other) : std::span<const T>(other) {}  // NOLINT
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Winit-list-lifetime"
  Span(std::initializer_list<T> list) : std::span<const T>(list.begin(), list.size()) {}
#pragma GCC diagnostic pop
};

class Op {
 public:
  // An uninitialized op.
  Op() = default;

  bool valid() const { return builder_ != nullptr && handle_ >= 0; }
  bool IsUninitialized() const { return builder_ == nullptr; }
  // NULL for an uninitialized op. For an op that could not be made, the builder with the error.
  Builder* builder() const { return builder_; }
  int64_t handle() const { return handle_; }
  bool IsIdenticalTo(const Op& other) const {
    return handle_ == other.handle_ && builder_ == other.builder_;
  }

 private:
  friend class Builder;
  friend class Emission;
  Op(int64_t handle, Builder* builder) : handle_(handle), builder_(builder) {}

  int64_t handle_ = -1;
  Builder* builder_ = nullptr;
};

// A source location. The file name is not copied.
struct Where {
  const char* file = "";
  uint32_t line = 0;
  Where() = default;
  Where(const char* f, uint32_t l) : file(f), line(l) {}
  Where(const std::source_location& at) : file(at.file_name()), line(at.line()) {}  // NOLINT
};

// An op argument with the location of the call.
struct Operand : Op {
  Where where;
  Operand(const Op& op, Where at = std::source_location::current())
      : Op(op), where(at) {}  // NOLINT
};
struct Operands : Span<Op> {
  Where where;
  Operands(std::initializer_list<Op> ops, Where at = std::source_location::current())
      : Span<Op>(ops), where(at) {}
  template <class R>
    requires(std::is_convertible_v<const R&, std::span<const Op>>)
  Operands(const R& ops, Where at = std::source_location::current())  // NOLINT
      : Span<Op>(ops), where(at) {}
};
struct Within {
  Builder* builder;
  Where where;
  Within(Builder* b, Where at = std::source_location::current())
      : builder(b), where(at) {}  // NOLINT
};

}  // namespace lamella::hlo
