// Converts Python's arrays and numbers to HLO values, and back.
#include "lamella/graph/runtime/sized_value.h"
#include "lamella/graph/runtime/tensor_value.h"
#include "python/src_hlo/hlo.h"

namespace lamella::python {
namespace {

PyObject* convert = nullptr;  // of lamella/hlo/_arrays.py

// "f32[2,3]" for a tensor; `element` names the element type if the tensor only holds its bits.
std::string describe(const TensorBase& tensor, std::string_view element) {
  hlo::ElementType type = hlo::element_type_of(tensor.scalar_type());
  std::string text(!element.empty() ? element : hlo::element_name(type));
  if (element.empty() && type == hlo::ElementType::Invalid) text = str(tensor.scalar_type());
  text += '[';
  for (size_t d = 0; d < tensor.sizes().size(); ++d) {
    text += str(d == 0 ? "" : ",", tensor.sizes()[d]);
  }
  return text + ']';
}

// Whether an object is an array that exports its memory, such as NumPy's.
bool has_plain_buffer(PyObject* object) {
  return PyObject_CheckBuffer(object) && !PyBytes_Check(object) && !PyByteArray_Check(object) &&
         !PyFloat_Check(object) && !PyLong_Check(object) && !PyComplex_Check(object);
}

TensorBase tensor_from(PyObject* object, const hlo::Shape& shape, const char* what,
                       std::string* element, std::string* got) {
  if (PyObject_TypeCheck(object, bridge->tensor_type)) {
    TensorBase tensor = TensorBase::adopt(bridge->read(object, what));
    if (!tensor.defined()) throw PythonError();
    return tensor;
  }
  if (has_plain_buffer(object)) {
    TensorBase tensor = TensorBase::adopt(bridge->from_buffer(object));
    if (tensor.defined()) return tensor;
    PyErr_Clear();  // Elements without a buffer format, strides below zero and the like.
  }
  std::string type(hlo::element_name(shape.element_type()));
  Ref converted(required(PyObject_CallFunction(convert, "OsN", object, type.c_str(),
                                               required(numbers_object(shape.dimensions())))));
  // If the object is not an array, the converter returns a text that describes it.
  if (PyUnicode_Check(converted.get())) {
    *got = text_of(converted.get(), what);
    return TensorBase();
  }
  PyObject* made = PyTuple_GET_ITEM(converted.get(), 0);
  *element = text_of(PyTuple_GET_ITEM(converted.get(), 1), what);
  TensorBase tensor = PyObject_TypeCheck(made, bridge->tensor_type)
                          ? TensorBase::adopt(bridge->read(made, what))
                          : TensorBase::adopt(bridge->from_buffer(made));
  if (!tensor.defined()) throw PythonError();
  return tensor;
}

PyObject* set_converter(PyObject*, PyObject* converter) {
  Py_INCREF(converter);
  Py_XDECREF(std::exchange(convert, converter));
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {{"_set_converter", set_converter, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

hlo::Value value_from(PyObject* object, const hlo::Shape* shape, const char* what,
                      std::string* got) {
  std::string element;
  TensorBase tensor = tensor_from(object, *shape, what, &element, got);
  if (!tensor.defined()) return hlo::Value();
  hlo::ElementType type = shape->element_type();
  bool fits = tensor.scalar_type() == hlo::tensor_type_of(type) &&
              (element.empty() || element == hlo::element_name(type)) &&
              hlo::is_within(*shape, {tensor.sizes().data(), tensor.sizes().size()});
  if (!fits) {
    *got = describe(tensor, element);
    return hlo::Value();
  }
  return hlo::value_of_tensor(shape, tensor);
}

PyObject* list_of(std::vector<TensorBase> tensors) {
  Ref list(required(PyList_New(static_cast<Py_ssize_t>(tensors.size()))));
  for (size_t i = 0; i < tensors.size(); ++i) {
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i),
                    required(bridge->wrap(tensors[i].unsafe_release())));
  }
  return list.release();
}

PyObject* literal_object(const hlo::Shape* shape, const hlo::Literal& literal) {
  if (literal.is_elided()) {
    throw lamella::ValueError(
        "literal: expected values, got '{...}': they were left out of the text");
  }
  if (shape->is_array()) {
    auto tensors = hlo::tensors_of_value(hlo::Value::of_literal(shape, literal));
    return required(bridge->wrap(tensors[0].unsafe_release()));
  }
  if (!shape->is_tuple()) Py_RETURN_NONE;
  Ref tuple(required(PyTuple_New(static_cast<Py_ssize_t>(literal.elements().size()))));
  for (size_t i = 0; i < literal.elements().size(); ++i) {
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i),
                     literal_object(&shape->tuple_shapes()[i], literal.elements()[i]));
  }
  return tuple.release();
}

int add_values(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace lamella::python
