// Workers: the threads that run programs after the call that started them has returned.
#pragma once
#include <functional>

namespace lamella::pjrt {

// Runs f on a thread that has nothing else to do. At most as many run at a time as the machine has
// processors, and four at least; a caller that is no worker waits while a multiple of them is
// queued, so that results do not pile up.
void run_on_worker(std::function<void()> f);
// Whether the calling thread is a worker.
bool on_worker();
// Waits until all that was given to workers has run.
void finish_work();

// While it lives, the worker waits for other work, and another one may run in its place.
class Waiting {
 public:
  Waiting();
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  ~Waiting();
};

}  // namespace lamella::pjrt
