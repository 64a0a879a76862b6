// The alignment of memory for tensors on the CPU, in bytes.
#pragma once
#include <c10/lamella_names.h>

#include <cstddef>

namespace c10 {
constexpr size_t gAlignment = 64;
constexpr size_t gPagesize = 4096;
constexpr size_t gAlloc_threshold_thp = size_t{2} << 20;
}  // namespace c10
