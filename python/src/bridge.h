// What lamella._C lends to the package's other extension modules: its types, its errors, its way of
// taking and giving up the GIL. A capsule named lamella._C._bridge holds one.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "lamella/abi/abi.h"

namespace lamella::python {

inline constexpr const char* kBridgeName = "lamella._C._bridge";

struct Bridge {
  PyTypeObject* tensor_type;
  // The object of a tensor; takes over one reference.
  PyObject* (*wrap)(lamella_tensor* owned);
  // Sets the Python exception of a failed status; returns NULL.
  PyObject* (*raise_status)(lamella_status status);
  // Keeps the pending Python error and returns the status that carries it through C++.
  lamella_status (*keep_python_error)();
  // The tensor of a Tensor object whose elements are about to be read: not a wrapper, not one whose
  // gradient would be lost. An owned reference, or NULL with a Python error that begins with
  // `what`.
  lamella_tensor* (*read)(PyObject* tensor, const char* what);
  // A tensor over the memory of an object with the buffer protocol: owned, or NULL with a Python
  // error.
  lamella_tensor* (*from_buffer)(PyObject* object);
  // Gives the GIL up, and takes it again.
  void* (*release_gil)();
  void (*restore_gil)(void* released);
  // Takes the GIL on a thread that may not have it, and gives it back.
  void* (*enter_python)();
  void (*leave_python)(void* entered);
  // The tracing::Graph of a lamella._C graph object; NULL with a Python error for other objects.
  const void* (*graph)(PyObject* object);
};

int add_bridge(PyObject* module);  // bridge.cpp

}  // namespace lamella::python
