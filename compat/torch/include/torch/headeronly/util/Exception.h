// STD_TORCH_CHECK.
#pragma once
#include <c10/util/Exception.h>

#define STD_TORCH_CHECK(condition, ...) TORCH_CHECK(condition __VA_OPT__(, ) __VA_ARGS__)
