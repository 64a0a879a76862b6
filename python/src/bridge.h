// The table of functions of lamella._C that the package's other extension modules use: its types,
// its errors, the GIL. A capsule named lamella._C._bridge holds one.
#pragma once
#include "lamella/abi/abi.h"
#include "python/src/kit.h"

namespace lamella::python {

inline constexpr const char* kBridgeName = "lamella._C._bridge";

struct Bridge {
  PyTypeObject* tensor_type;
  // The object of a tensor; takes over one reference.
  PyObject* (*wrap)(lamella_tensor* owned);
  // The tensor of a Tensor object whose elements are about to be read: not a wrapper, not one whose
  // gradient would be lost. An owned reference, or NULL with a Python error that begins with
  // `what`.
  lamella_tensor* (*read)(PyObject* tensor, const char* what);
  // A tensor over the memory of an object with the buffer protocol: owned, or NULL with a Python
  // error.
  lamella_tensor* (*from_buffer)(PyObject* object);
  // The functions of kit.h.
  PyObject* (*raise_status)(lamella_status status);
  lamella_status (*keep_python_error)();
  PyThreadState* (*release_gil)();
  void (*restore_gil)(PyThreadState* released);
  GilEntry (*enter_python)();
  void (*leave_python)(GilEntry entered);
  // The tracing::Graph of a lamella._C graph object; NULL with a Python error for other objects.
  const void* (*graph)(PyObject* object);
};

}  // namespace lamella::python
