// Shardings of a program for several devices: of its parameters, and of its results.
#pragma once
#include <vector>

#include "lamella/graph/hlo/module.h"
#include "lamella/graph/hlo/sharding.h"

namespace lamella::pjrt {

struct ProgramShardings {
  std::vector<hlo::Sharding> parameters, outputs;
};
// A result without a stated sharding gets that of its operands where the shapes allow it. Programs
// run whole, so any sharding gives right values; users expect that of their arguments.
ProgramShardings shardings_of(const hlo::Module& module, int64_t devices);

}  // namespace lamella::pjrt
