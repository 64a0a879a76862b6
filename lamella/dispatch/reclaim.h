// Grace periods: when a kernel that was taken out of the tables can no longer be running.
//
// Note [Deregistering while others call]
//   A call marks itself in its thread's `readers` word with plain stores, so that readers never
//   wait and never write to a shared line. A writer takes the kernel out of all slots, makes every
//   core drain its store buffer (membarrier), and then looks at each thread's word: a thread seen
//   at zero cannot reach the old kernel any more. Threads announce themselves at their first
//   dispatched call: their key set starts with ThreadInit, whose kernel enters the thread in the
//   list and removes the bit, so the hot path has no test for it.
#pragma once
#include "lamella/abi/abi.h"

namespace lamella::reclaim {

// Enters the calling thread in the list of readers; again is harmless.
void register_thread();

// Waits until every other thread has been outside of all dispatched calls, at most `milliseconds`.
// Whether they all were. The calling thread itself may be inside of calls.
bool wait_for_readers(int milliseconds);

// True while the calling thread is inside a dispatched call.
bool inside_call();

// Has `destroy(object)` run by a later collect(), once no call can be using the object. To be
// called when no new call can find it any more.
void retire(void (*destroy)(void*), void* object);
// Destroys the retired objects that no call can be using; a later collect() destroys the rest. To
// be called without locks held, because destructors may run arbitrary code. Destroys nothing while
// the calling thread is inside a call.
void collect();

// Counts as a call for its lifetime: objects found in the tables meanwhile are not destroyed.
class Reading {
 public:
  Reading() {
    register_thread();
    before_ = lamella_thread.readers;
    __atomic_store_n(&lamella_thread.readers, before_ + 1, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
  }
  ~Reading() { __atomic_store_n(&lamella_thread.readers, before_, __ATOMIC_RELEASE); }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

 private:
  uint32_t before_;
};

}  // namespace lamella::reclaim
