// Sessions of lamella.func.functionalize.
#include "lamella/layers/functionalize/functionalize.h"
#include "python/src/errors.h"

namespace lamella::python {
namespace {

using functionalize::Session;

constexpr const char* kName = "lamella.functionalize";

Session* session_of(PyObject* capsule) {
  return static_cast<Session*>(PyCapsule_GetPointer(capsule, kName));
}

// The tensors of a list; false with a Python error set if it contains anything else.
bool read_tensors(PyObject* list, std::vector<TensorBase>* tensors) {
  if (!PyList_Check(list)) {
    PyErr_Format(PyExc_TypeError, "functionalize: expected a list, got %s", Py_TYPE(list)->tp_name);
    return false;
  }
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
    PyObject* item = PyList_GET_ITEM(list, i);
    if (!is_tensor(item)) {
      PyErr_Format(PyExc_TypeError, "functionalize: expected tensors, got %s",
                   Py_TYPE(item)->tp_name);
      return false;
    }
    tensors->push_back(tensor_ref(item));
  }
  return true;
}

PyObject* make_list(std::vector<TensorBase> tensors) {
  Ref list(PyList_New(static_cast<Py_ssize_t>(tensors.size())));
  if (!list) return nullptr;
  for (size_t i = 0; i < tensors.size(); ++i) {
    PyObject* item = wrap(std::move(tensors[i]));
    if (item == nullptr) return nullptr;
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), item);
  }
  return list.release();
}

// _functionalize_begin(copies, tensors) -> (session, wrappers)
PyObject* begin(PyObject*, PyObject* args) {
  int copies = 0;
  PyObject* list = nullptr;
  if (!PyArg_ParseTuple(args, "pO:_functionalize_begin", &copies, &list)) return nullptr;
  std::vector<TensorBase> tensors;
  if (!read_tensors(list, &tensors)) return nullptr;
  return guarded([&]() -> PyObject* {
    Session* session = functionalize::begin(copies != 0);
    try {
      Ref wrappers(make_list(functionalize::wrap_arguments(session, tensors)));
      Ref capsule(wrappers ? PyCapsule_New(session, kName, nullptr) : nullptr);
      if (capsule) return PyTuple_Pack(2, capsule.get(), wrappers.get());
    } catch (...) {
      functionalize::end(session);
      throw;
    }
    functionalize::end(session);
    return nullptr;
  });
}

// _functionalize_finish(session, outputs) -> values
PyObject* finish(PyObject*, PyObject* args) {
  PyObject *capsule = nullptr, *list = nullptr;
  if (!PyArg_ParseTuple(args, "OO:_functionalize_finish", &capsule, &list)) return nullptr;
  std::vector<TensorBase> outputs;
  Session* session = session_of(capsule);
  if (session == nullptr || !read_tensors(list, &outputs)) return nullptr;
  return guarded([&] { return make_list(functionalize::finish(session, outputs)); });
}

// _functionalize_end(session)
PyObject* end(PyObject*, PyObject* capsule) {
  Session* session = session_of(capsule);
  if (session == nullptr) return nullptr;
  functionalize::end(session);
  Py_RETURN_NONE;
}

// _functionalize_copies(copies) -> the value before in the session of this thread; None: there is
// no session.
PyObject* set_copies(PyObject*, PyObject* on) {
  int copies = PyObject_IsTrue(on);
  if (copies < 0) return nullptr;
  Session* session = functionalize::current();
  if (session == nullptr) Py_RETURN_NONE;
  return PyBool_FromLong(functionalize::set_copies(session, copies != 0));
}

PyObject* is_functional(PyObject*, PyObject* object) {
  return PyBool_FromLong(is_tensor(object) && functionalize::is_functional(tensor_of(object)));
}

// _functionalize_wrap(tensor) -> a wrapper of the thread's loose session
PyObject* wrap_loose(PyObject*, PyObject* object) {
  if (!is_tensor(object)) return PyErr_Format(PyExc_TypeError, "expected a tensor");
  return guarded([&] { return wrap(functionalize::wrap_loose(tensor_ref(object))); });
}

// _functionalize_loose(on, copies, checked)
PyObject* set_loose(PyObject*, PyObject* args) {
  int on = 0, copies = 0, checked = 0;
  if (!PyArg_ParseTuple(args, "ppp:_functionalize_loose", &on, &copies, &checked)) return nullptr;
  return guarded([&] {
    functionalize::set_loose(on != 0, copies != 0, checked != 0);
    return Py_NewRef(Py_None);
  });
}

// _functionalize_value(wrapper, synced) -> the tensor behind it
PyObject* loose_value(PyObject*, PyObject* args) {
  PyObject* object = nullptr;
  int synced = 0;
  if (!PyArg_ParseTuple(args, "Op:_functionalize_value", &object, &synced)) return nullptr;
  if (!is_tensor(object) || !functionalize::is_functional(tensor_of(object))) {
    return PyErr_Format(PyExc_RuntimeError, "functionalize: expected a functional tensor, got %s",
                        Py_TYPE(object)->tp_name);
  }
  return guarded([&] { return wrap(functionalize::loose_value(tensor_ref(object), synced != 0)); });
}

// _functionalize_freeze(wrapper)
PyObject* freeze(PyObject*, PyObject* object) {
  if (!is_tensor(object) || !functionalize::is_functional(tensor_of(object))) {
    return PyErr_Format(PyExc_RuntimeError, "functionalize: expected a functional tensor, got %s",
                        Py_TYPE(object)->tp_name);
  }
  return guarded([&] {
    functionalize::freeze(tensor_ref(object));
    return Py_NewRef(Py_None);
  });
}

// _functional_form(name, overload) -> (name, overload) or None
PyObject* form(PyObject*, PyObject* args) {
  const char *name = nullptr, *overload = nullptr;
  if (!PyArg_ParseTuple(args, "ss:_functional_form", &name, &overload)) return nullptr;
  return guarded([&]() -> PyObject* {
    const lamella_operator* op = nullptr;
    detail::check(lamella_find_operator(name, overload, &op));
    const lamella_operator* made = functionalize::functional_form(op);
    if (made == nullptr) made = functionalize::copy_form(op);
    if (made == nullptr) Py_RETURN_NONE;
    return Py_BuildValue("ss", made->name, made->overload);
  });
}

PyMethodDef functions[] = {
    {"_functionalize_begin", begin, METH_VARARGS, nullptr},
    {"_functionalize_finish", finish, METH_VARARGS, nullptr},
    {"_functionalize_end", end, METH_O, nullptr},
    {"_functionalize_copies", set_copies, METH_O, nullptr},
    {"_functionalize_wrap", wrap_loose, METH_O, nullptr},
    {"_functionalize_loose", set_loose, METH_VARARGS, nullptr},
    {"_functionalize_value", loose_value, METH_VARARGS, nullptr},
    {"_functionalize_freeze", freeze, METH_O, nullptr},
    {"_is_functional", is_functional, METH_O, nullptr},
    {"_functional_form", form, METH_VARARGS,
     "The operator that functionalization calls for one that writes, or for a view as a copy."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

int add_functionalize(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace lamella::python
