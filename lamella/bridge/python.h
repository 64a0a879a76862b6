// Python's C functions, found in the process: those of its stable ABI, so that one library serves
// every version of Python and needs no header of it.
#pragma once
#include <cstdint>
#include <string>
#include <utility>

#include "lamella/bridge/bridge.h"

struct _object;
using PyObject = _object;

namespace lamella::bridge {

using PySize = intptr_t;

// Name, result, parameters.
#define LAMELLA_PYTHON_FUNCTIONS(X)                                       \
  X(Py_IncRef, void, (PyObject*))                                         \
  X(Py_DecRef, void, (PyObject*))                                         \
  X(PyErr_Fetch, void, (PyObject**, PyObject**, PyObject**))              \
  X(PyErr_NormalizeException, void, (PyObject**, PyObject**, PyObject**)) \
  X(PyErr_Clear, void, ())                                                \
  X(PyErr_Occurred, PyObject*, ())                                        \
  X(PyErr_SetObject, void, (PyObject*, PyObject*))                        \
  X(PyErr_SetString, void, (PyObject*, const char*))                      \
  X(PyEval_SaveThread, void*, ())                                         \
  X(PyEval_RestoreThread, void, (void*))                                  \
  X(PyGILState_Ensure, int, ())                                           \
  X(PyGILState_Release, void, (int))                                      \
  X(PyBool_FromLong, PyObject*, (long))                                   \
  X(PyCapsule_GetPointer, void*, (PyObject*, const char*))                \
  X(PyCapsule_IsValid, int, (PyObject*, const char*))                     \
  X(PyCapsule_New, PyObject*, (void*, const char*, void (*)(PyObject*)))  \
  X(PyCapsule_SetName, int, (PyObject*, const char*))                     \
  X(PyCFunction_NewEx, PyObject*, (void*, PyObject*, PyObject*))          \
  X(PyComplex_FromDoubles, PyObject*, (double, double))                   \
  X(PyComplex_ImagAsDouble, double, (PyObject*))                          \
  X(PyComplex_RealAsDouble, double, (PyObject*))                          \
  X(PyFloat_AsDouble, double, (PyObject*))                                \
  X(PyFloat_FromDouble, PyObject*, (double))                              \
  X(PyList_GetItem, PyObject*, (PyObject*, PySize))                       \
  X(PyList_New, PyObject*, (PySize))                                      \
  X(PyList_SetItem, int, (PyObject*, PySize, PyObject*))                  \
  X(PyList_Size, PySize, (PyObject*))                                     \
  X(PyLong_AsLongLong, long long, (PyObject*))                            \
  X(PyLong_FromLongLong, PyObject*, (long long))                          \
  X(PyNumber_Index, PyObject*, (PyObject*))                               \
  X(PyObject_Call, PyObject*, (PyObject*, PyObject*, PyObject*))          \
  X(PyObject_CallFunctionObjArgs, PyObject*, (PyObject*, ...))            \
  X(PyObject_GetAttr, PyObject*, (PyObject*, PyObject*))                  \
  X(PyObject_IsInstance, int, (PyObject*, PyObject*))                     \
  X(PyObject_IsTrue, int, (PyObject*))                                    \
  X(PyObject_SetAttr, int, (PyObject*, PyObject*, PyObject*))             \
  X(PyObject_Str, PyObject*, (PyObject*))                                 \
  X(PyTuple_GetItem, PyObject*, (PyObject*, PySize))                      \
  X(PyTuple_New, PyObject*, (PySize))                                     \
  X(PyTuple_SetItem, int, (PyObject*, PySize, PyObject*))                 \
  X(PyTuple_Size, PySize, (PyObject*))                                    \
  X(PyUnicode_AsUTF8AndSize, const char*, (PyObject*, PySize*))           \
  X(PyUnicode_FromStringAndSize, PyObject*, (const char*, PySize))        \
  X(PyUnicode_InternFromString, PyObject*, (const char*))

// Objects by their address, and variables that hold one.
#define LAMELLA_PYTHON_OBJECTS(X) \
  X(PyBool_Type)                  \
  X(PyComplex_Type)               \
  X(PyFloat_Type)                 \
  X(PyList_Type)                  \
  X(PyLong_Type)                  \
  X(PyTuple_Type)                 \
  X(PyUnicode_Type)               \
  X(_Py_NoneStruct)               \
  X(_Py_TrueStruct)
#define LAMELLA_PYTHON_VARIABLES(X) \
  X(PyExc_RuntimeError)             \
  X(PyExc_IndexError)               \
  X(PyExc_ValueError)               \
  X(PyExc_TypeError)                \
  X(PyExc_NotImplementedError)      \
  X(PyExc_MemoryError)              \
  X(PyExc_BufferError)

struct Python {
#define LAMELLA_PYTHON_MEMBER(name, result, parameters) result(*name) parameters = nullptr;
  LAMELLA_PYTHON_FUNCTIONS(LAMELLA_PYTHON_MEMBER)
#undef LAMELLA_PYTHON_MEMBER
#define LAMELLA_PYTHON_OBJECT(name) PyObject* name = nullptr;
  LAMELLA_PYTHON_OBJECTS(LAMELLA_PYTHON_OBJECT)
  LAMELLA_PYTHON_VARIABLES(LAMELLA_PYTHON_OBJECT)
#undef LAMELLA_PYTHON_OBJECT
};
extern Python python;
// Finds them. With the GIL.
void open_python();

// A Python error that is set.
struct PythonError {};

inline PyObject* type_of(PyObject* object) {
  // The second word of an object, behind its count of references, in builds with the GIL.
  return reinterpret_cast<PyObject* const*>(object)[1];
}

// An owned reference.
class Ref {
 public:
  Ref() = default;
  explicit Ref(PyObject* owned) : object_(owned) {}
  Ref(Ref&& other) noexcept : object_(other.take()) {}
  Ref& operator=(Ref&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() {
    if (object_ != nullptr) python.Py_DecRef(object_);
  }
  static Ref borrow(PyObject* object) {
    python.Py_IncRef(object);
    return Ref(object);
  }
  // Owns a new reference; throws where a call gave NULL and set Python's error.
  static Ref need(PyObject* owned) {
    if (owned == nullptr) throw PythonError();
    return Ref(owned);
  }
  PyObject* get() const { return object_; }
  PyObject* take() { return std::exchange(object_, nullptr); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

inline Ref none() { return Ref::borrow(python._Py_NoneStruct); }
// A text that lives as long as its object.
inline std::string_view text_of(PyObject* object) {
  PySize size = 0;
  const char* text = python.PyUnicode_AsUTF8AndSize(object, &size);
  if (text == nullptr) throw PythonError();
  return {text, static_cast<size_t>(size)};
}
template <class... Objects>
Ref call_python(PyObject* function, Objects... objects) {
  return Ref::need(
      python.PyObject_CallFunctionObjArgs(function, objects..., static_cast<PyObject*>(nullptr)));
}
// Sets the error of Python that a failure is.
void set_python_error(lamella_status kind, const char* text);
// Runs `body`, whose result is an owned reference, and turns failures into errors of Python.
template <class Body>
PyObject* python_guarded(Body&& body) noexcept {
  try {
    return body().take();
  } catch (const PythonError&) {
  } catch (const Failure& failure) {
    set_python_error(failure.kind, failure.what());
  } catch (const std::exception& failure) {
    set_python_error(LAMELLA_ERROR, failure.what());
  }
  return nullptr;
}

// A function of Python of positional arguments; `self` is a capsule of `state`, which must stay.
using FastFunction = PyObject* (*)(PyObject* self, PyObject* const* args, PySize count,
                                   PyObject* names);
struct FunctionDefinition {  // PyMethodDef
  const char* name;
  FastFunction function;
  int flags;
  const char* doc;
};
constexpr int kFastKeywords = 0x0080 | 0x0002;

}  // namespace lamella::bridge
