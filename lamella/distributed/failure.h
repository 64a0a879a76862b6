// State that the ranks of one machine share, so that a rank that is told to end can report why.
//
// Note [How a job ends]
//   MPI does not report a rank that died: mpirun sees it, and tells all others to end (SIGTERM).
//   So each rank has a slot in memory that the ranks of a machine share (a window of MPI): its
//   process, the operator it is in, and whether it raised an error. The handler of SIGTERM reads
//   the slots, writes a line that names the failed rank, its operator, and what this rank was
//   doing, and lets the signal end the process. It calls nothing but write(), kill() and the like.
//   Ranks of other machines are not seen; mpirun itself names their machine. Ctrl-C is a
//   KeyboardInterrupt between operators and while a work is waited for. A blocking MPI call
//   cannot be left by an exception: the rank then reports where it was and ends.
#pragma once
#include <mpi.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace lamella::distributed {

// Opens the slots; all ranks call it.
void open_slots(int rank);
void close_slots();

// Marks this rank's slot as inside an operator for the lifetime of the object. `whole`: the
// operator runs on the group of all ranks. `returns`: the operator polls for interrupts, so that
// Ctrl-C can be raised as usual.
class Inside {
 public:
  Inside(int kind, bool whole, bool returns);
  ~Inside();
  Inside(const Inside&) = delete;

 private:
  int outer_;
};

// Records in this rank's slot that it failed, and why, for the other ranks to read.
void mark_failed(std::string_view reason);
// A rank of this machine that has waited for `seconds` in an operator of all ranks, and the name of
// that operator; or -1.
int rank_left_waiting(double seconds, const char** operator_name);
// "rank 1 is in recv, rank 2 in no operator" of the ranks given; empty if they are elsewhere.
std::string whereabouts(const int* ranks, int count);

}  // namespace lamella::distributed
