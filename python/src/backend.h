// Functions of the extension for backends: devices, streams, events and generators.
#pragma once
#include "python/src/object.h"

namespace lamella::python {

int add_backend(PyObject* module);  // backend.cpp; -1 with a Python error set if it fails

}  // namespace lamella::python
