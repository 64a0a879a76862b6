// PyTorch's logging macros. Uses of the API are not logged, and messages go to the standard error
// stream from the level of warnings on.
#pragma once
#include <c10/util/Exception.h>
#include <c10/util/StringUtil.h>

#include "lamella/core/log_line.h"

#define C10_LOG_API_USAGE_ONCE(...)
#define C10_LOG_EVERY_MS(severity, ms) LOG(severity)
#ifndef LOG
#define LOG(severity) ::lamella::LogLine(::lamella::LogLine::severity, __FILE__, __LINE__)
#define LOG_IF(severity, condition) \
  if (condition) LOG(severity)
#define VLOG(level) ::lamella::LogLine(::lamella::LogLine::INFO, __FILE__, __LINE__)
#define CHECK(condition) TORCH_CHECK(condition)
#define CHECK_EQ(a, b) TORCH_CHECK_EQ(a, b)
#define CHECK_NE(a, b) TORCH_CHECK_NE(a, b)
#define CHECK_LE(a, b) TORCH_CHECK_LE(a, b)
#define CHECK_LT(a, b) TORCH_CHECK_LT(a, b)
#define CHECK_GE(a, b) TORCH_CHECK_GE(a, b)
#define CHECK_GT(a, b) TORCH_CHECK_GT(a, b)
#define DCHECK(condition) TORCH_INTERNAL_ASSERT_DEBUG_ONLY(condition)
#endif
