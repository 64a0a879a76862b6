// Kernels that are functions in Python.
//
// Note [From Python to Python]
//   An operator called from Python whose kernel is a Python function needs no conversion to C++
//   values: call_direct() finds the kernel by the keys of the arguments and calls the function with
//   the original objects. It does so only if the boxed call would pass equal arguments: each is
//   already of its schema's type, and no layer takes part in the call except autograd by
//   lamella.library.register_autograd(). Other calls go through python_kernel(), the boxed form.
#pragma once
#include "python/src/op_facts.h"

namespace lamella::python {

// The context of such a kernel; owns what it points to.
struct PythonKernel {
  PyObject* function = nullptr;
  bool with_keyset = false;  // the key set of the call is the first argument
  bool is_fallback = false;  // the operator is the first argument
  // A custom operator: its results must not share memory with its arguments, and the arguments that
  // its schema writes count as written.
  bool is_custom = false;
  // Set by register_autograd(): the class whose backward is the operator's, and its setup_context
  // (or NULL). `function` is then the kernel written in Python, for calls that are not direct.
  PyObject* gradient = nullptr;
  PyObject* setup_context = nullptr;
};

// The boxed form. Its context is a PythonKernel.
lamella_status python_kernel(const lamella_kernel* kernel, const lamella_operator* op,
                             uint64_t key_set, const lamella_value* arguments,
                             lamella_value* returns);

// Makes the call if it can be direct. True: its result, or NULL with a Python error set, is in
// *result.
bool call_direct(OpFacts& facts, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames,
                 PyObject** result);

// A recorded call of an operator with a gradient class: autograd_function.cpp. No argument contains
// tensors in a list; `below` makes the call below autograd.
PyObject* record_custom(PyObject* gradient, PyObject* setup_context, PyObject* below,
                        PyObject* const* args, Py_ssize_t count);

}  // namespace lamella::python
