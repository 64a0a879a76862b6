// Shared declarations of the parts of the extension module lamella._hlo.
#pragma once
#include "python/src/bridge.h"

#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lamella/core/error.h"
#include "lamella/core/tensor_base.h"
#include "lamella/graph/hlo/module.h"
#include "lamella/graph/runtime/executable.h"
#include "lamella/graph/runtime/value.h"

namespace lamella::python {

// The table of lamella._C; set before any other code of the module runs.
extern const Bridge* bridge;

// ---- Objects that hold a C++ value -------------------------------------------------------------

template <class T>
struct Holder {
  PyObject_HEAD T value;
};
template <class T>
T& held(PyObject* object) {
  return reinterpret_cast<Holder<T>*>(object)->value;
}
template <class T>
void destroy_holder(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  held<T>(object).~T();
  type->tp_free(object);
  Py_DECREF(type);
}
template <class T>
PyObject* hold(PyTypeObject* type, T value) {
  PyObject* object = required(type->tp_alloc(type, 0));
  new (&held<T>(object)) T(std::move(value));
  return object;
}
// Makes a type and adds it to the module; NULL with a Python error set if that fails.
PyTypeObject* add_type(PyObject* module, PyType_Spec* spec);

inline PyObject* text_object(std::string_view text) {
  return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
}
// The text of a str object; throws PythonError, with a TypeError that names the argument.
std::string_view text_of(PyObject* object, const char* what);
PyObject* numbers_object(std::span<const int64_t> numbers);  // a tuple

// ---- What the objects hold ---------------------------------------------------------------------

using ModuleHandle = std::shared_ptr<const hlo::Module>;
struct ComputationHandle {
  ModuleHandle module;
  const hlo::Computation* computation;
};
struct InstructionHandle {
  ModuleHandle module;
  const hlo::Instruction* instruction;
};
extern PyTypeObject* module_type;
extern PyTypeObject* shape_type;

PyObject* module_object(ModuleHandle module);
PyObject* shape_object(hlo::Shape shape);
// Converts a Python object to a value of an array's shape. Empty if the object does not fit: `got`
// then describes it. Throws; errors of reading it begin with `what`.
hlo::Value value_from(PyObject* object, const hlo::Shape* shape, const char* what,
                      std::string* got);
PyObject* list_of(std::vector<TensorBase> tensors);
// A Tensor with a copy of an array's literal; a tuple of objects for a tuple, None for a token.
PyObject* literal_object(const hlo::Shape* shape, const hlo::Literal& literal);
// The shape of a Shape object or of a shape's text. Throws.
hlo::Shape shape_from(PyObject* object, const char* what);
// Throws PythonError, with a TypeError, unless the object is a Module.
const ModuleHandle& module_from(PyObject* object, const char* what);

// The executable of an Executable object, and whether a run may take long enough to release the
// GIL. Throws PythonError, with a TypeError, for other objects.
std::shared_ptr<const hlo::Executable> executable_from(PyObject* object, bool* without_gil);

// Methods of Module (views.cpp).
PyObject* module_to_json(PyObject* self, PyObject* args, PyObject* kwargs);
PyObject* module_to_dot(PyObject* self, PyObject*);
PyObject* module_to_html(PyObject* self, PyObject*);
PyObject* module_diff(PyObject* self, PyObject* other);

int add_views(PyObject* module);        // views.cpp
int add_shapes(PyObject* module);       // shape.cpp
int add_modules(PyObject* module);      // ir.cpp
int add_values(PyObject* module);       // values.cpp
int add_executables(PyObject* module);  // executable.cpp
int add_targets(PyObject* module);      // targets.cpp
int add_ffi(PyObject* module);          // ffi.cpp
int add_operators(PyObject* module);    // operators.cpp
int add_compiled(PyObject* module);     // compiled.cpp

}  // namespace lamella::python
