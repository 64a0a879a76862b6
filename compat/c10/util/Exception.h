// PyTorch's checks.
#pragma once
#include <c10/lamella_names.h>
#include <c10/macros/Macros.h>

#include "lamella/core/error.h"

#define TORCH_CHECK(condition, ...) LAMELLA_CHECK(condition __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_CHECK_WITH(type, condition, ...) \
  LAMELLA_CHECK_AS(::c10::type, condition __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_CHECK_INDEX(condition, ...) LAMELLA_CHECK_INDEX(condition __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_CHECK_VALUE(condition, ...) LAMELLA_CHECK_VALUE(condition __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_CHECK_TYPE(condition, ...) LAMELLA_CHECK_TYPE(condition __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_CHECK_NOT_IMPLEMENTED(condition, ...) \
  LAMELLA_CHECK_NOT_IMPLEMENTED(condition __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_CHECK_LINALG(condition, ...) \
  LAMELLA_CHECK_LINALG(condition __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_CHECK_ARG(condition, position, ...) \
  LAMELLA_CHECK(condition, "argument " #position ": " __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_INTERNAL_ASSERT(condition, ...) \
  LAMELLA_INTERNAL_ASSERT(condition __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_INTERNAL_ASSERT_DEBUG_ONLY(condition, ...) \
  LAMELLA_DEBUG_ASSERT(condition __VA_OPT__(, ) __VA_ARGS__)
#define AT_ASSERT(condition) LAMELLA_INTERNAL_ASSERT(condition)
#define AT_ASSERTM(condition, ...) LAMELLA_CHECK(condition __VA_OPT__(, ) __VA_ARGS__)
#define AT_ERROR(...) LAMELLA_ERROR(__VA_ARGS__)
