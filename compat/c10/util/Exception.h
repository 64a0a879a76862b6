// PyTorch's checks.
#pragma once
#include <c10/lamella_names.h>
#include <c10/macros/Macros.h>

#include "lamella/core/error.h"
#include "lamella/core/warning.h"

// A check is a whole `if`, so it needs no semicolon behind it.
#define TORCH_CHECK_WITH(type, condition, ...)                                           \
  if (C10_UNLIKELY(!(condition))) {                                                      \
    ::lamella::detail::check_failed<::c10::type>(#condition __VA_OPT__(, ) __VA_ARGS__); \
  }
#define TORCH_CHECK(condition, ...) TORCH_CHECK_WITH(Error, condition __VA_OPT__(, ) __VA_ARGS__)
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
// Two values; the message says both.
#define TORCH_CHECK_OP(a, b, op) TORCH_CHECK((a)op(b), "expected " #a " " #op " " #b)
#define TORCH_CHECK_EQ(a, b) TORCH_CHECK_OP(a, b, ==)
#define TORCH_CHECK_NE(a, b) TORCH_CHECK_OP(a, b, !=)
#define TORCH_CHECK_LE(a, b) TORCH_CHECK_OP(a, b, <=)
#define TORCH_CHECK_LT(a, b) TORCH_CHECK_OP(a, b, <)
#define TORCH_CHECK_GE(a, b) TORCH_CHECK_OP(a, b, >=)
#define TORCH_CHECK_GT(a, b) TORCH_CHECK_OP(a, b, >)
#define TORCH_CHECK_NOTNULL(pointer) (pointer)
#define TORCH_INTERNAL_ASSERT(condition, ...)                                                    \
  if (C10_UNLIKELY(!(condition))) {                                                              \
    ::lamella::detail::assert_failed(__FILE__, __LINE__, #condition __VA_OPT__(, ) __VA_ARGS__); \
  }
#define TORCH_INTERNAL_ASSERT_DEBUG_ONLY(condition, ...) \
  LAMELLA_DEBUG_ASSERT(condition __VA_OPT__(, ) __VA_ARGS__)
#define AT_ASSERT(condition, ...) TORCH_INTERNAL_ASSERT(condition __VA_OPT__(, ) __VA_ARGS__)
#define AT_ASSERTM(condition, ...) TORCH_CHECK(condition __VA_OPT__(, ) __VA_ARGS__)
#define AT_CHECK(condition, ...) TORCH_CHECK(condition __VA_OPT__(, ) __VA_ARGS__)
#define AT_ERROR(...) LAMELLA_ERROR(__VA_ARGS__)
#define AT_INDEX_ERROR(...) \
  ::lamella::detail::check_failed<::c10::IndexError>("no error" __VA_OPT__(, ) __VA_ARGS__)
#define C10_THROW_ERROR(type, message) throw ::c10::type(message)

#define TORCH_WARN(...) LAMELLA_WARN(__VA_ARGS__)
#define TORCH_WARN_ONCE(...) LAMELLA_WARN_ONCE(__VA_ARGS__)
#define TORCH_WARN_DEPRECATION(...) LAMELLA_WARN(__VA_ARGS__)
#define AT_WARN(...) LAMELLA_WARN(__VA_ARGS__)
