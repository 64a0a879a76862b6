// The extension module lamella._hlo.
#include "python/src_hlo/builder.h"

namespace lamella::python {

const Bridge* bridge = nullptr;

// The functions of kit.h, forwarded to lamella._C.
PyObject* raise_status(lamella_status status) { return bridge->raise_status(status); }
lamella_status keep_python_error() { return bridge->keep_python_error(); }
PyThreadState* release_gil() { return bridge->release_gil(); }
void restore_gil(PyThreadState* released) { bridge->restore_gil(released); }
GilEntry enter_python() { return bridge->enter_python(); }
void leave_python(GilEntry entered) { bridge->leave_python(entered); }

PyTypeObject* add_type(PyObject* module, PyType_Spec* spec) {
  auto* type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(spec));
  if (type == nullptr) return nullptr;
  // Types without a `new` cannot be instantiated from Python; functions make their objects.
  bool makes = false;
  for (const PyType_Slot* slot = spec->slots; slot->slot != 0; ++slot)
    makes |= slot->slot == Py_tp_new;
  if (!makes) type->tp_new = nullptr;
  const char* name = strrchr(spec->name, '.') + 1;
  Py_INCREF(type);
  if (PyModule_AddObject(module, name, reinterpret_cast<PyObject*>(type)) != 0) return nullptr;
  return type;
}

std::string_view text_of(PyObject* object, const char* what) {
  if (!PyUnicode_Check(object)) {
    PyErr_Format(PyExc_TypeError, "%s: expected a str, got %s", what, Py_TYPE(object)->tp_name);
    throw PythonError();
  }
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(object, &size);
  if (text == nullptr) throw PythonError();
  return {text, static_cast<size_t>(size)};
}

PyObject* numbers_object(std::span<const int64_t> numbers) {
  Ref tuple(required(PyTuple_New(static_cast<Py_ssize_t>(numbers.size()))));
  for (size_t i = 0; i < numbers.size(); ++i) {
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i),
                     required(PyLong_FromLongLong(numbers[i])));
  }
  return tuple.release();
}

namespace {

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "lamella._hlo",
                          "HLO: text, modules, builder, executables.",
                          -1,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

}  // namespace
}  // namespace lamella::python

PyMODINIT_FUNC PyInit__hlo() {
  using namespace lamella::python;
  Ref base(PyImport_ImportModule("lamella._C"));
  if (!base) return nullptr;
  bridge = static_cast<const Bridge*>(PyCapsule_Import(kBridgeName, 0));
  if (bridge == nullptr) return nullptr;
  Ref module(PyModule_Create(&definition));
  if (!module) return nullptr;
#ifdef Py_GIL_DISABLED
  PyUnstable_Module_SetGIL(module.get(), Py_MOD_GIL_NOT_USED);
#endif
  if (add_shapes(module.get()) != 0 || add_modules(module.get()) != 0 ||
      add_views(module.get()) != 0 || add_values(module.get()) != 0 ||
      add_executables(module.get()) != 0 || add_targets(module.get()) != 0 ||
      add_ffi(module.get()) != 0 || add_operators(module.get()) != 0 ||
      add_compiled(module.get()) != 0 || add_builder(module.get()) != 0) {
    return nullptr;
  }
  return module.release();
}
