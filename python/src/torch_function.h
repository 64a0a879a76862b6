// __torch_function__: arguments of other types, and of subclasses, answer a call in the operator's
// place.
//
// Note [Off until asked for]
//   Nobody pays for it before lamella.compat, or the first sparse tensor, switches it on: a call
//   looks at one word. From then on each call looks at the types of its arguments.
#pragma once
#include "python/src/ref.h"

namespace lamella::python {

extern bool torch_function_on;

// Asks the arguments. True if one of them has a say: `*result` is the answer then, or NULL with a
// Python error set.
bool ask_arguments(PyObject* function, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames,
                   PyObject** result);
// As ask_arguments() for an operator behind a slot of Tensor, which is Tensor.NAME, or lamella.NAME
// where the first argument is no tensor.
bool ask_operands(const char* name, PyObject* const* args, Py_ssize_t count, PyObject** result);

// Asks the mode of this thread alone, for a function of the module lamella that takes no tensors.
bool ask_mode(const char* name, PyObject* args, PyObject* kwargs, PyObject** result);

int add_torch_function(PyObject* module);

}  // namespace lamella::python
