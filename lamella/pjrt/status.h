// Statuses: what went wrong, as PJRT's codes and texts, and the errors that callers get.
#pragma once
#include <exception>
#include <string>
#include <utility>

#include "lamella/core/error.h"
#include "lamella/pjrt/c_api.h"

namespace lamella::pjrt {

struct Status {
  Code code = Code::Ok;
  std::string text;
  bool ok() const { return code == Code::Ok; }
};
// Thrown by the functions of the table, and caught where they return to C.
class Failure : public std::exception {
 public:
  explicit Failure(Status status) : status_(std::move(status)) {}
  const Status& status() const { return status_; }
  const char* what() const noexcept override { return status_.text.c_str(); }

 private:
  Status status_;
};
template <class... Parts>
[[noreturn]] void fail(Code code, const Parts&... parts) {
  throw Failure({code, str(parts...)});
}
template <class... Parts>
void require(bool good, const Parts&... parts) {
  if (!good) fail(Code::InvalidArgument, parts...);
}
// Throws if the status is not ok.
void check(const Status& status);
// The status of the exception that is being handled. Errors of Lamella that say no kind get
// `otherwise`.
Status current_status(Code otherwise = Code::InvalidArgument);

// Null if the status is ok.
Error* make_error(const Status& status);
// The status of an error that a callback returned; destroys it.
Status take(Error* error);

inline std::string text_of(const Text& text) { return {text.data, text.size}; }
inline Text borrow(const std::string& text) { return {text.data(), text.size()}; }

// Memory behind a text that the caller frees.
struct Bytes {
  std::string text;
};
// Fills in the members `bytes`, `holder` and `free` of arguments.
template <class Args>
void hand_out(std::string text, Args& args) {
  args.holder = new Bytes{std::move(text)};
  args.bytes = borrow(args.holder->text);
  args.free = [](Bytes* holder) { delete holder; };
}

}  // namespace lamella::pjrt
