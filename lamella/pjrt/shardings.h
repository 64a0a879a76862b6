// Shardings of a program for several devices: of its parameters, and of its results.
#pragma once
#include <vector>

#include "lamella/graph/hlo/module.h"
#include "lamella/graph/hlo/sharding.h"

namespace lamella::pjrt {

struct ProgramShardings {
  std::vector<hlo::Sharding> parameters, outputs;
};
// Of a result without a stated sharding, the one that its operands give it, as far as that follows
// from the shapes: programs run whole, so that any will do, but users expect what they put in.
ProgramShardings shardings_of(const hlo::Module& module, int64_t devices);

}  // namespace lamella::pjrt
