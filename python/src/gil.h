// Calls into Python by C++: Note [Threads at the interpreter's end] in gil.cpp.
#pragma once
#include "python/src/ref.h"

namespace lamella::python {

// The functions of the C API, but a thread that Python wants to end does not come out of them.
inline PyObject* call_vector(PyObject* callable, PyObject* const* args, size_t count,
                             PyObject* names) noexcept {
  return PyObject_Vectorcall(callable, args, count, names);
}
inline PyObject* call_vector_method(PyObject* name, PyObject* const* args, size_t count,
                                    PyObject* names) noexcept {
  return PyObject_VectorcallMethod(name, args, count, names);
}
inline PyObject* call_object(PyObject* callable, PyObject* args, PyObject* keywords) noexcept {
  return PyObject_Call(callable, args, keywords);
}

}  // namespace lamella::python
