// Sums across ranks on one machine, through shared memory.
//
// Note [Sums in shared memory]
//   MPI's ranks of one machine send each other messages, so that every value of a large all_reduce
//   is copied several times and summed by one rank after the other. A group whose ranks are all on
//   one machine has a window of memory instead (MPI_Win_allocate_shared), with a slot for each
//   rank. A tensor goes through it in chunks. Each rank is the owner of one piece of a chunk: it
//   copies the other pieces of its own values into its slot, waits for the others, adds all ranks'
//   values of its piece in the order of the ranks, leaves the result in a part of the window that
//   is for results, waits again, and copies the other owners' results out. Slots are written after
//   a wait behind their last reading, and so are results, so that one buffer of each is enough.
//   In a reduce_scatter a rank's piece of a chunk is one of its own rows, and stays with it.
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
  // The group's window, or none where its ranks are on several machines, or where there are many
  // windows already. All ranks of the group call it.
  static std::unique_ptr<Window> open(MPI_Comm comm);
  // All ranks of the group end it together.
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
  // The first rank that has not done `steps` steps, or -1.
  int missing(uint32_t steps) const;
  void post(uint32_t steps);

  MPI_Comm comm_;
  MPI_Win window_;
  Line* lines_;
  char* slots_;
  int rank_, size_;
  uint32_t steps_ = 0;  // that this rank has done
  // Sums of this rank, which use the window in the order of their beginning.
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
  // From how many bytes on it is faster than MPI's messages.
  static constexpr int64_t kLeastBytes = 2048;
  // `in` holds `count` elements, and so does `out`, which may be `in`; with parts it holds those of
  // this rank, and is apart. Both stay alive until advance() says true.
  SharedSum(Window& window, const char* in, char* out, int64_t count, Reduction reduction,
            ScalarType dtype, Parts parts);
  // Does what can be done without waiting. True when the result is there. Throws, on every rank,
  // where the ranks pass different numbers of elements, dtypes, reductions or parts.
  bool advance();
  // Returns when advance() has more to do, or some time has passed.
  void wait_for_others();

 private:
  void copy_in();
  void reduce();
  void copy_out();
  // Whether all ranks ask for the same; what they ask for becomes `error_` otherwise.
  bool compare();
  // The rank's piece of the present chunk, in elements: its place in a slot, and in `in`.
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
  int64_t end_;                         // where `at_` ends
  int64_t width_;                       // bytes of an element
  Reduction reduction_;
  ScalarType dtype_;
  Parts parts_;
  int64_t layout_ = 0;  // a number that other parts do not give
  uint64_t turn_;
  std::string error_;
  enum class Phase { Begin, Reduce, CopyOut } phase_ = Phase::Begin;
};

}  // namespace lamella::distributed
