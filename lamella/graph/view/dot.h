// Modules as text for Graphviz.
#pragma once
#include <string>

#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// A directed graph: a box for each instruction, coloured by family; an edge for each operand, with
// its shape; a cluster for each computation. A computation that one fusion alone calls stands in
// the fusion's place; a dashed edge leads from other callers to the computation they call.
std::string to_dot(const Module& module);

}  // namespace lamella::hlo
