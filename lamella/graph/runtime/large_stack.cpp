// Large stacks by ucontext: the thread, and with it all that is kept by thread, stays the same.
#include "lamella/graph/runtime/large_stack.h"

#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <exception>
#include <unordered_map>

#include "lamella/core/error.h"
#include "lamella/graph/hlo/effects.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

namespace lamella::hlo {
namespace {

// What a level takes at most: the compiler takes about 2 KiB of it, and Python functions more.
constexpr int64_t kBytesOfLevel = int64_t{32} << 10, kBytesBelow = int64_t{8} << 20;
constexpr size_t kGuardBytes = size_t{64} << 10;

struct Job {
  const std::function<void()>& function;
  std::exception_ptr error = nullptr;
  ucontext_t caller{}, callee{};
  const void* stack = nullptr;  // the caller's, for the address sanitizer
  size_t bytes = 0;
};

void enter(unsigned high, unsigned low) {
  auto* job = reinterpret_cast<Job*>(uintptr_t{high} << 32 | low);
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(nullptr, &job->stack, &job->bytes);
#endif
  try {
    job->function();
  } catch (...) {
    job->error = std::current_exception();
  }
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_start_switch_fiber(nullptr, job->stack, job->bytes);
#endif
}

}  // namespace

int64_t call_depth(const Module& module) {
  std::unordered_map<const Computation*, int64_t> depths;
  int64_t most = 1;
  for (const Computation* computation : module.computations) {
    int64_t depth = 1;
    for (const Instruction* i : computation->instructions) {
      for_each_called(*i, [&](const Computation& called) {
        auto found = depths.find(&called);
        if (found != depths.end()) depth = std::max(depth, found->second + 1);
      });
    }
    depths[computation] = depth;
    most = std::max(most, depth);
  }
  return most;
}

void run_nested(int64_t depth, const std::function<void()>& function) {
  if (depth <= kMaxDepthOnOwnStack) return function();
  const size_t bytes = static_cast<size_t>(depth * kBytesOfLevel + kBytesBelow);
  void* stack = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  LAMELLA_CHECK(stack != MAP_FAILED, "hlo: expected memory for a stack of ", depth,
                " nested calls, got none");
  mprotect(stack, kGuardBytes, PROT_NONE);
  Job job{function};
  getcontext(&job.callee);
  job.callee.uc_stack.ss_sp = stack;
  job.callee.uc_stack.ss_size = bytes;
  job.callee.uc_link = &job.caller;
  auto address = reinterpret_cast<uintptr_t>(&job);
  makecontext(&job.callee, reinterpret_cast<void (*)()>(enter), 2,
              static_cast<unsigned>(address >> 32), static_cast<unsigned>(address));
#ifdef __SANITIZE_ADDRESS__
  void* own = nullptr;
  __sanitizer_start_switch_fiber(&own, stack, bytes);
#endif
  swapcontext(&job.caller, &job.callee);
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(own, nullptr, nullptr);
#endif
  munmap(stack, bytes);
  if (job.error != nullptr) std::rethrow_exception(job.error);
}

}  // namespace lamella::hlo
