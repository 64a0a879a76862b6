// Runs on several devices of one process: a thread for each, which meet in collectives.
//
// Note [Devices as threads]
//   Devices of one process share its memory, so each is a thread, and a collective is a place where
//   the threads of a group wait for each other. The last to come makes the results of all, from the
//   operands of all. A place is an instruction together with its group; in a loop its members come
//   to it as often as the loop runs, and none comes twice before all came. If one of the threads
//   fails, the others fail where they wait.
#pragma once
#include <condition_variable>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "lamella/graph/runtime/value.h"

namespace lamella::hlo {

class Rendezvous {
 public:
  // The operands of each member, to the result of each.
  using Work = std::function<std::vector<Value>(std::span<const std::vector<Value>>)>;
  // Waits for all `members`, of which the caller is number `me`, at this place.
  Value meet(const void* place, const std::vector<int64_t>& members, size_t me,
             std::vector<Value> operands, const Work& work);
  // All that wait, now or later, throw this.
  void fail(std::exception_ptr error);

 private:
  struct Meeting {
    std::vector<std::vector<Value>> operands;
    std::vector<Value> results;
    size_t came = 0;
    bool done = false;
  };
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<const void*, std::vector<int64_t>>, std::shared_ptr<Meeting>> meetings_;
  std::exception_ptr error_;
};

// What one thread of such a run knows of it. Devices are numbered by replica and then partition.
struct Participant {
  Rendezvous* rendezvous = nullptr;
  int64_t device = 0;
  int64_t partitions = 1;
  std::span<const int64_t> present;  // the devices whose threads run the same code
};

// Calls f(i) for each i below `count`, each on a thread of its own with the caller's modes, and
// throws what the first of them threw.
void on_each_device(size_t count, Rendezvous& rendezvous, const std::function<void(size_t)>& f);

}  // namespace lamella::hlo
