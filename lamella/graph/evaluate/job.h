// Collectives of a program that runs on the ranks of a job: one device a rank.
//
// Note [Programs of many devices]
//   A module whose header says num_partitions or replica_count is the program of each of so many
//   devices. In a process that has begun a job (lamella.distributed.init_process_group()) of as
//   many ranks, this rank is the device of that number, replica by replica, and collectives call
//   the operators of namespace dist, which are found by their names: this library does not know
//   MPI. Without a job such a module runs as the only device there is.
#pragma once
#include <optional>

#include "lamella/graph/evaluate/rules.h"

namespace lamella::hlo {

struct Job {
  int64_t rank = 0;
  int64_t partitions = 1;
};
// The job that the instruction's module runs on, or none. Throws if it has another number of ranks
// than the module has devices.
std::optional<Job> job_of(const Instruction& instruction);

// What a collective gives on this rank, of `shape`: an array, or a tuple of as many as operands.
Value evaluate_on_job(Step& step, const Job& job, const Shape* shape);

}  // namespace lamella::hlo
