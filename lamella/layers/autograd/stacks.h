// The stacks of backward inside of backward. Internal to Lamella.
//
// Note [Stacks of runs inside of runs]
//   A backward inside of another one uses the same stack. Where little of it is left, the inner run
//   gets another stack, on the same thread, so that all that belongs to the thread stays as it is.
//   The sanitizers and some interpreters know only the thread's own stack; with them such a run is
//   an error, as are more runs inside of each other than kMostRuns.
#pragma once
#include <functional>

#include "lamella/abi/abi.h"

namespace lamella::autograd {

constexpr int kFitAnyStack = 32;  // runs inside of each other for which no stack is too short
constexpr int kMostRuns = 1 << 14;

// Calls `run`, the depth-th run inside of the others, which does not throw.
lamella_status run_deep(int depth, const std::function<lamella_status()>& run);

}  // namespace lamella::autograd
