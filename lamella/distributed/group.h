// The job and its groups of ranks.
#pragma once
#include <mpi.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "lamella/distributed/window.h"
#include "lamella/lamella.h"

namespace lamella::distributed {

struct Group {
  int64_t number = 0;
  MPI_Comm comm = MPI_COMM_NULL;   // null if this rank is not a member
  MPI_Comm check = MPI_COMM_NULL;  // in debug mode: for comparing the ranks' calls
  int rank = -1;
  int size = 0;
  std::vector<int> ranks;          // of the members, in the group of all
  std::unique_ptr<Window> window;  // where all members are on one machine
};

// Starts MPI unless the process has done so.
void init(bool debug);
bool is_initialized();
bool debug_mode();
// Waits until all ranks call it, and ends MPI if init() began it.
void finalize();
[[noreturn]] void abort(std::string_view reason);

// The group with this number. Throws, with the operator's name, if the job was not started or has
// no such group.
const Group& group_of(int64_t number, const char* op_name);
// The same for a collective, which only members may call.
const Group& joined_group(int64_t number, const char* op_name);
int64_t new_group(IntArrayRef ranks);

// Throws with MPI's error text if a call of MPI failed.
void check_mpi(int status, const char* op_name);

}  // namespace lamella::distributed
