// Stacks for modules whose calls nest deeply, so that memory alone bounds the depth.
#pragma once
#include <cstdint>
#include <functional>

#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// How deep the module's calls nest; 1 if it has no calls.
int64_t call_depth(const Module& module);

// Deeper nesting takes a stack of its own.
constexpr int64_t kMaxDepthOnOwnStack = 200;
// Runs the function, which recurses into called computations, on the thread's stack or, beyond that
// depth, on a large one, still on the same thread. Exceptions are passed on.
void run_nested(int64_t depth, const std::function<void()>& function);

}  // namespace lamella::hlo
