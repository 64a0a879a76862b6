// Status and StatusOr: how the builder and the client report errors.
#pragma once
#include <ostream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "lamella/core/error.h"

namespace lamella::hlo {

// Numbers are those of absl::StatusCode.
enum class StatusCode : int {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

// "INVALID_ARGUMENT".
std::string_view StatusCodeToString(StatusCode code);

class [[nodiscard]] Status {
 public:
  // Success.
  Status() = default;
  Status(StatusCode code, std::string_view message) : code_(code), message_(message) {}
  static Status OK() { return {}; }
  // The status of an error that was caught.
  static Status of(const std::exception& error) { return {StatusCode::kInternal, error.what()}; }

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }
  const std::string& error_message() const { return message_; }
  // "OK", "INVALID_ARGUMENT: ...".
  std::string ToString() const;
  void IgnoreError() const {}
  // Keeps the first error.
  void Update(const Status& other) {
    if (ok()) *this = other;
  }
  // Throws an Error with the message unless this is success.
  void check() const {
    if (!ok()) throw Error(message_);
  }
  bool operator==(const Status& other) const = default;

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

inline Status OkStatus() { return {}; }
std::ostream& operator<<(std::ostream& out, const Status& status);

// A value, or a status that says why there is none. Access to a missing value throws an Error with
// the status's message; it does not abort.
template <class T>
class [[nodiscard]] StatusOr {
 public:
  using value_type = T;
  StatusOr() : held_(Status(StatusCode::kUnknown, "")) {}
  StatusOr(const Status& status) : held_(status) { require_error(); }        // NOLINT
  StatusOr(Status&& status) : held_(std::move(status)) { require_error(); }  // NOLINT
  template <class U = T>
    requires(std::is_convertible_v<U &&, T> && !std::is_same_v<std::decay_t<U>, StatusOr> &&
             !std::is_same_v<std::decay_t<U>, Status>)
  StatusOr(U&& value)  // NOLINT
      : held_(std::in_place_index<1>, std::forward<U>(value)) {}

  bool ok() const { return held_.index() == 1; }
  Status status() const { return ok() ? Status() : std::get<0>(held_); }

  const T& value() const& {
    require_value();
    return std::get<1>(held_);
  }
  T& value() & {
    require_value();
    return std::get<1>(held_);
  }
  T&& value() && {
    require_value();
    return std::get<1>(std::move(held_));
  }
  const T& ValueOrDie() const& { return value(); }
  T& ValueOrDie() & { return value(); }
  T&& ValueOrDie() && { return std::move(*this).value(); }
  T ConsumeValueOrDie() { return std::move(*this).value(); }
  const T& operator*() const& { return value(); }
  T& operator*() & { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  const T* operator->() const { return &value(); }
  T* operator->() { return &value(); }
  template <class U>
  T value_or(U&& other) const& {
    return ok() ? std::get<1>(held_) : static_cast<T>(std::forward<U>(other));
  }

 private:
  void require_error() const {
    LAMELLA_CHECK(!std::get<0>(held_).ok(), "StatusOr: expected a value or an error, got OK");
  }
  void require_value() const {
    if (!ok()) std::get<0>(held_).check();
    LAMELLA_CHECK(ok(), "StatusOr: expected a value, got none");
  }
  std::variant<Status, T> held_;
};

// Runs f and converts exceptions to a status.
template <class F>
auto status_of(F&& f) -> StatusOr<std::invoke_result_t<F>> {
  try {
    return f();
  } catch (const std::exception& error) {
    return Status::of(error);
  }
}

}  // namespace lamella::hlo

// Returns from the enclosing function if the expression is an error. ASSIGN_OR_RETURN also assigns
// the value.
#define LAMELLA_RETURN_IF_ERROR(...)                                 \
  do {                                                               \
    ::lamella::hlo::Status lamella_status_of_call = (__VA_ARGS__);   \
    if (!lamella_status_of_call.ok()) return lamella_status_of_call; \
  } while (false)
#define LAMELLA_ASSIGN_OR_RETURN(target, ...) \
  LAMELLA_ASSIGN_OR_RETURN_(LAMELLA_STATUS_NAME_(__COUNTER__), target, __VA_ARGS__)
#define LAMELLA_STATUS_NAME_(number) LAMELLA_STATUS_NAME__(number)
#define LAMELLA_STATUS_NAME__(number) lamella_status_or_##number
#define LAMELLA_ASSIGN_OR_RETURN_(name, target, ...) \
  LAMELLA_ASSIGN_OR_RETURN__(name, target, __VA_ARGS__)
#define LAMELLA_ASSIGN_OR_RETURN__(name, target, ...) \
  auto name = (__VA_ARGS__);                          \
  if (!name.ok()) return name.status();               \
  target = std::move(name).value()
