// Errors between Lamella and Python, both ways.
#pragma once
#include "python/src/object.h"

namespace lamella::python {

// raise_status() for a failed call of operator `op`: adds the operator's name to a text that has
// none, such as one of the standard library's, and to one that refuses a dtype, a device or an
// expanded tensor and names only an operator that `op` called.
PyObject* raise_status(lamella_status status, const char* op);
// An operator's message under the name of the function of lamella.nn.functional that called the
// operator, if one did; else the message as it is.
std::string named_by_caller(std::string_view text);
// Sets an exception with a text from outside, which need not be UTF-8; returns NULL.
PyObject* raise_text(PyObject* type, std::string_view text);
// A str as UTF-8, with escapes for what UTF-8 cannot encode; empty for other objects.
std::string text_of(PyObject* text);
// Puts an operator's name before the pending error of a conversion ("expected ..."); leaves other
// errors unchanged. Returns NULL.
PyObject* name_conversion_error(const char* op);
// Whether a tensor's elements are in memory; if not, because it wraps another tensor for a layer
// or class, false with a Python error set that begins with `what`.
bool has_memory(const lamella_tensor* tensor, const char* what);

}  // namespace lamella::python
