// The extension module lamella._C.
#include "lamella/core/thread_count.h"
#include "lamella/kernels/default_dtype.h"
#include "lamella/kernels/dispatch_stub.h"
#include "lamella/kernels/parallel.h"
#include "python/src/object.h"

// The parts of the module. Each source file that is one defines add_PART(), which adds its types
// and functions to the module and returns -1 with a Python error set if it fails.
// clang-format off
#define LAMELLA_MODULE_PARTS(X)                                                              \
  X(errors) X(gil) X(values) X(generator) X(tensor) X(packets) X(interop) X(build)           \
  X(storage) X(library) X(names) X(modes) X(hooks) X(nodes) X(contexts) X(functions)         \
  X(engine) X(autograd_members) X(forward) X(autocast) X(compliance) X(entries) X(vmap)      \
  X(trace) X(python_key) X(torch_function) X(backend) X(functionalize) X(profiler) X(bridge) \
  X(extension_table) X(script_object)
// clang-format on

namespace lamella::python {

#define LAMELLA_DECLARE(part) int add_##part(PyObject* module);
LAMELLA_MODULE_PARTS(LAMELLA_DECLARE)
#undef LAMELLA_DECLARE

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

PyObject* cpu_capability(PyObject*, PyObject*) {
  return guarded([] { return PyUnicode_FromString(toString(get_cpu_capability())); });
}

PyMethodDef functions[] = {
    {"_cpu_capability", cpu_capability, METH_NOARGS, nullptr},
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
#define LAMELLA_ADD(part) || add_##part(module) != 0
  if (false LAMELLA_MODULE_PARTS(LAMELLA_ADD)) {
#undef LAMELLA_ADD
    Py_DECREF(module);
    return nullptr;
  }
  return module;
}
