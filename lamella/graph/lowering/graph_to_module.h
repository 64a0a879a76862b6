// Conversion of traced graphs to modules.
//
// Note [From a graph to a module]
//   Each node becomes opcodes by its operator's rule (lowering.h), if rules are requested and there
//   is one, and otherwise a custom call to its operator. So every traced graph can become a module
//   that can be printed, parsed, run, viewed, and combined with HLO. A part of a graph can become a
//   module, too: its inputs are parameters, and it has only the nodes that its results need. Other
//   values from outside the part are constants.
//   HLO has values, not memory. A node that writes a tensor returns the new contents, and later
//   reads of the tensor use them. Inputs that are written are additional results, after all others,
//   each with an input_output_alias. A graph that writes memory through one tensor and reads it
//   through another, such as a view, is refused; functionalize removes such writes.
//   Arrays of a module are row-major, so operators cannot use recorded strides: as_strided of a
//   tensor that is not dense is refused.
#pragma once
#include <memory>
#include <string_view>
#include <vector>

#include "lamella/graph/hlo/module.h"
#include "lamella/layers/trace/graph.h"

namespace lamella::hlo {

struct GraphPart {
  std::vector<tracing::ValueId> inputs;
  std::vector<tracing::ValueId> outputs;  // kNoValue is an undefined tensor, which is omitted
  bool rules = false;                     // lower operators that have rules
  bool writes = true;                     // written inputs are results
  // The values on which the backward part depends: see divide_graph. The forward part has `writes`.
  // Each part keeps its nodes with side effects.
  std::vector<tracing::ValueId> tangents = {};
  // Whether functions that machine code takes from the kernels become opcodes as well, for another
  // compiler. Needs `rules`.
  bool portable = false;
};
// The part that is the whole graph, with all its inputs and outputs.
GraphPart whole_graph(const tracing::Graph& graph);

// A verified module whose parameters are the part's inputs and whose result is the tuple of its
// outputs and the inputs that it writes. Throws an Error that names the node if a node cannot be
// converted.
std::shared_ptr<const Module> module_of_graph(const tracing::Graph& graph, std::string_view name,
                                              const GraphPart& part);

// Divides a graph that records a function and its gradient: the backward part is all that depends
// on the values `tangents`, and the rest is the forward part. The first `results` outputs are the
// function's. Returns the values that the forward part must save for the backward
// part. Instead of views their bases are saved; the backward part makes the views again.
std::vector<tracing::ValueId> divide_graph(const tracing::Graph& graph,
                                           const std::vector<tracing::ValueId>& tangents,
                                           size_t results);

}  // namespace lamella::hlo
