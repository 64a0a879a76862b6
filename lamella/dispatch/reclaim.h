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

// Runs `destroy(object)` once no call can be using it: now where that is known, else at a later
// retire(). Objects retired while the calling thread is inside a call wait for the next one.
void retire(void (*destroy)(void*), void* object);

}  // namespace lamella::reclaim
