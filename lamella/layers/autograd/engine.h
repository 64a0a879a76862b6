// The engine: runs the backward graph. Internal to Lamella.
//
// Note [Two lanes]
//   While a run holds the fast lane, pending gradients of a node are stored in the node itself. The
//   process has one fast lane. A run that finds it taken (by another thread, or by the run that
//   started it: a backward inside a hook) keeps pending gradients in its own table. Nothing else
//   differs.
#pragma once
#include <span>

#include "lamella/layers/autograd/node.h"

namespace lamella::autograd {

struct BackwardOptions {
  bool retain_graph = false;
  bool create_graph = false;
  bool allow_unused = false;
  bool accumulate = true;  // into grad; otherwise results are captured
};

// An output that a run starts from, with its gradient.
struct Root {
  Edge edge;
  TensorBase grad;
};

// Runs backward from the roots. With `inputs` empty, gradients go to all leaves. Otherwise the run
// is restricted to the paths to these edges: with `accumulate` their leaves (or retained grads) get
// the gradients, else results[i] does (undefined: unused, an error unless allow_unused).
// `input_names`: for messages, may be empty. Never throws; the text is lamella_error_text().
LAMELLA_PRIVATE_API lamella_status run_backward(std::vector<Root> roots,
                                                const std::vector<Edge>& inputs,
                                                const BackwardOptions& options,
                                                std::vector<TensorBase>* results);

// Tensors, each a NULL where `edges` has an edge in place of it; `edges` may be shorter.
struct BackwardEnds {
  lamella_tensor* const* tensors;
  uint32_t count;
  std::span<const Edge> edges = {};
};
// lamella_backward_run() with edges among the roots and inputs. inputs.tensors: may be NULL for all
// leaves.
LAMELLA_PRIVATE_API lamella_status run_backward(const BackwardEnds& roots,
                                                lamella_tensor* const* grads,
                                                const BackwardEnds& inputs, uint32_t flags,
                                                lamella_tensor** results) noexcept;

// Backward inside of backward no longer moves to other stacks when this one ends.
LAMELLA_PRIVATE_API void keep_to_one_stack();
// Whether a mode written in Python sees all calls of this thread.
inline bool mode_sees_calls() {
  return (lamella_thread.included & detail::functionality_bit(detail::Functionality::Python)) != 0;
}
// The node that currently runs on this thread; null if none does.
LAMELLA_PRIVATE_API Node* current_node();
// Functions to be run when the outermost backward of this thread ends without an error.
LAMELLA_PRIVATE_API void queue_callback(void (*call)(void*), void (*dispose)(void*), void* context);

}  // namespace lamella::autograd
