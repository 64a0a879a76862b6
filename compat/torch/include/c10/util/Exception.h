// PyTorch's checks: TORCH_CHECK and related macros.
#pragma once
#include <c10/lamella_names.h>
#include <c10/macros/Macros.h>

#include "lamella/core/error.h"
#include "lamella/core/warning.h"

// The macro expands to a complete `if` statement, so a semicolon after it is optional.
#define TORCH_CHECK_WITH(type, condition, ...)                                           \
  if (C10_UNLIKELY(!(condition))) {                                                      \
    ::lamella::detail::check_failed<::c10::type>(#condition __VA_OPT__(, ) __VA_ARGS__); \
  }
#define TORCH_CHECK(condition, ...) TORCH_CHECK_WITH(Error, condition __VA_OPT__(, ) __VA_ARGS__)
#define STD_TORCH_CHECK(condition, ...) TORCH_CHECK(condition __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_CHECK_INDEX(condition, ...) \
  TORCH_CHECK_WITH(IndexError, condition __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_CHECK_VALUE(condition, ...) \
  TORCH_CHECK_WITH(ValueError, condition __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_CHECK_TYPE(condition, ...) \
  TORCH_CHECK_WITH(TypeError, condition __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_CHECK_NOT_IMPLEMENTED(condition, ...) \
  TORCH_CHECK_WITH(NotImplementedError, condition __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_CHECK_LINALG(condition, ...) \
  TORCH_CHECK_WITH(LinAlgError, condition __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_CHECK_ARG(condition, position, ...) \
  TORCH_CHECK(condition, "argument " #position ": " __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_CHECK_BUFFER(condition, ...) TORCH_CHECK(condition __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_CHECK_IF_NOT_ON_CUDA(condition, ...) TORCH_CHECK(condition __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_CHECK_MSG(condition, type, ...) \
  ::lamella::str("expected " #condition __VA_OPT__(, ": ", ) __VA_ARGS__)

namespace c10 {
// A failed check: << appends to its message, and it throws when the macro's loop advances. Empty if
// the check holds.
class FailedCheck {
 public:
  FailedCheck() = default;
  explicit FailedCheck(std::string text) : text_(std::move(text)) {}
  bool next() {
    if (text_.empty()) return false;
    if (told_) throw Error(text_);
    return told_ = true;
  }
  template <class T>
  FailedCheck& operator<<(const T& part) {
    append(text_, part);
    return *this;
  }

 private:
  std::string text_;
  bool told_ = false;
};
template <class A, class B, class Holds>
FailedCheck check_pair(const A& a, const B& b, const char* expected, Holds holds) {
  if (C10_LIKELY(holds(a, b))) return FailedCheck();
  return FailedCheck(lamella::str("expected ", expected, ", got ", a, " and ", b, ". "));
}
template <class T>
T& check_not_null(T& pointer, const char* what) {
  if (pointer == nullptr) throw Error(lamella::str("expected ", what, " not to be null"));
  return pointer;
}
template <class T>
T check_not_null(T&& pointer, const char* what) {
  check_not_null(pointer, what);
  return std::forward<T>(pointer);
}
}  // namespace c10

// Compares two values, each evaluated once; the message has both, and the text appended by <<.
#define TORCH_CHECK_OP(a, b, op)                                                                 \
  for (auto lamella_check = ::c10::check_pair(                                                   \
           a, b, #a " " #op " " #b,                                                              \
           [](const auto& lamella_a, const auto& lamella_b) { return lamella_a op lamella_b; }); \
       lamella_check.next();)                                                                    \
  lamella_check
#define TORCH_CHECK_EQ(a, b) TORCH_CHECK_OP(a, b, ==)
#define TORCH_CHECK_NE(a, b) TORCH_CHECK_OP(a, b, !=)
#define TORCH_CHECK_LE(a, b) TORCH_CHECK_OP(a, b, <=)
#define TORCH_CHECK_LT(a, b) TORCH_CHECK_OP(a, b, <)
#define TORCH_CHECK_GE(a, b) TORCH_CHECK_OP(a, b, >=)
#define TORCH_CHECK_GT(a, b) TORCH_CHECK_OP(a, b, >)
#define TORCH_CHECK_NOTNULL(pointer) ::c10::check_not_null(pointer, #pointer)
// The same checks, in debug builds only.
#ifdef NDEBUG
#define TORCH_DCHECK_OP(a, b, op) \
  while (false) TORCH_CHECK_OP(a, b, op)
#define TORCH_DCHECK_NOTNULL(pointer) (pointer)
#else
#define TORCH_DCHECK_OP(a, b, op) TORCH_CHECK_OP(a, b, op)
#define TORCH_DCHECK_NOTNULL(pointer) TORCH_CHECK_NOTNULL(pointer)
#endif
#define TORCH_DCHECK_EQ(a, b) TORCH_DCHECK_OP(a, b, ==)
#define TORCH_DCHECK_NE(a, b) TORCH_DCHECK_OP(a, b, !=)
#define TORCH_DCHECK_LE(a, b) TORCH_DCHECK_OP(a, b, <=)
#define TORCH_DCHECK_LT(a, b) TORCH_DCHECK_OP(a, b, <)
#define TORCH_DCHECK_GE(a, b) TORCH_DCHECK_OP(a, b, >=)
#define TORCH_DCHECK_GT(a, b) TORCH_DCHECK_OP(a, b, >)
#define TORCH_INTERNAL_ASSERT(condition, ...)                                                    \
  if (C10_UNLIKELY(!(condition))) {                                                              \
    ::lamella::detail::assert_failed(__FILE__, __LINE__, #condition __VA_OPT__(, ) __VA_ARGS__); \
  }
#ifdef NDEBUG
#define TORCH_INTERNAL_ASSERT_DEBUG_ONLY(condition, ...) \
  if (false) {                                           \
    static_cast<void>(condition);                        \
  }
#else
#define TORCH_INTERNAL_ASSERT_DEBUG_ONLY(condition, ...) \
  TORCH_INTERNAL_ASSERT(condition __VA_OPT__(, ) __VA_ARGS__)
#endif
#define AT_ASSERT(condition, ...) TORCH_INTERNAL_ASSERT(condition __VA_OPT__(, ) __VA_ARGS__)
#define AT_ASSERTM(condition, ...) TORCH_CHECK(condition __VA_OPT__(, ) __VA_ARGS__)
#define AT_CHECK(condition, ...) TORCH_CHECK(condition __VA_OPT__(, ) __VA_ARGS__)
#define AT_ERROR(...) LAMELLA_ERROR(__VA_ARGS__)
#define AT_INDEX_ERROR(...) \
  ::lamella::detail::check_failed<::c10::IndexError>("no error" __VA_OPT__(, ) __VA_ARGS__)
#define C10_THROW_ERROR(type, message) throw ::c10::type(message)

// Throws a caught error again, with more text behind its own.
#define TORCH_RETHROW(error, ...)                                               \
  do {                                                                          \
    throw ::c10::Error(::lamella::str((error).what(), " (", __VA_ARGS__, ")")); \
  } while (false)
#ifndef __CUDACC__  // kernels do not throw
#undef CUDA_KERNEL_ASSERT
#define CUDA_KERNEL_ASSERT(condition) TORCH_INTERNAL_ASSERT(condition)
#endif
#define TORCH_WARN(...) LAMELLA_WARN(__VA_ARGS__)
#define TORCH_WARN_ONCE(...) LAMELLA_WARN_ONCE(__VA_ARGS__)
#define TORCH_WARN_DEPRECATION(...) LAMELLA_WARN(__VA_ARGS__)
#define AT_WARN(...) LAMELLA_WARN(__VA_ARGS__)
