// Stacks for backward inside of backward: Note [Stacks of runs inside of runs] in stacks.h.
#include "lamella/layers/autograd/stacks.h"

#include <pthread.h>
#include <sys/mman.h>
#if defined(__GLIBC__)
#include <ucontext.h>
#endif

#include <atomic>
#include <string>
#include <utility>

#include "lamella/core/error.h"
#include "lamella/layers/autograd/engine.h"

namespace lamella::autograd {
namespace {

using Run = std::function<lamella_status()>;

std::atomic<bool> other_stacks{
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    true
#endif
};

// The lowest address of the thread's stack; the highest one where it is not known.
uintptr_t end_of_stack() {
  void* lowest = reinterpret_cast<void*>(UINTPTR_MAX);
#if defined(__GLIBC__)
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
    size_t bytes = 0;
    pthread_attr_getstack(&attributes, &lowest, &bytes);
    pthread_attr_destroy(&attributes);
  }
#endif
  return reinterpret_cast<uintptr_t>(lowest);
}
thread_local uintptr_t stack_end = 0;  // of the stack in use; 0: not asked for yet

// A coroutine's stack is not the thread's, and is not checked.
bool stack_is_short() {
  constexpr uintptr_t kLeast = 256 << 10;
  if (stack_end == 0) stack_end = end_of_stack();
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  return here >= stack_end && here - stack_end <= kLeast;
}

#if defined(__GLIBC__)
struct Switch {
  const Run* run;
  lamella_status status;
  ucontext_t from, to;
};
thread_local Switch* switching = nullptr;
void start() {
  Switch* call = switching;
  call->status = (*call->run)();
}

// Calls `run` on a stack of its own. False if there is no memory for it.
bool on_another_stack(const Run& run, lamella_status* status) {
  constexpr size_t kBytes = 8 << 20, kGuard = 64 << 10;  // pages are used when they are touched
  void* stack = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (stack == MAP_FAILED) return false;
  mprotect(stack, kGuard, PROT_NONE);
  Switch change{&run, LAMELLA_OK, {}, {}};
  getcontext(&change.to);
  change.to.uc_stack.ss_sp = stack;
  change.to.uc_stack.ss_size = kBytes;
  change.to.uc_link = &change.from;
  makecontext(&change.to, start, 0);
  const uintptr_t outer = std::exchange(stack_end, reinterpret_cast<uintptr_t>(stack) + kGuard);
  switching = &change;
  swapcontext(&change.from, &change.to);
  stack_end = outer;
  munmap(stack, kBytes);
  *status = change.status;
  return true;
}
#else
bool on_another_stack(const Run&, lamella_status*) { return false; }
#endif

}  // namespace

void keep_to_one_stack() { other_stacks = false; }

lamella_status run_deep(int depth, const Run& run) {
  if (depth <= kMostRuns) {
    if (!stack_is_short()) return run();
    lamella_status status;
    if (other_stacks && on_another_stack(run, &status)) return status;
  }
  return detail::fail(LAMELLA_ERROR,
                      "backward: expected calls of backward inside of each other to fit the "
                      "thread's stack, got " +
                          std::to_string(depth) + " of them");
}

}  // namespace lamella::autograd
