// The extension module lamella._C.
#include "lamella/core/thread_count.h"
#include "lamella/kernels/default_dtype.h"
#include "lamella/kernels/parallel.h"
#include "python/src/autograd.h"
#include "python/src/backend.h"
#include "python/src/bridge.h"
#include "python/src/errors.h"
#include "python/src/gil.h"
#include "python/src/script_object.h"
#include "python/src/torch_function.h"
#include "python/src/trace.h"

namespace lamella::python {
namespace {

PyObject* get_threads(PyObject*, PyObject*) { return PyLong_FromLong(get_num_threads()); }
PyObject* set_threads(PyObject*, PyObject* number) {
  int overflow = 0;
  long long threads = PyLong_AsLongLongAndOverflow(number, &overflow);
  if (threads == -1 && PyErr_Occurred() != nullptr) return nullptr;
  if (overflow != 0 || threads < 1 || threads > kMaxThreads) {
    return PyErr_Format(PyExc_RuntimeError,
                        "set_num_threads: expected a number of threads from 1 to %d, got %R",
                        kMaxThreads, number);
  }
  return guarded([&]() -> PyObject* {
    set_num_threads(static_cast<int>(threads));
    Py_RETURN_NONE;
  });
}

PyMethodDef functions[] = {
    {"get_num_threads", get_threads, METH_NOARGS,
     "The number of threads that one operator may use."},
    {"set_num_threads", set_threads, METH_O, "Sets the number of threads one operator may use."},
    {nullptr, nullptr, 0, nullptr}};

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "lamella._C",
                          "Lamella's operators and tensors.",
                          -1,
                          functions,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

}  // namespace

ScalarType default_dtype() { return get_default_dtype(); }
void change_default_dtype(ScalarType type) { set_default_dtype(type); }

}  // namespace lamella::python

PyMODINIT_FUNC PyInit__C() {
  using namespace lamella::python;
  PyObject* module = PyModule_Create(&definition);
  if (module == nullptr) return nullptr;
#ifdef Py_GIL_DISABLED
  PyUnstable_Module_SetGIL(module, Py_MOD_GIL_NOT_USED);
#endif
  if (add_errors(module) != 0 || add_gil(module) != 0 || add_values(module) != 0 ||
      add_generator(module) != 0 || add_tensor(module) != 0 || add_packets(module) != 0 ||
      add_interop(module) != 0 || add_build(module) != 0 || add_storage(module) != 0 ||
      add_library(module) != 0 || add_names(module) != 0 || add_modes(module) != 0 ||
      add_hooks(module) != 0 || add_nodes(module) != 0 || add_contexts(module) != 0 ||
      add_functions(module) != 0 || add_engine(module) != 0 || add_autograd_members(module) != 0 ||
      add_forward(module) != 0 || add_autocast(module) != 0 || add_compliance(module) != 0 ||
      add_entries(module) != 0 || add_vmap(module) != 0 || add_trace(module) != 0 ||
      add_python_key(module) != 0 || add_torch_function(module) != 0 || add_backend(module) != 0 ||
      add_functionalize(module) != 0 || add_profiler(module) != 0 || add_bridge(module) != 0 ||
      add_extension_table(module) != 0 || add_script_object(module) != 0) {
    Py_DECREF(module);
    return nullptr;
  }
  return module;
}
