// __torch_function__: finds the arguments that handle a call, and asks them.
#include "python/src/torch_function.h"

#include <vector>

#include "python/src/object.h"

namespace lamella::python {

bool torch_function_on = false;

namespace {

PyObject* name_function = nullptr;  // "__torch_function__", interned
PyObject* disabled = nullptr;       // the value of that name in classes that are not asked
thread_local int off = 0;           // number of guards that turn it off
// The function that is asked before the arguments on this thread, or null: see
// _set_torch_function_mode().
thread_local PyObject* mode = nullptr;

// Whether a type has a handler. The most common types are tested first.
bool has_say(PyTypeObject* type) {
  if (type == &TensorType || type == &PyLong_Type || type == &PyFloat_Type ||
      type == &PyBool_Type || type == &PyUnicode_Type || type == Py_TYPE(Py_None) ||
      type == &DtypeType || type == &DeviceType_ || type == &SizeType) {
    return false;
  }
  PyObject* found = _PyType_Lookup(type, name_function);
  return found != nullptr && found != disabled;
}

// The arguments whose types have handlers, one of each type, subclasses before their bases.
struct Asked {
  std::vector<PyObject*> items;

  void see(PyObject* value) {
    PyTypeObject* type = Py_TYPE(value);
    if (type == &PyList_Type || type == &PyTuple_Type) {
      Py_ssize_t count = PySequence_Fast_GET_SIZE(value);
      PyObject** values = PySequence_Fast_ITEMS(value);
      for (Py_ssize_t i = 0; i < count; ++i) {
        if (has_say(Py_TYPE(values[i]))) add(values[i]);
      }
    } else if (has_say(type)) {
      add(value);
    }
  }

 private:
  void add(PyObject* value) {
    size_t at = items.size();
    for (size_t i = items.size(); i-- > 0;) {
      if (Py_TYPE(items[i]) == Py_TYPE(value)) return;
      if (PyType_IsSubtype(Py_TYPE(value), Py_TYPE(items[i]))) at = i;
    }
    items.insert(items.begin() + static_cast<std::ptrdiff_t>(at), value);
  }
};

// The mode's result, or NotImplemented if the arguments are to be asked.
PyObject* answer_of_mode(PyObject* function, PyObject* types, PyObject* positional,
                         PyObject* named) {
  if (mode == nullptr) return Ref::borrow(Py_NotImplemented).release();
  Ref asked(Ref::borrow(mode));
  return PyObject_CallFunctionObjArgs(asked.get(), function, types, positional, named, nullptr);
}

PyObject* ask(const Asked& asked, PyObject* function, PyObject* const* args, Py_ssize_t nargs,
              PyObject* kwnames) {
  Ref types(PyTuple_New(static_cast<Py_ssize_t>(asked.items.size())));
  Ref positional(PyTuple_New(nargs));
  Ref named(PyDict_New());
  if (!types || !positional || !named) return nullptr;
  for (size_t i = 0; i < asked.items.size(); ++i) {
    auto* type = reinterpret_cast<PyObject*>(Py_TYPE(asked.items[i]));
    PyTuple_SET_ITEM(types.get(), static_cast<Py_ssize_t>(i), Ref::borrow(type).release());
  }
  for (Py_ssize_t i = 0; i < nargs; ++i) {
    PyTuple_SET_ITEM(positional.get(), i, Ref::borrow(args[i]).release());
  }
  Py_ssize_t count = kwnames != nullptr ? PyTuple_GET_SIZE(kwnames) : 0;
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* name = PyTuple_GET_ITEM(kwnames, i);
    if (PyDict_SetItem(named.get(), name, args[nargs + i]) != 0) return nullptr;
  }
  Ref answer(answer_of_mode(function, types.get(), positional.get(), named.get()));
  if (!answer || answer.get() != Py_NotImplemented) return answer.release();
  if (asked.items.empty()) {
    ++off;
    PyObject* made = PyObject_Call(function, positional.get(), named.get());
    --off;
    return made;
  }
  for (PyObject* item : asked.items) {
    Ref method(PyObject_GetAttr(reinterpret_cast<PyObject*>(Py_TYPE(item)), name_function));
    if (!method) return nullptr;
    Ref made(PyObject_CallFunctionObjArgs(method.get(), function, types.get(), positional.get(),
                                          named.get(), nullptr));
    if (!made || made.get() != Py_NotImplemented) return made.release();
  }
  return PyErr_Format(PyExc_TypeError, "%R: expected a type with an answer, got %R", function,
                      types.get());
}

// _disabled_torch_function_impl: a class with this as its __torch_function__ is not asked.
PyObject* run_disabled(PyObject*, PyObject* args) {
  PyObject *function, *types, *positional = nullptr, *named = nullptr;
  if (!PyArg_ParseTuple(args, "OO|OO", &function, &types, &positional, &named)) return nullptr;
  Ref empty(PyTuple_New(0));
  if (!empty) return nullptr;
  ++off;
  PyObject* made = PyObject_Call(function, positional != nullptr ? positional : empty.get(), named);
  --off;
  return made;
}

// _switch_torch_function(on): for the whole process.
PyObject* switch_on(PyObject*, PyObject* value) {
  int on = PyObject_IsTrue(value);
  if (on < 0) return nullptr;
  torch_function_on = on != 0;
  Py_RETURN_NONE;
}

// _torch_function_off(step): 1 turns it off on this thread, -1 undoes that.
PyObject* change_off(PyObject*, PyObject* value) {
  long step = PyLong_AsLong(value);
  if (step == -1 && PyErr_Occurred() != nullptr) return nullptr;
  off += static_cast<int>(step);
  return PyLong_FromLong(off);
}

// _set_torch_function_mode(function): a function that handles calls of this thread before their
// arguments do, called with (function, types, args, kwargs); None removes it.
PyObject* set_mode(PyObject*, PyObject* value) {
  Ref before(mode);
  mode = value == Py_None ? nullptr : Ref::borrow(value).release();
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {{"_disabled_torch_function_impl", run_disabled, METH_VARARGS, nullptr},
                           {"_switch_torch_function", switch_on, METH_O, nullptr},
                           {"_set_torch_function_mode", set_mode, METH_O, nullptr},
                           {"_torch_function_off", change_off, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool ask_arguments(PyObject* function, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames,
                   PyObject** result) {
  if (off != 0) return false;
  Asked asked;
  Py_ssize_t count = nargs + (kwnames != nullptr ? PyTuple_GET_SIZE(kwnames) : 0);
  for (Py_ssize_t i = 0; i < count; ++i) asked.see(args[i]);
  if (asked.items.empty() && mode == nullptr) return false;
  *result = ask(asked, function, args, nargs, kwnames);
  return true;
}

bool ask_operands(const char* name, PyObject* const* args, Py_ssize_t count, PyObject** result) {
  if (off != 0) return false;
  Asked asked;
  for (Py_ssize_t i = 0; i < count; ++i) asked.see(args[i]);
  if (asked.items.empty() && mode == nullptr) return false;
  Ref owner(is_tensor(args[0]) ? Ref::borrow(reinterpret_cast<PyObject*>(&TensorType))
                               : Ref(PyImport_ImportModule("lamella")));
  Ref function(owner ? PyObject_GetAttrString(owner.get(), name) : nullptr);
  if (!function) {
    *result = nullptr;
    return true;
  }
  return ask_arguments(function.get(), args, count, nullptr, result);
}

bool ask_mode(const char* name, PyObject* args, PyObject* kwargs, PyObject** result) {
  if (mode == nullptr || off != 0) return false;
  Ref owner(PyImport_ImportModule("lamella"));
  Ref function(owner ? PyObject_GetAttrString(owner.get(), name) : nullptr);
  Ref types(PyTuple_New(0));
  Ref named(kwargs != nullptr ? Ref::borrow(kwargs) : Ref(PyDict_New()));
  *result = nullptr;
  if (!function || !types || !named) return true;
  *result = answer_of_mode(function.get(), types.get(), args, named.get());
  if (*result != Py_NotImplemented) return true;
  Py_DECREF(*result);
  return false;
}

int add_torch_function(PyObject* module) {
  name_function = PyUnicode_InternFromString("__torch_function__");
  if (name_function == nullptr || PyModule_AddFunctions(module, functions) != 0) return -1;
  disabled = PyObject_GetAttrString(module, "_disabled_torch_function_impl");
  return disabled != nullptr ? 0 : -1;
}

}  // namespace lamella::python
