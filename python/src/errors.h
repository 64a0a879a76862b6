// Errors between Lamella and Python, both ways.
#pragma once
#include "python/src/object.h"

namespace lamella::python {

// Sets the Python exception for a failed status from this thread's error text; returns NULL. A
// Python error that passed through C++ comes back as it was.
PyObject* raise_status(lamella_status status);
// The same for a failed call of operator `op`: a text that names nothing, such as one of the
// standard library's, gets the operator's name.
PyObject* raise_status(lamella_status status, const char* op);
// Sets an exception with a text from outside, which need not be UTF-8; returns NULL.
PyObject* raise_text(PyObject* type, std::string_view text);
// A str as UTF-8, with escapes for what UTF-8 cannot say; empty for anything else.
std::string text_of(PyObject* text);
// Lets a pending error of a conversion ("expected ...") begin with an operator's name; those of
// other code stay as they are. Returns NULL.
PyObject* name_conversion_error(const char* op);
// Keeps the pending Python error of this thread, for raise_status(), and returns the status that
// carries it through C++.
lamella_status keep_python_error();
// To be called in a catch (...): sets the Python exception and returns NULL.
PyObject* raise_current_exception();

// Whether a tensor's elements stand in memory; if not, because it is a wrapper of some layer or
// class, false with a Python error set that begins with `what`.
bool has_memory(const lamella_tensor* tensor, const char* what);

// Runs a function that may throw; a thrown error becomes a Python exception and `failed`.
template <class F, class R>
auto guarded(F&& body, R failed) -> R {
  try {
    return body();
  } catch (...) {
    raise_current_exception();
    return failed;
  }
}
template <class F>
PyObject* guarded(F&& body) {
  return guarded(std::forward<F>(body), static_cast<PyObject*>(nullptr));
}

}  // namespace lamella::python
