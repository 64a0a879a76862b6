// A traced graph as a module.
//
// Note [From a graph to a module]
//   Each node becomes opcodes by its operator's rule (lowering.h) where rules are asked for and
//   there is one, and otherwise a custom call to its own operator. So whatever was traced can be a
//   module: printed, read, run, looked at, combined with HLO. A part of a graph is a module as
//   well: values that it is given are parameters, and only nodes that its results need are in it.
//   Other values from outside are constants.
//   HLO knows no memory. A node that writes a tensor gives what is there afterwards, and who reads
//   the tensor later reads that. An input that is written is a result as well, the last ones of the
//   module, with an input_output_alias. Where memory is written through one tensor and read through
//   another, as through views, the graph is refused; functionalize makes one that is not.
//   Arrays of a module lie row by row, so nothing may ask for the strides that were recorded:
//   as_strided of what is not contiguous is refused as well.
#pragma once
#include <memory>
#include <string_view>
#include <vector>

#include "lamella/graph/hlo/module.h"
#include "lamella/layers/trace/graph.h"

namespace lamella::hlo {

struct GraphPart {
  std::vector<tracing::ValueId> inputs;
  std::vector<tracing::ValueId> outputs;  // kNoValue: an undefined tensor, which is left out
  bool rules = false;                     // lower operators that have rules
  bool writes = true;                     // what is written to inputs is a result
  // The last inputs of the graph, on which backward depends: see divide_graph. A part that writes
  // is forward. Each part keeps its nodes with side effects.
  size_t tangents = 0;
};
// All of a graph: its inputs and outputs.
GraphPart whole_graph(const tracing::Graph& graph);

// A verified module whose parameters are the part's inputs and whose result is the tuple of its
// outputs and of the inputs that it writes. Throws an Error that names the node where one cannot be
// an instruction.
std::shared_ptr<const Module> module_of_graph(const tracing::Graph& graph, std::string_view name,
                                              const GraphPart& part);

// A graph that records a function and its gradient falls into two parts: what depends on its last
// `tangents` inputs is backward, all else forward; the first `results` outputs are the function's.
// Gives the values that the forward part has to keep for the backward part. Views of them are made
// again.
std::vector<tracing::ValueId> divide_graph(const tracing::Graph& graph, size_t tangents,
                                           size_t results);

}  // namespace lamella::hlo
