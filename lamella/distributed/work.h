// Started collectives (works), which are waited for later.
//
// Note [Progress]
//   MPI moves data only while a thread is inside an MPI call. As long as a work is under way, a
//   thread of this library polls all works and sleeps in between: 20 µs at first, up to 1 ms after
//   a long time without progress. Without works it sleeps until there is one. It calls MPI_Test and
//   continues sums in shared memory. The steps after MPI is done (sums in the ranks' order, copies)
//   run on the thread that waits for the work.
#pragma once
#include <mpi.h>

#include "lamella/distributed/collective.h"

namespace lamella::distributed {

// Returns the number of the work.
int64_t start(const Collective& asked);
// Returns when the work is done and its output written. A work is waited for once.
void wait(int64_t work);
// Whether it is done; wait() returns at once then.
bool test(int64_t work);
void wait_for_all_works();
// Ends the progress thread.
void stop_progress();

// Waits until the request is done (true) or `seconds` have passed (false). Sleeps between polls and
// checks for interrupts.
bool wait_for(MPI_Request* request, double seconds);

}  // namespace lamella::distributed
