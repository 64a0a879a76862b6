// Guards on what a compiled function read besides its arguments, and their comparison.
//
// Note [Guards on reads]
//   The function is watched while it is traced (Note [Watching reads] in
//   lamella/_compile_reads.py), and each read becomes a guard: an entry of a dictionary, an element
//   of a list, a cell, the type of an object, what a name means in a type. A guard compares
//   pointers, or numbers and text by value. Reads from one dictionary, and names in one type, stand
//   together behind its version, by which Python's own caches notice changes: while that is the
//   same they are one comparison. Containers are identified by the guards on the reads that led to
//   them.
#include "python/src_hlo/compiled_outside.h"

namespace lamella::python {
namespace {

PyTypeObject* guards_type = nullptr;
PyObject* any_value = nullptr;  // expected of an entry of which only the presence was read

uint64_t version_of_dict(PyObject* dict) {
#if PY_VERSION_HEX < 0x030C0000 && !defined(Py_GIL_DISABLED)
  return reinterpret_cast<PyDictObject*>(dict)->ma_version_tag;
#else
  (void)dict;
  return 0;
#endif
}
uint64_t version_of_type(PyObject* object) {
#ifndef Py_GIL_DISABLED
  auto* type = reinterpret_cast<PyTypeObject*>(object);
#if PY_VERSION_HEX < 0x030C0000
  if ((type->tp_flags & Py_TPFLAGS_VALID_VERSION_TAG) == 0) return 0;
#endif
  return type->tp_version_tag;
#else
  (void)object;
  return 0;
#endif
}
// A lookup gives a type a version if it has none.
uint64_t new_version_of_type(PyObject* type, PyObject* name) {
  _PyType_Lookup(reinterpret_cast<PyTypeObject*>(type), name);
  return version_of_type(type);
}

bool is_same_result(PyObject* now, PyObject* before) {
  if (now == nullptr || before == nullptr) return now == before;
  if (!PyTuple_CheckExact(before)) return is_same(now, before);
  if (!PyTuple_CheckExact(now) || Py_SIZE(now) != Py_SIZE(before)) return false;
  for (Py_ssize_t i = 0; i < Py_SIZE(now); ++i) {
    if (!is_same_result(PyTuple_GET_ITEM(now, i), PyTuple_GET_ITEM(before, i))) return false;
  }
  return true;
}

bool has_keys(PyObject* dict, PyObject* keys) {
  if (PyDict_GET_SIZE(dict) != PyTuple_GET_SIZE(keys)) return false;
  Py_ssize_t place = 0;
  PyObject* key;
  for (Py_ssize_t i = 0; PyDict_Next(dict, &place, &key, nullptr); ++i) {
    if (!is_same(key, PyTuple_GET_ITEM(keys, i))) return false;
  }
  return true;
}

// None stands for NULL in functions without defaults.
bool is_or_none(PyObject* now, const Ref& before) {
  return now == before.get() || (now == nullptr && before.get() == Py_None);
}

}  // namespace

OutsideGuards::OutsideGuards(PyObject* rows) {
  Ref list(required(PySequence_Fast(rows, "guards")));
  size_t head = 0;  // the container of the present row
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list.get()); ++i) {
    int number;
    PyObject *object, *key, *expected = nullptr, *more = nullptr;
    if (!PyArg_ParseTuple(PySequence_Fast_GET_ITEM(list.get(), i), "iOO|OO", &number, &object, &key,
                          &expected, &more)) {
      throw PythonError();
    }
    OutsideGuard guard{static_cast<OutsideGuard::Kind>(number), Ref::borrow(object),
                       Ref::borrow(key), Ref::borrow(expected), Ref::borrow(more)};
    using enum OutsideGuard::Kind;
    if (guard.kind == DictItem || guard.kind == ListItem) {
      ++guards_[head].count;
    } else {
      head = guards_.size();
    }
    if ((guard.kind == List && key != Py_None) || guard.kind == ListItem) {
      guard.index = PyLong_AsSsize_t(key);
      if (PyErr_Occurred() != nullptr) throw PythonError();
    }
    if (guard.kind == Tensor) guard.tensor.emplace_back(object);
    guards_.push_back(std::move(guard));
  }
}

bool OutsideGuards::holds(const OutsideGuard& guard, Ref* now) const {
  auto same = [&](PyObject* found) {
    if (guard.expected.get() == any_value ? found != nullptr
                                          : is_same(found, guard.expected.get())) {
      return true;
    }
    if (now != nullptr) *now = Ref::borrow(found);
    return false;
  };
  PyObject* object = guard.object.get();
  switch (guard.kind) {
    case OutsideGuard::Kind::Dict:
      return !guard.expected || has_keys(object, guard.expected.get());
    case OutsideGuard::Kind::DictItem: {
      PyObject* found = PyDict_GetItemWithError(object, guard.key.get());
      if (found == nullptr) PyErr_Clear();
      return same(found);
    }
    case OutsideGuard::Kind::List:
      return guard.index < 0 || PyList_GET_SIZE(object) == guard.index;
    case OutsideGuard::Kind::ListItem: {
      Py_ssize_t size = PyList_GET_SIZE(object), at = guard.index + (guard.index < 0 ? size : 0);
      return same(at >= 0 && at < size ? PyList_GET_ITEM(object, at) : nullptr);
    }
    case OutsideGuard::Kind::Cell:
      return same(PyCell_GET(object));
    case OutsideGuard::Kind::Object: {
      if (reinterpret_cast<PyObject*>(Py_TYPE(object)) != guard.key.get()) return false;
      if (!guard.expected) return true;
      Ref found(PyObject_GenericGetDict(object, nullptr));
      if (!found) PyErr_Clear();
      return found.get() == guard.expected.get();
    }
    case OutsideGuard::Kind::Function:
      return PyFunction_GET_CODE(object) == guard.key.get() &&
             is_or_none(PyFunction_GET_DEFAULTS(object), guard.expected) &&
             is_or_none(PyFunction_GET_KW_DEFAULTS(object), guard.more);
    case OutsideGuard::Kind::Type: {
      if (guard.version != 0 && version_of_type(object) == guard.version) return true;
      uint64_t version = new_version_of_type(object, guard.expected.get());
      Ref found(PyObject_CallNoArgs(guard.key.get()));
      if (!found) PyErr_Clear();
      if (found.get() != Py_True) return false;
      guard.version = version;
      return true;
    }
    case OutsideGuard::Kind::Call: {
      Ref found(PyObject_CallObject(object, guard.key.get()));
      if (!found) PyErr_Clear();
      bool holds = is_same_result(found.get(), guard.expected.get());
      if (!holds && now != nullptr) *now = std::move(found);
      return holds;
    }
    case OutsideGuard::Kind::Tensor:
      return guard.tensor[0].fits(object);
  }
  return false;
}

Py_ssize_t OutsideGuards::first_changed(Ref* now) const {
  for (size_t i = 0; i < guards_.size(); ++i) {
    const OutsideGuard& guard = guards_[i];
    bool is_dict = guard.kind == OutsideGuard::Kind::Dict;
    uint64_t version = is_dict ? version_of_dict(guard.object.get()) : 0;
    if (version != 0 && guard.version == version) {
      i += guard.count;
      continue;
    }
    size_t last = i + guard.count;
    for (size_t k = i; k <= last; ++k) {
      if (!holds(guards_[k], now)) return static_cast<Py_ssize_t>(k);
    }
    if (is_dict) guard.version = version;
    i = last;
  }
  return -1;
}

int OutsideGuards::traverse(visitproc visit, void* arg) const {
  for (const OutsideGuard& guard : guards_) {
    Py_VISIT(guard.object.get());
    Py_VISIT(guard.key.get());
    Py_VISIT(guard.expected.get());
    Py_VISIT(guard.more.get());
  }
  return 0;
}

// ---- For Python ---------------------------------------------------------------------------------

namespace {

PyObject* make(PyObject*, PyObject* rows) {
  return guarded([&] { return hold(guards_type, OutsideGuards(rows)); });
}
// None if all guards hold, else (the number of the first one that fails, its value if there is
// one).
PyObject* changed(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    Ref now;
    Py_ssize_t at = held<OutsideGuards>(self).first_changed(&now);
    if (at < 0) Py_RETURN_NONE;
    return now ? Py_BuildValue("nO", at, now.get()) : Py_BuildValue("(n)", at);
  });
}
PyObject* same_values(PyObject*, PyObject* args) {
  PyObject *now, *before;
  if (!PyArg_ParseTuple(args, "OO:_is_same", &now, &before)) return nullptr;
  return PyBool_FromLong(is_same_result(now, before));
}
int traverse_object(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  return held<OutsideGuards>(self).traverse(visit, arg);
}
void destroy(PyObject* self) {
  PyObject_GC_UnTrack(self);
  destroy_holder<OutsideGuards>(self);
}

PyMethodDef methods[] = {{"changed", changed, METH_NOARGS, nullptr},
                         {nullptr, nullptr, 0, nullptr}};
PyType_Slot slots[] = {{Py_tp_doc, const_cast<char*>("Guards on what a function read.")},
                       {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
                       {Py_tp_traverse, reinterpret_cast<void*>(traverse_object)},
                       {Py_tp_methods, methods},
                       {0, nullptr}};
PyType_Spec spec = {"lamella._hlo._Guards", sizeof(Holder<OutsideGuards>), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots};
PyMethodDef functions[] = {{"_guards", make, METH_O, nullptr},
                           {"_is_same", same_values, METH_VARARGS, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

const OutsideGuards& outside_guards_of(PyObject* object) {
  if (Py_TYPE(object) != guards_type) {
    PyErr_SetString(PyExc_TypeError, "expected a _Guards");
    throw PythonError();
  }
  return held<OutsideGuards>(object);
}

int add_outside_guards(PyObject* module) {
  guards_type = add_type(module, &spec);
  any_value = PyObject_CallNoArgs(reinterpret_cast<PyObject*>(&PyBaseObject_Type));
  if (guards_type == nullptr || any_value == nullptr) return -1;
  Py_INCREF(any_value);
  if (PyModule_AddObject(module, "_ANY", any_value) != 0) return -1;
  return PyModule_AddFunctions(module, functions);
}

}  // namespace lamella::python
