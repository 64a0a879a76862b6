// How many threads a computation may use unless it was told (kernels/parallel.h).
//
// Note [The number of threads]
//   The environment variable OMP_NUM_THREADS decides (its first number); without it, the number of
//   processors that the process may run on (its affinity), and at most what the quota of its
//   control groups pays for, rounded up.
#pragma once
#include <string>

#include "lamella/core/macros.h"

namespace lamella {

inline constexpr int kMaxThreads = 4096;

// From 1 to kMaxThreads; what it was at the first question.
LAMELLA_PRIVATE_API int default_num_threads();

namespace detail {
// The number that OMP_NUM_THREADS asks for; 0 where the text is no such list of numbers.
LAMELLA_PRIVATE_API int threads_of_variable(const char* text);
// Processors that the control groups of this process pay for, version 1 or 2, rounded up; 0 where
// there is no quota. `root` stands before the paths of /proc and of the groups' file systems.
LAMELLA_PRIVATE_API int threads_of_quota(const std::string& root = "");
}  // namespace detail

}  // namespace lamella
