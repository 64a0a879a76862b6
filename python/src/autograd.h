// Shared declarations of autograd's Python binding: modes, hooks, nodes and the engine.
//
// Note [Ownership of the node of a Python function]
//   The object `ctx` that forward and backward get is also the node's object in Python. The C++
//   node owns it and it points back without owning, so that tensors, nodes and contexts form no
//   cycle by themselves. A cycle that a user makes, by keeping an output in the context, is seen by
//   Python's collector: a tensor object that alone owns its tensor visits the objects that the
//   tensor's nodes own (see Note [What the collector sees]).
#pragma once
#include "lamella/layers/autograd/variable.h"
#include "python/src/call.h"

namespace lamella::autograd {
struct SavedHooks;
}

namespace lamella::python {

// Reads the arguments of a vectorcall by name into `values`: borrowed, NULL where not given. False
// with a TypeError set if that fails. The first `required` must be given.
bool read_arguments(const char* what, const char* const* names, int count, int required,
                    PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames, PyObject** values);

// ---- Nodes (autograd_node.cpp) ----

// A node of the backward graph. For a built-in operator `node` is owned. For a Python function it
// is not owned, and NULL before forward has run and after the graph is gone.
struct PyNode {
  PyObject_HEAD autograd::Node* node;
  PyObject* dict;
  PyObject* weak_references;
};
extern PyTypeObject NodeType;

// The object of a node; None for a null one.
PyObject* wrap_node(autograd::NodePtr node);
// The node behind an object; null with a Python error set if it is gone.
autograd::NodePtr hold_node(PyObject* self);

// ---- Hooks (autograd_hooks.cpp) ----

// The object that removes a tensor's hook with `remove`. Does not keep the tensor alive.
PyObject* make_handle(WeakTensorRef tensor, uint64_t id, void (*remove)(lamella_tensor*, uint64_t),
                      PyObject* cell);
// Hooks of nodes. Each returns the handle.
PyObject* add_node_hook(autograd::Node* node, PyObject* hook, bool before);
PyObject* add_accumulate_hook(PyObject* tensor, PyObject* hook);
// Visits the Python objects that only a tensor's C++ side owns: Note [What the collector sees].
int visit_tensor(lamella_tensor* tensor, visitproc visit, void* arg);
// The same of a node, where its one reference is the object's.
int visit_owned(autograd::Node* node, visitproc visit, void* arg);
// Hooks of saved tensors, for both functions.
std::shared_ptr<autograd::SavedHooks> make_saved_hooks(PyObject* pack, PyObject* unpack);
// Calls a tensor's hook; its context is the Python function.
lamella_status call_tensor_hook(void* context, lamella_tensor* grad, lamella_tensor** replacement);
// Releases a reference that C++ held, from any thread.
void release_object(void* object);
// Runs end(what) now if this thread holds the GIL, else soon on a thread that holds it. It never
// waits for the GIL, as the caller may hold locks of autograd.
void end_with_gil(void (*end)(void*), void* what);
void end_waiting();
// Makes Python's garbage collector track a tensor object, if it does not yet.
void track(PyObject* tensor);

// ---- Functions in Python (autograd_function.cpp) ----

extern PyTypeObject ContextType;

// ---- Tensors ----

// Tensor.backward
PyObject* tensor_backward(PyObject* self, PyObject* const* args, Py_ssize_t nargs,
                          PyObject* kwnames);

}  // namespace lamella::python
