// One line of a log, written with << and ended with its semicolon.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>

#include "lamella/core/error.h"
#include "lamella/core/warning.h"

namespace lamella {

// Warnings and errors go to the warning handler, what is below them nowhere; FATAL throws.
class LogLine {
 public:
  enum Severity : uint8_t { INFO, WARNING, ERROR, FATAL };

  LogLine(Severity severity, const char* file, unsigned line)
      : severity_(severity), file_(file), line_(line) {}
  LogLine(const LogLine&) = delete;
  LogLine& operator=(const LogLine&) = delete;
  ~LogLine() noexcept(false) {
    if (severity_ == FATAL) throw Error(text_.str());
    if (severity_ != INFO) warn(file_, line_, text_.str());
  }
  template <class T>
  LogLine& operator<<(const T& part) {
    text_ << part;
    return *this;
  }

 private:
  Severity severity_;
  const char* file_;
  unsigned line_;
  std::ostringstream text_;
};

}  // namespace lamella
