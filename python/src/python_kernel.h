// Kernels that are functions in Python.
//
// Note [From Python to Python]
//   An operator called from Python whose kernel is a Python function needs nothing of what lies
//   between: call_direct() looks at the keys of the arguments and at the kernel that they lead to,
//   and calls the function with the objects as they came. That is taken only where the usual way
//   would give the function equal arguments: each is already of its schema's type, and no layer has
//   a part in the call except autograd by lamella.library.register_autograd(). All other calls go
//   through python_kernel(), the boxed form.
#pragma once
#include "python/src/op_facts.h"

namespace lamella::python {

// The context of such a kernel; owns what it points to.
struct PythonKernel {
  PyObject* function = nullptr;
  bool with_keyset = false;  // the key set of the call is the first argument
  bool is_fallback = false;  // the operator is the first argument
  // A custom operator: its results must not share memory with its arguments, and what its schema
  // says it writes counts as written.
  bool is_custom = false;
  // What register_autograd() gave: the class whose backward is the operator's, and what keeps for
  // it (or NULL). `function` is then the kernel written in Python, for calls that are not direct.
  PyObject* gradient = nullptr;
  PyObject* setup_context = nullptr;
};

// The boxed form. Its context is a PythonKernel.
lamella_status python_kernel(const lamella_kernel* kernel, const lamella_operator* op,
                             uint64_t key_set, const lamella_value* arguments,
                             lamella_value* returns);

// Whether the call was made here; its result, or NULL with a Python error set, is then in *result.
bool call_direct(OpFacts& facts, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames,
                 PyObject** result);

// A call of an operator with a gradient class, recorded: autograd_function.cpp. All arguments are
// tensors or no tensors at all; `below` makes the call below autograd.
PyObject* record_custom(PyObject* gradient, PyObject* setup_context, PyObject* below,
                        PyObject* const* args, Py_ssize_t count);

}  // namespace lamella::python
