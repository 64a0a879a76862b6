// A traced graph as a module.
//
// Note [Operators that stay operators]
//   Every node becomes a custom call to its own operator, so whatever was traced can be a module:
//   printed, read, run, looked at, combined with HLO. Parameters and constants of the graph become
//   constants of the module.
//   HLO knows no memory. A node that writes a tensor gives what is there afterwards, and who reads
//   the tensor later reads that. An input that is written is a result as well, the last ones of the
//   module, with an input_output_alias. Where memory is written through one tensor and read through
//   another, as through views, the graph is refused; functionalize makes one that is not.
//   Arrays of a module lie row by row, so nothing may ask for the strides that were recorded:
//   as_strided of what is not contiguous is refused as well.
#pragma once
#include <memory>
#include <string_view>

#include "lamella/graph/hlo/module.h"
#include "lamella/layers/trace/graph.h"

namespace lamella::hlo {

// A verified module whose parameters are the graph's inputs and whose result is the tuple of its
// outputs, undefined ones left out, and of the inputs that it writes. Throws an Error that names
// the node where one cannot be an instruction.
std::unique_ptr<Module> module_of_graph(const tracing::Graph& graph, std::string_view name);

}  // namespace lamella::hlo
