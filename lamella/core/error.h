// Errors: the exception types, the checks that throw them, and their passage through the C ABI.
//
// Note [User mistakes and bugs]
//   LAMELLA_CHECK and its variants report a mistake of the caller. The text begins with the
//   operator, names the argument and says expected and got. LAMELLA_INTERNAL_ASSERT reports a bug
//   in Lamella and asks the user to report it. The code that builds messages stays out of line.
#pragma once
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "lamella/abi/abi.h"
#include "lamella/core/macros.h"

namespace lamella {

// ---- Text ------------------------------------------------------------------------------------

// append(out, x) writes x at the end of out. A type joins in with its own overload in its own
// namespace. Numbers print as %g does, booleans as true and false, lists as [1, 2].
namespace detail {
// `text` must not point into `out`. Cheaper to compile than std::string::append, whose overloads
// test every argument for conversion to string_view.
LAMELLA_COLD inline void append_bytes(std::string& out, const char* text, size_t size) {
  if (size == 0) return;
  size_t end = out.size();
  out.resize(end + size);
  __builtin_memcpy(out.data() + end, text, size);
}
}  // namespace detail
inline void append(std::string& out, const char* text) {
  if (text == nullptr) text = "(null)";
  detail::append_bytes(out, text, __builtin_strlen(text));
}
inline void append(std::string& out, std::string_view text) {
  detail::append_bytes(out, text.data(), text.size());
}
inline void append(std::string& out, const std::string& text) {
  detail::append_bytes(out, text.data(), text.size());
}
inline void append(std::string& out, char c) { out.push_back(c); }
inline void append(std::string& out, bool value) { append(out, value ? "true" : "false"); }
inline void append(std::string& out, std::nullopt_t) { append(out, "None"); }

namespace detail {
LAMELLA_COLD inline void append_unsigned(std::string& out, unsigned long long value,
                                         bool negative) {
  char buffer[24];
  char* end = buffer + sizeof(buffer);
  char* p = end;
  do {
    *--p = static_cast<char>('0' + value % 10);
    value /= 10;
  } while (value != 0);
  if (negative) *--p = '-';
  append_bytes(out, p, static_cast<size_t>(end - p));
}
LAMELLA_COLD inline void append_double(std::string& out, double value) {
  char buffer[40];
  int n = __builtin_snprintf(buffer, sizeof(buffer), "%g", value);
  if (n > 0) append_bytes(out, buffer, static_cast<size_t>(n));
}
}  // namespace detail

template <class T>
  requires(detail::Arithmetic<T> || detail::Enum<T>)
inline void append(std::string& out, T value) {
  if constexpr (detail::Enum<T>) {
    append(out, static_cast<long long>(value));
  } else if constexpr (detail::has_fractions<T>) {
    detail::append_double(out, static_cast<double>(value));
  } else if constexpr (detail::has_negatives<T>) {
    auto wide = static_cast<long long>(value);
    auto magnitude = static_cast<unsigned long long>(wide);
    detail::append_unsigned(out, wide < 0 ? 0 - magnitude : magnitude, wide < 0);
  } else {
    detail::append_unsigned(out, value, false);
  }
}

namespace detail {
template <class Iterator>
void append_range(std::string& out, Iterator first, Iterator last);
}

template <class T>
inline void append(std::string& out, const std::vector<T>& list) {
  detail::append_range(out, list.begin(), list.end());
}
template <class T>
inline void append(std::string& out, const std::optional<T>& value) {
  if (value.has_value()) {
    append(out, *value);
  } else {
    append(out, "None");
  }
}

namespace detail {
template <class Iterator>
void append_range(std::string& out, Iterator first, Iterator last) {
  out.push_back('[');
  for (Iterator it = first; it != last; ++it) {
    if (it != first) append(out, ", ");
    append(out, *it);
  }
  out.push_back(']');
}
}  // namespace detail

namespace detail {
// Note [Parts of a text]
//   Code that may fail outweighs the code that works where each message is put together inline. So
//   a message is a list of parts, each a value and the function that appends values of its type,
//   and one function for all messages puts the list together.
struct Part {
  void (*append)(std::string& out, const void* value);
  const void* value;
};
// For types that have operator<< but no append(); the caller must include <sstream>.
template <class T>
LAMELLA_COLD void append_streamed(std::string& out, const T& part) {
  typename Later<T, std::ostringstream>::type stream;
  stream << part;
  out += stream.str();
}
template <class T>
LAMELLA_COLD void append_part(std::string& out, const void* value) {
  const T& part = *static_cast<const T*>(value);
  if constexpr (requires { append(out, part); }) {
    append(out, part);
  } else {
    append_streamed(out, part);
  }
}
LAMELLA_LAZY LAMELLA_COLD void append_text(std::string& out, const void* text) {
  append(out, static_cast<const char*>(text));
}
template <class T>
Part part_of(const T& value) {
  return {&append_part<T>, &value};
}
LAMELLA_LAZY inline Part part_of(const char* text) { return {&append_text<>, text}; }

LAMELLA_LAZY LAMELLA_NOINLINE std::string join_parts(const Part* parts, size_t count) {
  std::string out;
  for (size_t i = 0; i < count; ++i) parts[i].append(out, parts[i].value);
  return out;
}
}  // namespace detail

// The texts of all parts, one after the other.
template <class... A>
inline std::string str(const A&... parts) {
  const detail::Part list[] = {detail::part_of(parts)..., {nullptr, nullptr}};
  return detail::join_parts(list, sizeof...(A));
}

// ---- Exceptions ------------------------------------------------------------------------------

// The base of all of Lamella's exceptions; thrown itself for a mistake of the caller. It derives
// from std::runtime_error, whose members are compiled once, in the standard library.
class LAMELLA_PUBLIC Error : public std::runtime_error {
 public:
  explicit Error(const char* message) : Error(LAMELLA_ERROR, message) {}
  template <class Traits, class A>
  explicit Error(const std::basic_string<char, Traits, A>& message) : Error(message.c_str()) {}
  // Errors keep no backtrace, so the text behind a shared pointer to one is never computed.
  template <template <class> class Pointer, class Backtrace>
  Error(const std::string& message, const Pointer<Backtrace>&) : Error(message.c_str()) {}
  LAMELLA_LAZY std::string msg() const { return what(); }
  // Writes a line below the message.
  LAMELLA_LAZY void add_context(const std::string& line) {
    static_cast<std::runtime_error&>(*this) = std::runtime_error(msg() + "\n  " + line);
  }
  // Defined by the headers with PyTorch's names, which add PyTorch's words to the text.
  LAMELLA_LAZY const char* what_without_backtrace() const noexcept;
  // LAMELLA_ERROR, LAMELLA_INDEX_ERROR, ...
  lamella_status status() const noexcept { return status_; }

 protected:
  Error(lamella_status status, const char* message)
      : std::runtime_error(message), status_(status) {}

 private:
  lamella_status status_;
};

#define LAMELLA_ERROR_CLASS(Name, code)                                                         \
  class LAMELLA_PUBLIC Name : public Error {                                                    \
   public:                                                                                      \
    explicit Name(const char* message) : Error(code, message) {}                                \
    template <class Traits, class A>                                                            \
    explicit Name(const std::basic_string<char, Traits, A>& message) : Name(message.c_str()) {} \
  };
LAMELLA_ERROR_CLASS(IndexError, LAMELLA_INDEX_ERROR)
LAMELLA_ERROR_CLASS(ValueError, LAMELLA_VALUE_ERROR)
LAMELLA_ERROR_CLASS(TypeError, LAMELLA_TYPE_ERROR)
LAMELLA_ERROR_CLASS(NotImplementedError, LAMELLA_NOT_IMPLEMENTED)
LAMELLA_ERROR_CLASS(OutOfMemoryError, LAMELLA_OUT_OF_MEMORY)
LAMELLA_ERROR_CLASS(LinAlgError, LAMELLA_LINALG_ERROR)
LAMELLA_ERROR_CLASS(InternalError, LAMELLA_INTERNAL_ERROR)
// Stands for an exception that is pending in another language (a Python error).
LAMELLA_ERROR_CLASS(ForeignError, LAMELLA_FOREIGN_ERROR)
#undef LAMELLA_ERROR_CLASS

// ---- Across the C ABI ------------------------------------------------------------------------

namespace detail {

// Throws the error that a failed call stored in this thread's error text.
[[noreturn]] LAMELLA_COLD inline void throw_status(lamella_status status) {
  const char* text = lamella_error_text();
  switch (status) {
    case LAMELLA_INDEX_ERROR:
      throw IndexError(text);
    case LAMELLA_VALUE_ERROR:
      throw ValueError(text);
    case LAMELLA_TYPE_ERROR:
      throw TypeError(text);
    case LAMELLA_NOT_IMPLEMENTED:
      throw NotImplementedError(text);
    case LAMELLA_OUT_OF_MEMORY:
      throw OutOfMemoryError(text);
    case LAMELLA_INTERNAL_ERROR:
      throw InternalError(text);
    case LAMELLA_FOREIGN_ERROR:
      throw ForeignError(text);
    case LAMELLA_LINALG_ERROR:
      throw LinAlgError(text);
    default:
      throw Error(text);
  }
}

// Throws an error with a text as printf writes it. For inline functions of headers that every
// extension reads: a message of parts would be instantiated wherever such a function is seen.
[[noreturn, gnu::format(printf, 2, 3)]] LAMELLA_COLD inline void throw_printf(lamella_status kind,
                                                                              const char* format,
                                                                              ...) {
  char text[512];
  __builtin_va_list values;
  __builtin_va_start(values, format);
  __builtin_vsnprintf(text, sizeof(text), format, values);
  __builtin_va_end(values);
  lamella_fail(kind, text, __builtin_strlen(text));
  throw_status(kind);
}

LAMELLA_ALWAYS_INLINE void check(lamella_status status) {
  if (LAMELLA_UNLIKELY(status != LAMELLA_OK)) throw_status(status);
}

// Records an error of this thread, and returns its kind.
LAMELLA_COLD inline lamella_status fail(lamella_status kind, const char* text) noexcept {
  return lamella_fail(kind, text, __builtin_strlen(text));
}
LAMELLA_LAZY LAMELLA_COLD inline lamella_status fail(lamella_status kind,
                                                     std::string_view text) noexcept {
  return lamella_fail(kind, text.data(), text.size());
}
LAMELLA_LAZY LAMELLA_COLD inline lamella_status fail(lamella_status kind,
                                                     const std::string& text) noexcept {
  return lamella_fail(kind, text.data(), text.size());
}
// To be called in a catch (...): records the exception as this thread's error.
LAMELLA_COLD inline lamella_status status_of_current_exception() noexcept {
  try {
    throw;
  } catch (const Error& e) {
    return fail(e.status(), e.what());
  } catch (const std::bad_alloc&) {
    return fail(LAMELLA_OUT_OF_MEMORY, "out of memory");
  } catch (const std::out_of_range& e) {
    return fail(LAMELLA_INDEX_ERROR, e.what());
  } catch (const std::invalid_argument& e) {
    return fail(LAMELLA_VALUE_ERROR, e.what());
  } catch (const std::exception& e) {
    return fail(LAMELLA_ERROR, e.what());
  } catch (...) {
    return fail(LAMELLA_ERROR, "unknown exception");
  }
}
// Calls f() for a caller in C: an exception becomes this thread's error.
template <class F>
lamella_status guarded(F&& f) noexcept {
  try {
    f();
    return LAMELLA_OK;
  } catch (...) {
    return status_of_current_exception();
  }
}

template <class E>
[[noreturn]] LAMELLA_COLD void throw_parts(const char* condition, const Part* parts, size_t count) {
  if (count == 0) throw E(str("expected ", condition));
  throw E(join_parts(parts, count));
}
template <class E, class... A>
[[noreturn]] LAMELLA_ALWAYS_INLINE void check_failed(const char* condition, const A&... parts) {
  const Part list[] = {part_of(parts)..., {nullptr, nullptr}};
  throw_parts<E>(condition, list, sizeof...(A));
}

LAMELLA_LAZY [[noreturn]] LAMELLA_COLD inline void throw_internal(const char* file, int line,
                                                                  const char* condition,
                                                                  const Part* parts, size_t count) {
  std::string text = str(file, ":", line, ": ");
  if (condition != nullptr) append(text, str("expected ", condition, ". "));
  if (count != 0) append(text, str(join_parts(parts, count), ". "));
  append(text, "This is a bug in Lamella; please report it.");
  throw InternalError(text);
}
template <class... A>
[[noreturn]] LAMELLA_ALWAYS_INLINE void assert_failed(const char* file, int line,
                                                      const char* condition, const A&... parts) {
  const Part list[] = {part_of(parts)..., {nullptr, nullptr}};
  throw_internal(file, line, condition, list, sizeof...(A));
}
}  // namespace detail

#define LAMELLA_CHECK_AS(type, condition, ...)                                      \
  do {                                                                              \
    if (LAMELLA_UNLIKELY(!(condition)))                                             \
      ::lamella::detail::check_failed<type>(#condition __VA_OPT__(, ) __VA_ARGS__); \
  } while (false)

// LAMELLA_CHECK(condition, parts...): throws an Error of the concatenated parts.
#define LAMELLA_CHECK(condition, ...) \
  LAMELLA_CHECK_AS(::lamella::Error, condition __VA_OPT__(, ) __VA_ARGS__)
#define LAMELLA_CHECK_INDEX(condition, ...) \
  LAMELLA_CHECK_AS(::lamella::IndexError, condition __VA_OPT__(, ) __VA_ARGS__)
#define LAMELLA_CHECK_VALUE(condition, ...) \
  LAMELLA_CHECK_AS(::lamella::ValueError, condition __VA_OPT__(, ) __VA_ARGS__)
#define LAMELLA_CHECK_TYPE(condition, ...) \
  LAMELLA_CHECK_AS(::lamella::TypeError, condition __VA_OPT__(, ) __VA_ARGS__)
#define LAMELLA_CHECK_NOT_IMPLEMENTED(condition, ...) \
  LAMELLA_CHECK_AS(::lamella::NotImplementedError, condition __VA_OPT__(, ) __VA_ARGS__)
#define LAMELLA_CHECK_LINALG(condition, ...) \
  LAMELLA_CHECK_AS(::lamella::LinAlgError, condition __VA_OPT__(, ) __VA_ARGS__)

// The status of an error in the C ABI has the name LAMELLA_ERROR; the function-like macro of the
// same name throws an Error of its parts.
#define LAMELLA_ERROR(...) \
  ::lamella::detail::check_failed<::lamella::Error>("no error" __VA_OPT__(, ) __VA_ARGS__)

#define LAMELLA_INTERNAL_ASSERT(condition, ...)                                                    \
  do {                                                                                             \
    if (LAMELLA_UNLIKELY(!(condition)))                                                            \
      ::lamella::detail::assert_failed(__FILE__, __LINE__, #condition __VA_OPT__(, ) __VA_ARGS__); \
  } while (false)

// The same in debug builds only.
#ifdef NDEBUG
#define LAMELLA_DEBUG_ASSERT(condition, ...) \
  do {                                       \
    if (false) static_cast<void>(condition); \
  } while (false)
#else
#define LAMELLA_DEBUG_ASSERT(condition, ...) \
  LAMELLA_INTERNAL_ASSERT(condition __VA_OPT__(, ) __VA_ARGS__)
#endif

}  // namespace lamella
