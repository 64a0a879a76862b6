// Python objects stored with a node: its metadata, and in anomaly mode the stack that recorded it.
#pragma once
#include "python/src/autograd.h"

namespace lamella::python {

// A Python object that C++ holds.
struct HeldObject : lamella_object {
  PyObject* object;
};
// Takes one reference over.
lamella_object* hold_object(PyObject* owned);
// The object, borrowed; NULL if C++ holds something else there.
PyObject* held_object(lamella_object* object);

// The current Python stack.
lamella_object* capture_calls();
// Appends a captured stack to `text`, as lines.
void describe_calls(lamella_object* where, std::string* text);

// The node's metadata dict, made when first asked for; a new reference.
PyObject* metadata_of(autograd::Node* node);

}  // namespace lamella::python
