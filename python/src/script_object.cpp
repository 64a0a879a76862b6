// ScriptObject: an object of a class that a library registered (lamella/dispatch/custom_class.h).
// lamella/_classes.py makes a Python class of each, which derives from it.
#include "python/src/script_object.h"

#include "python/src/errors.h"

namespace lamella::python {

PyTypeObject ScriptObjectType = {PyVarObject_HEAD_INIT(nullptr, 0)};

namespace {

struct PyScriptObject {
  PyObject_HEAD lamella_object* object;
  PyObject* weak_references;
};
lamella_object*& held(PyObject* self) { return reinterpret_cast<PyScriptObject*>(self)->object; }

PyObject* make_new(PyTypeObject* type, PyObject*, PyObject*) {
  return PyErr_Format(PyExc_TypeError, "%s: expected a class that has an __init__ to call",
                      type->tp_name);
}
// Also called by the deallocator of derived classes, which releases the reference to the class.
void dealloc(PyObject* self) {
  if (reinterpret_cast<PyScriptObject*>(self)->weak_references != nullptr) {
    PyObject_ClearWeakRefs(self);
  }
  if (held(self) != nullptr) ObjectRef<>::adopt(held(self));
  Py_TYPE(self)->tp_free(self);
}
// Two Python objects of the same C++ object are equal.
PyObject* compare(PyObject* self, PyObject* other, int op) {
  if (!PyObject_TypeCheck(other, &ScriptObjectType) || (op != Py_EQ && op != Py_NE)) {
    Py_RETURN_NOTIMPLEMENTED;
  }
  return PyBool_FromLong((held(self) == held(other)) == (op == Py_EQ));
}
Py_hash_t hash(PyObject* self) {
  return static_cast<Py_hash_t>(reinterpret_cast<size_t>(held(self)) >> 4);
}
PyObject* type_name(PyObject* self, PyObject*) {
  return PyUnicode_FromString(class_name_of(held(self)));
}
PyMethodDef methods[] = {
    {"_type", type_name, METH_NOARGS, "The name of its class, as schemas spell it."},
    {nullptr, nullptr, 0, nullptr}};

// The Python class of a registered class; a new reference.
PyTypeObject* python_class(const char* name) {
  static PyObject* const known = PyDict_New();
  if (known == nullptr) return nullptr;
  PyObject* type = PyDict_GetItemString(known, name);
  Py_XINCREF(type);
  if (type == nullptr) {
    Ref module(PyImport_ImportModule("lamella._classes"));
    type = module ? PyObject_CallMethod(module.get(), "python_class", "s", name) : nullptr;
    if (type != nullptr && PyDict_SetItemString(known, name, type) != 0) Py_CLEAR(type);
  }
  return reinterpret_cast<PyTypeObject*>(type);
}

PyObject* script_class(PyObject*, PyObject* name) {
  const char* text = PyUnicode_AsUTF8(name);
  return text != nullptr ? reinterpret_cast<PyObject*>(python_class(text)) : nullptr;
}
PyMethodDef functions[] = {{"_script_class", script_class, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

lamella_object* script_object_of(PyObject* object, SchemaType type) {
  if (!PyObject_TypeCheck(object, &ScriptObjectType)) return nullptr;
  bool fits = type.kind() != TypeKind::kCustomClass || type.name() == class_name_of(held(object));
  return fits ? held(object) : nullptr;
}

PyObject* script_object(lamella_object* owned) {
  ObjectRef<> object = ObjectRef<>::adopt(owned);
  PyTypeObject* type = python_class(class_name_of(owned));
  if (type == nullptr) return nullptr;
  PyObject* self = type->tp_alloc(type, 0);
  Py_DECREF(type);
  if (self != nullptr) held(self) = object.unsafe_release();
  return self;
}

int add_script_object(PyObject* module) {
  PyTypeObject& type = ScriptObjectType;
  type.tp_new = make_new;
  type.tp_dealloc = dealloc;
  type.tp_richcompare = compare;
  type.tp_hash = hash;
  type.tp_methods = methods;
  type.tp_flags = Py_TPFLAGS_BASETYPE;
  type.tp_weaklistoffset = offsetof(PyScriptObject, weak_references);
  type.tp_doc = "An object of a class that a library of operators registered.";
  if (add_type(module, &type, "lamella.ScriptObject", sizeof(PyScriptObject)) != 0) return -1;
  return PyModule_AddFunctions(module, functions);
}

}  // namespace lamella::python
