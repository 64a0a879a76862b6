// __torch_function__: arguments of other types, and of subclasses, handle a call instead of the
// operator.
//
// Note [Off until asked for]
//   Before lamella.compat, or the first sparse tensor, switches it on, a call only tests one word.
//   After that each call looks at the types of its arguments.
#pragma once
#include "python/src/ref.h"

namespace lamella::python {

extern bool torch_function_on;

// Asks the arguments. True if one of them handles the call: `*result` is then its result, or NULL
// with a Python error set.
bool ask_arguments(PyObject* function, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames,
                   PyObject** result);
// ask_arguments() for an operator behind a slot of Tensor, which is Tensor.NAME, or lamella.NAME if
// the first argument is not a tensor.
bool ask_operands(const char* name, PyObject* const* args, Py_ssize_t count, PyObject** result);

// Asks only the mode of this thread, for a function of the module lamella that takes no tensors.
bool ask_mode(const char* name, PyObject* args, PyObject* kwargs, PyObject** result);

}  // namespace lamella::python
