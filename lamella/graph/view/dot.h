// Converts modules to Graphviz text.
#pragma once
#include <string>

#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// A directed graph with a box for each instruction, coloured by family, an edge with the shape for
// each operand, and a cluster for each computation. A computation with a single fusion as its only
// caller replaces the fusion's box; dashed edges lead from other callers to their computations.
std::string to_dot(const Module& module);

}  // namespace lamella::hlo
