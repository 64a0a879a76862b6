// Sums across ranks on one machine, through shared memory.
//
// Note [Sums in shared memory]
//   MPI ranks of one machine exchange messages, so every value of a large all_reduce is copied
//   several times and summed by one rank after the other. A group whose ranks are all on one
//   machine has a window of shared memory instead (MPI_Win_allocate_shared), with a slot for each
//   rank. A tensor is summed in chunks. Each rank owns one piece of a chunk: it copies the other
//   pieces of its own values into its slot, waits for the other ranks, adds all ranks' values of
//   its piece in the order of the ranks, writes the result to the results area of the window, waits
//   again, and copies the other owners' results out. Each buffer is overwritten only after a wait
//   that follows its last read, so one buffer of each is enough.
//   In a reduce_scatter a rank's piece consists of its own rows, and is not copied out by others.
//
//   Each rank counts its completed steps in a word of its own. A rank that waits for a word polls
//   it for some microseconds, then sleeps until it changes (futex), so that there may be more ranks
//   than cores. The sum is a state machine: a blocking call runs it to the end, and for a started
//   work the progress thread advances it whenever the other ranks have reached the step.
#pragma once
#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "lamella/distributed/reduction.h"

namespace lamella::distributed {

class Window {
 public:
  // The group's window; null if its ranks are on several machines, or if too many windows are open.
  // Collective over the group.
  static std::unique_ptr<Window> open(MPI_Comm comm);
  // Collective over the group.
  ~Window();
  // Whether no sum is under way.
  bool is_free() const { return begun_ == ended_.load(std::memory_order_acquire); }
  Window(const Window&) = delete;

 private:
  friend class SharedSum;
  struct Line;
  Window(MPI_Comm comm, MPI_Win window, char* memory, int rank, int size);
  char* slot(int rank) const;
  char* results() const;
  // The first rank that has not completed `steps` steps, or -1.
  int missing(uint32_t steps) const;
  void post(uint32_t steps);

  MPI_Comm comm_;
  MPI_Win window_;
  Line* lines_;
  char* slots_;
  int rank_, size_;
  uint32_t steps_ = 0;  // completed by this rank
  // Counts of this rank's sums, which use the window in the order in which they were started.
  uint64_t begun_ = 0;
  std::atomic<uint64_t> ended_{0};
};

// One all_reduce or reduce_scatter in a window, in the order of the ranks.
class SharedSum {
 public:
  // The elements of each rank's rows, for a reduce_scatter; they stay alive as long as the sum.
  struct Parts {
    const int* counts = nullptr;
    const int* starts = nullptr;
  };
  // The smallest size for which it is faster than MPI's messages.
  static constexpr int64_t kLeastBytes = 2048;
  // `in` and `out` hold `count` elements each and may be the same; with parts, `out` holds those of
  // this rank and does not overlap `in`. Both stay alive until advance() returns true.
  SharedSum(Window& window, const char* in, char* out, int64_t count, Reduction reduction,
            ScalarType dtype, Parts parts);
  // Advances as far as possible without waiting; true when the result is complete. Throws on every
  // rank if the ranks pass different numbers of elements, dtypes, reductions or parts.
  bool advance();
  // Returns when advance() can make progress, or after some time.
  void wait_for_others();

 private:
  void copy_in();
  void reduce();
  void copy_out();
  // Whether all ranks pass the same arguments; otherwise `error_` describes the difference.
  bool compare();
  // The rank's piece of the current chunk: its count and its offsets in a slot and in `in`, in
  // elements.
  struct Piece {
    int64_t count, place, source;
  };
  Piece piece(int rank) const;
  bool scatters() const { return parts_.counts != nullptr; }
  const char* op_name() const { return scatters() ? "reduce_scatter" : "all_reduce"; }

  Window& window_;
  const char* in_;
  char* out_;
  int64_t count_, at_ = 0, chunk_ = 0;  // in elements; with parts, those of one rank
  int64_t end_;                         // the final value of `at_`
  int64_t width_;                       // bytes of an element
  Reduction reduction_;
  ScalarType dtype_;
  Parts parts_;
  int64_t layout_ = 0;  // a hash of the parts' counts, to compare them; 0: no parts
  uint64_t turn_;
  std::string error_;
  enum class Phase { Begin, Reduce, CopyOut } phase_ = Phase::Begin;
};

}  // namespace lamella::distributed
