// Warnings of C++ code: texts with a place, passed to this thread's handler, or to the process's,
// which writes to stderr.
#pragma once
#include <cstdio>
#include <string>

#include "lamella/core/error.h"

namespace lamella {

// Where a message comes from.
struct SourceLocation {
  const char* function = "";
  const char* file = "";
  uint32_t line = 0;
};
template <class Stream>
  requires requires(Stream& out) { out.write("", 1); }
Stream& operator<<(Stream& out, const SourceLocation& at) {
  const std::string text = str(at.function, " at ", at.file, ":", at.line);
  out.write(text.data(), static_cast<std::ptrdiff_t>(text.size()));
  return out;
}

class Warning {
 public:
  class UserWarning {};
  class DeprecationWarning {};
  // The kind of a warning, one of the classes above.
  struct warning_variant_t {
    warning_variant_t(UserWarning) : is_deprecation(false) {}        // NOLINT
    warning_variant_t(DeprecationWarning) : is_deprecation(true) {}  // NOLINT
    bool is_deprecation;
  };
  Warning(warning_variant_t type, const SourceLocation& at, std::string text, bool verbatim)
      : type_(type), at_(at), text_(std::move(text)), verbatim_(verbatim) {}

  warning_variant_t type() const { return type_; }
  const SourceLocation& source_location() const { return at_; }
  const std::string& msg() const { return text_; }
  bool verbatim() const { return verbatim_; }

 private:
  warning_variant_t type_;
  SourceLocation at_;
  std::string text_;
  bool verbatim_;
};

class LAMELLA_PUBLIC WarningHandler {
 public:
  virtual ~WarningHandler() = default;
  virtual void process(const Warning& warning) {
    const SourceLocation& at = warning.source_location();
    std::fprintf(stderr, "[%s:%u] Warning: %s\n", at.file, at.line, warning.msg().c_str());
  }
};

namespace detail {
using WarningFunction = void (*)(const char* file, unsigned line, const char* text);
LAMELLA_PUBLIC inline WarningFunction warning_function = nullptr;
// Each library has its own state of a thread, which a symbol shared by all would make slow.
LAMELLA_LAZY WarningHandler*& thread_warning_handler() {
  static thread_local WarningHandler* handler = nullptr;
  return handler;
}
}  // namespace detail

// Replaces the handler of this process and returns the previous one; null for the default.
inline detail::WarningFunction set_warning_handler(detail::WarningFunction function) {
  return __atomic_exchange_n(&detail::warning_function, function, __ATOMIC_ACQ_REL);
}
LAMELLA_LAZY LAMELLA_COLD void warn(const Warning& warning) {
  const SourceLocation& at = warning.source_location();
  auto* function = __atomic_load_n(&detail::warning_function, __ATOMIC_ACQUIRE);
  if (detail::thread_warning_handler() != nullptr) {
    detail::thread_warning_handler()->process(warning);
  } else if (function != nullptr) {
    function(at.file, at.line, warning.msg().c_str());
  } else {
    WarningHandler().process(warning);
  }
}
template <class... A>
LAMELLA_COLD void warn(const char* file, unsigned line, const A&... parts) {
  warn(Warning(Warning::UserWarning(), {"", file, line}, str(parts...), false));
}

namespace WarningUtils {
// This thread's handler, which must live until it is replaced; null for the process's.
LAMELLA_LAZY void set_warning_handler(WarningHandler* handler) {
  detail::thread_warning_handler() = handler;
}
LAMELLA_LAZY WarningHandler* get_warning_handler() { return detail::thread_warning_handler(); }
// Whether TORCH_WARN_ONCE warns each time.
LAMELLA_HIDDEN inline bool warn_always = false;
inline void set_warnAlways(bool on) { warn_always = on; }
inline bool get_warnAlways() { return warn_always; }
struct WarnAlways {
  explicit WarnAlways(bool on = true) : before_(warn_always) { warn_always = on; }
  ~WarnAlways() { warn_always = before_; }

 private:
  bool before_;
};
class WarningHandlerGuard {
 public:
  explicit WarningHandlerGuard(WarningHandler* handler) : before_(get_warning_handler()) {
    set_warning_handler(handler);
  }
  ~WarningHandlerGuard() { set_warning_handler(before_); }

 private:
  WarningHandler* before_;
};
}  // namespace WarningUtils

// LAMELLA_WARN(parts...): warns with the concatenated parts.
#define LAMELLA_WARN(...) ::lamella::warn(__FILE__, __LINE__ __VA_OPT__(, ) __VA_ARGS__)
// The same, but only the first time that this line is reached.
#define LAMELLA_WARN_ONCE(...)                                     \
  do {                                                             \
    static bool lamella_warned = false;                            \
    if (!lamella_warned || ::lamella::WarningUtils::warn_always) { \
      lamella_warned = true;                                       \
      LAMELLA_WARN(__VA_ARGS__);                                   \
    }                                                              \
  } while (false)

}  // namespace lamella
