// Reports to the trace of this thread from Python, and values of graphs as Python objects.
#pragma once
#include "lamella/layers/trace/graph.h"
#include "lamella/layers/trace/recorder.h"
#include "python/src/program.h"

namespace lamella::python {

bool note_read_slowly(lamella_tensor* tensor, const char* what);
// To be called before elements of a tensor are read, or its memory handed out, outside of
// operators. False: a Python error is set.
inline bool note_read(lamella_tensor* tensor, const char* what) {
  return !tracing::is_tracing() || note_read_slowly(tensor, what);
}
// To be called with a tensor that was made from Python data.
void note_made(PyObject* tensor);

// Installs the hooks that give nodes of graphs the source lines of their calls (trace_places.cpp).
void install_place_hooks();

// Arguments and returns of nodes as objects that JSON takes (trace_values.cpp): numbers, text,
// None, and dictionaries of one entry for all else: {"%": 3} is value 3 of the graph, {"dtype":
// "float32"} a dtype.
PyObject* operand_to_python(const tracing::Graph& graph, const tracing::Operand& operand,
                            SchemaType type);
// The inverse: an owned value with undefined tensors, and the ids of the tensors. False: a Python
// error is set.
bool operand_from_python(PyObject* object, SchemaType type, IValue* value,
                         std::vector<tracing::ValueId>* ids);

// The graph of a graph object; NULL with a TypeError for other objects.
const void* traced_graph(PyObject* object);

}  // namespace lamella::python
