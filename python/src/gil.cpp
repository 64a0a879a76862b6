// The GIL: given up around work, taken by what C++ calls.
#include "python/src/autograd.h"

namespace lamella::python {
namespace {

// Threads that gave the GIL up and work. One that waits for the GIL, or has it again for a hook,
// is none of them: it leaves all tensors alone until it goes on. The count rises while the thread
// still has the GIL, so that nobody with the GIL sees it rise.
std::atomic<int> working{0};
thread_local bool gave_up = false;

}  // namespace

WithoutGil::WithoutGil() {
  gave_up = true;
  working.fetch_add(1, std::memory_order_relaxed);
  state_ = PyEval_SaveThread();
}
WithoutGil::~WithoutGil() {
  working.fetch_sub(1, std::memory_order_release);
  PyEval_RestoreThread(state_);
  gave_up = false;
  end_waiting();
}

GilScope::GilScope() : inside_(std::exchange(gave_up, false)) {
  if (inside_) working.fetch_sub(1, std::memory_order_release);
  state_ = PyGILState_Ensure();
}
GilScope::~GilScope() {
  if (inside_) {
    working.fetch_add(1, std::memory_order_relaxed);
    gave_up = true;
  }
  PyGILState_Release(state_);
}

bool others_may_run() { return working.load(std::memory_order_acquire) != 0; }

}  // namespace lamella::python
