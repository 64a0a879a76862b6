// The engine: runs the backward graph. Internal to Lamella.
//
// Note [Two lanes]
//   Gradients that wait for a node stand in the node itself while a run holds the fast lane, of
//   which the process has one. A run that finds it taken (another thread's, or the run that it was
//   started from: a backward inside a hook) keeps them in a table of its own. Nothing else differs.
#pragma once
#include "lamella/layers/autograd/node.h"

namespace lamella::autograd {

struct BackwardOptions {
  bool retain_graph = false;
  bool create_graph = false;
  bool allow_unused = false;
  bool accumulate = true;  // into grad; otherwise results are captured
};

// Where a run starts.
struct Root {
  Edge edge;
  TensorBase grad;
};

// Runs from the roots. With `inputs` empty, gradients go to all leaves. Otherwise the run is held
// to the paths to these edges; with `accumulate` their leaves (or retained grads) get the
// gradients, else results[i] does (undefined: unused, an error unless allow_unused).
// `input_names`: for messages, may be empty. Never throws; the text is lamella_error_text().
LAMELLA_PRIVATE_API lamella_status run_backward(std::vector<Root> roots,
                                                const std::vector<Edge>& inputs,
                                                const BackwardOptions& options,
                                                std::vector<TensorBase>* results);

// The node that runs on this thread now; null where none does.
LAMELLA_PRIVATE_API Node* current_node();
// Functions to be run when the outermost backward of this thread ends without an error.
LAMELLA_PRIVATE_API void queue_callback(void (*call)(void*), void (*dispose)(void*), void* context);

}  // namespace lamella::autograd
