// Errors between Lamella and Python, both ways.
#pragma once
#include "python/src/object.h"

namespace lamella::python {

// raise_status() for a failed call of operator `op`: a text that names nothing, such as one of the
// standard library's, gets the operator's name.
PyObject* raise_status(lamella_status status, const char* op);
// Sets an exception with a text from outside, which need not be UTF-8; returns NULL.
PyObject* raise_text(PyObject* type, std::string_view text);
// A str as UTF-8, with escapes for what UTF-8 cannot say; empty for anything else.
std::string text_of(PyObject* text);
// Lets a pending error of a conversion ("expected ...") begin with an operator's name; those of
// other code stay as they are. Returns NULL.
PyObject* name_conversion_error(const char* op);
// Whether a tensor's elements stand in memory; if not, because it is a wrapper of some layer or
// class, false with a Python error set that begins with `what`.
bool has_memory(const lamella_tensor* tensor, const char* what);

}  // namespace lamella::python
