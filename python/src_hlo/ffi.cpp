// Registers typed handlers and their types from Python, by addresses taken from capsules.
#include "lamella/graph/custom_call/ffi/registration.h"
#include "lamella/graph/custom_call/ffi/types.h"
#include "python/src_hlo/hlo.h"

namespace lamella::python {
namespace {

namespace ffi = hlo::ffi;

// The address given as an int; NULL for None.
void* address_from(PyObject* object) {
  if (object == Py_None) return nullptr;
  void* address = PyLong_AsVoidPtr(object);
  if (PyErr_Occurred() != nullptr) throw PythonError();
  return address;
}
ffi::Handler* handler_from(PyObject* object) {
  return reinterpret_cast<ffi::Handler*>(address_from(object));
}

// (name, platform, instantiate, prepare, initialize, execute, traits, where, replace)
PyObject* register_handlers(PyObject*, PyObject* args) {
  const char *name, *platform, *where;
  PyObject *instantiate, *prepare, *initialize, *execute;
  unsigned traits;
  int replace;
  if (!PyArg_ParseTuple(args, "ssOOOOIsp", &name, &platform, &instantiate, &prepare, &initialize,
                        &execute, &traits, &where, &replace)) {
    return nullptr;
  }
  return guarded([&] {
    ffi::HandlerBundle bundle{handler_from(instantiate), handler_from(prepare),
                              handler_from(initialize), handler_from(execute)};
    ffi::Registration how;
    how.traits = traits;
    how.where = where;
    how.replace = replace != 0;
    {
      // Without the GIL, as registration calls the handlers, which are foreign code.
      WithoutGil others;
      ffi::register_handlers(name, platform, bundle, std::move(how));
    }
    Py_RETURN_NONE;
  });
}

// (name, address of the type's number, address of its TypeInfo or None): the number.
PyObject* register_type(PyObject*, PyObject* args) {
  const char* name;
  PyObject *id, *info;
  if (!PyArg_ParseTuple(args, "sOO", &name, &id, &info)) return nullptr;
  return guarded([&] {
    auto* type = static_cast<ffi::TypeId*>(address_from(id));
    auto* facts = static_cast<const ffi::TypeInfo*>(address_from(info));
    LAMELLA_CHECK(type != nullptr, "register_ffi_type: expected 'type_id' to be an address");
    {
      WithoutGil others;
      ffi::register_type(name, &type->type_id, facts != nullptr ? facts->deleter : nullptr);
    }
    return required(PyLong_FromLongLong(type->type_id));
  });
}

PyMethodDef functions[] = {
    {"_register_handlers", register_handlers, METH_VARARGS, nullptr},
    {"_register_type", register_type, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

int add_ffi(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace lamella::python
