// Collectives and regions of devices that are threads of this process. See participant.h.
#pragma once
#include "lamella/graph/evaluate/rules.h"
#include "lamella/graph/hlo/sharding.h"
#include "lamella/graph/runtime/participant.h"

namespace lamella::hlo {

// Runs a collective with the other devices of its group, and returns this device's result of
// `shape`: an array, or a tuple of as many arrays as there are operands.
Value evaluate_together(Step& step, const Participant& participant, const Shape* shape);

// Note [Manual regions]
//   In a program for all devices together, a region may be written for one of them: it takes parts
//   of the operands, and its results are parts of the results. It is a custom call to
//   kManualTarget with the region as its called computation and these frontend attributes:
//   in_shardings and out_shardings as tuples of shardings, and groups: the devices that take part
//   together, as replica_groups states them. Each device is a thread, and a region within another
//   has more of them.
inline constexpr std::string_view kManualTarget = "lamella.manual_computation";
bool is_manual_call(const Instruction& instruction);
Value evaluate_manual(Step& step);

// The part of an array that a device has, or the array itself; and the reverse, into `to`. Terms
// but the first are zeros, and are added up.
Value part_of(const Value& whole, const Sharding& sharding, int64_t device, const Shape* shape);
void join_part(const Value& part, const Sharding& sharding, int64_t device, Value& to);

}  // namespace lamella::hlo
