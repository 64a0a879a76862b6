// Conversion between tensors and PyObjects.
#pragma once
#include <ATen/core/Tensor.h>
#include <torch/python_casters.h>

inline bool THPVariable_Check(PyObject* object) {
  return object != Py_None && pybind11::detail::make_caster<at::Tensor>().load(object, false);
}
// RuntimeError if the object is not a tensor.
inline at::Tensor THPVariable_Unpack(PyObject* object) {
  return pybind11::handle(object).cast<at::Tensor>();
}
// Returns a new reference.
inline PyObject* THPVariable_Wrap(const at::TensorBase& tensor) {
  return pybind11::cast(at::Tensor(tensor)).release().ptr();
}
