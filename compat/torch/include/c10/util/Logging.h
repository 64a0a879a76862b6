// PyTorch's logging macros, and Caffe2's checks. API usage is not logged; messages of the level
// warning and above go to the standard error stream.
#pragma once
#include <c10/util/Exception.h>
#include <c10/util/Lazy.h>
#include <c10/util/StringUtil.h>
#include <c10/util/logging_is_not_google_glog.h>

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <sstream>

#include "lamella/core/warning.h"

// Whether failed checks of Caffe2 end the process instead of throwing.
inline bool FLAGS_caffe2_use_fatal_for_enforce = false;

namespace c10 {

// `message` is called where the check fails.
template <class Message>
void enforce(bool holds, const char* expected, Message message) {
  if (C10_LIKELY(holds)) return;
  if (FLAGS_caffe2_use_fatal_for_enforce) std::abort();
  throw Error(lamella::str("expected ", expected, message()));
}
template <class Holds, class A, class B, class Message>
void enforce_pair(Holds holds, const char* expected, const A& a, const B& b, Message message) {
  enforce(holds(a, b), expected, [&] { return lamella::str(", got ", a, " vs ", b, message()); });
}

// One log message, written with << and emitted at the end of the statement. Warnings and errors go
// to the warning handler, lower levels are dropped, and FATAL throws.
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

}  // namespace c10

#define LAMELLA_LATE(...) [&] { return ::lamella::str("" __VA_OPT__(". ", ) __VA_ARGS__); }
#define CAFFE_THROW(...) throw ::c10::Error(::lamella::str(__VA_ARGS__))
#define CAFFE_ENFORCE(condition, ...) \
  ::c10::enforce(static_cast<bool>(condition), #condition, LAMELLA_LATE(__VA_ARGS__))
#define CAFFE_ENFORCE_THAT(holds, op, a, b, ...) \
  ::c10::enforce_pair(holds, #a " " #op " " #b, a, b, LAMELLA_LATE(__VA_ARGS__))
#define CAFFE_ENFORCE_EQ(a, ...) CAFFE_ENFORCE_THAT(std::equal_to<>(), ==, a, __VA_ARGS__)
#define CAFFE_ENFORCE_NE(a, ...) CAFFE_ENFORCE_THAT(std::not_equal_to<>(), !=, a, __VA_ARGS__)
#define CAFFE_ENFORCE_LE(a, ...) CAFFE_ENFORCE_THAT(std::less_equal<>(), <=, a, __VA_ARGS__)
#define CAFFE_ENFORCE_LT(a, ...) CAFFE_ENFORCE_THAT(std::less<>(), <, a, __VA_ARGS__)
#define CAFFE_ENFORCE_GE(a, ...) CAFFE_ENFORCE_THAT(std::greater_equal<>(), >=, a, __VA_ARGS__)
#define CAFFE_ENFORCE_GT(a, ...) CAFFE_ENFORCE_THAT(std::greater<>(), >, a, __VA_ARGS__)
#define CAFFE_ENFORCE_EQ_WITH_CALLER(a, ...) CAFFE_ENFORCE_EQ(a, __VA_ARGS__)
#define C10_LOG_API_USAGE_ONCE(...)
#define C10_LOG_EVERY_MS(severity, ms) LOG(severity)
#define C10_LOG_EVERY_N(severity, n) LOG(severity)
#define C10_LOG_FIRST_N(severity, n) LOG(severity)
#ifndef LOG
#define LOG(severity) ::c10::LogLine(::c10::LogLine::severity, __FILE__, __LINE__)
#define LOG_IF(severity, condition) \
  if (condition) LOG(severity)
#define VLOG(level) ::c10::LogLine(::c10::LogLine::INFO, __FILE__, __LINE__)
#define VLOG_IF(level, condition) \
  if (condition) VLOG(level)
#define VLOG_IS_ON(level) (false)
#define DLOG(severity) LOG(severity)
#define CHECK(condition) TORCH_CHECK_OP(static_cast<bool>(condition), true, ==)
#define CHECK_EQ(a, b) TORCH_CHECK_EQ(a, b)
#define CHECK_NE(a, b) TORCH_CHECK_NE(a, b)
#define CHECK_LE(a, b) TORCH_CHECK_LE(a, b)
#define CHECK_LT(a, b) TORCH_CHECK_LT(a, b)
#define CHECK_GE(a, b) TORCH_CHECK_GE(a, b)
#define CHECK_GT(a, b) TORCH_CHECK_GT(a, b)
#define DCHECK(condition) TORCH_DCHECK_OP(static_cast<bool>(condition), true, ==)
#endif
