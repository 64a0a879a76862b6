// See Note [Interrupts] in interrupt.h.
#include "lamella/core/interrupt.h"

#include <time.h>

#include <atomic>

#include "lamella/core/error.h"

namespace lamella {
namespace {

constexpr int64_t kMilliseconds = 50;

std::atomic<InterruptFunction> installed{nullptr};
thread_local int64_t asked = 0;  // time of this thread's last check, or of the begin of its call

// The coarse clock is read without a system call and moves every few milliseconds.
int64_t milliseconds_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

}  // namespace

void set_interrupt_function(InterruptFunction function) {
  installed.store(function, std::memory_order_release);
}

void check_interrupt() {
  InterruptFunction function = installed.load(std::memory_order_acquire);
  if (function == nullptr) return;
  int64_t now = milliseconds_now();
  if (now - asked < kMilliseconds) return;
  asked = now;
  detail::check(function());
}

void count_steps(int64_t steps) {
  constexpr int64_t kStepsBetweenChecks = 1 << 18;
  thread_local int64_t counted = 0;
  counted += steps;
  if (LAMELLA_LIKELY(counted < kStepsBetweenChecks)) return;
  counted = 0;
  check_interrupt();
}

void begin_interruptible_call() noexcept {
  if (installed.load(std::memory_order_relaxed) != nullptr) asked = milliseconds_now();
}

}  // namespace lamella
