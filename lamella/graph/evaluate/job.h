// Collectives of a program that runs on the ranks of a job, one device per rank.
//
// Note [Programs of many devices]
//   A module whose header states num_partitions or replica_count is the program of that many
//   devices. In a process of a job (lamella.distributed.init_process_group()) with as many ranks,
//   each rank is the device of its number, ordered by replica and then partition. Collectives call
//   the operators of namespace dist by name, because this library does not link MPI. Without a job,
//   such a module runs on a single device.
#pragma once
#include <optional>

#include "lamella/graph/evaluate/rules.h"

namespace lamella::hlo {

struct Job {
  int64_t rank = 0;
  int64_t partitions = 1;
};
// The job that the instruction's module runs on, or nullopt. Throws if the number of ranks differs
// from the module's number of devices.
std::optional<Job> job_of(const Instruction& instruction);

// Runs a collective and returns this rank's result of `shape`: an array, or a tuple of as many
// arrays as there are operands.
Value evaluate_on_job(Step& step, const Job& job, const Shape* shape);

}  // namespace lamella::hlo
