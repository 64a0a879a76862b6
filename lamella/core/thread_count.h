// The default number of threads of a computation (kernels/parallel.h changes it).
//
// Note [The number of threads]
//   The environment variable OMP_NUM_THREADS decides (its first number); without it, the number of
//   processors that the process may run on (its affinity), but at most the CPU quota of its control
//   groups, rounded up.
#pragma once
#include <string>

#include "lamella/core/macros.h"

namespace lamella {

inline constexpr int kMaxThreads = 4096;

// From 1 to kMaxThreads; decided at the first call.
LAMELLA_PRIVATE_API int default_num_threads();

namespace detail {
// The number that a value of OMP_NUM_THREADS requests; 0 if the text is not a list of numbers.
LAMELLA_PRIVATE_API int threads_of_variable(const char* text);
// The CPU quota of this process's control groups (version 1 or 2) in processors, rounded up; 0 if
// there is none. `root` is prepended to the paths of /proc and of the groups' file systems.
LAMELLA_PRIVATE_API int threads_of_quota(const std::string& root = "");
}  // namespace detail

}  // namespace lamella
