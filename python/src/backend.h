// What the extension's module has of backends.
#pragma once
#include "python/src/object.h"

namespace lamella::python {

int add_backend(PyObject* module);  // backend.cpp; -1 with a Python error set if it fails

}  // namespace lamella::python
