// The table of functions of lamella._C that the package's other extension modules use.
#include "python/src/bridge.h"

#include "lamella/abi/autograd.h"
#include "python/src/errors.h"
#include "python/src/tensor.h"
#include "python/src/trace.h"

namespace lamella::python {
namespace {

PyObject* wrap_owned(lamella_tensor* owned) { return wrap(owned); }

lamella_tensor* read(PyObject* object, const char* what) {
  lamella_tensor* tensor = tensor_of(object);
  if (!has_memory(tensor, what)) return nullptr;
  if (tensor->device_type == static_cast<uint8_t>(DeviceType::Meta)) {
    PyErr_Format(PyExc_NotImplementedError, "%s: expected a tensor with elements, got one on meta",
                 what);
    return nullptr;
  }
  if (lamella_tensor_requires_grad(tensor) != 0 &&
      (lamella_modes() & (LAMELLA_MODE_NO_GRAD | LAMELLA_MODE_INFERENCE)) == 0) {
    PyErr_Format(PyExc_RuntimeError,
                 "%s: expected a tensor that does not require grad, got one that does, whose "
                 "gradient would be lost; use detach() or no_grad()",
                 what);
    return nullptr;
  }
  if (!note_read(tensor, what)) return nullptr;
  return TensorBase::borrow(tensor).unsafe_release();
}

lamella_tensor* from_buffer(PyObject* object) {
  TensorBase tensor = guarded([&] { return tensor_from_buffer(object, true); }, TensorBase());
  if (!tensor.defined() && PyErr_Occurred() == nullptr) {
    PyErr_Format(PyExc_TypeError, "expected memory of numbers, got %R", Py_TYPE(object));
  }
  return tensor.unsafe_release();
}

Bridge bridge = {.tensor_type = &TensorType,
                 .wrap = wrap_owned,
                 .read = read,
                 .from_buffer = from_buffer,
                 .raise_status = raise_status,
                 .keep_python_error = keep_python_error,
                 .release_gil = release_gil,
                 .restore_gil = restore_gil,
                 .enter_python = enter_python,
                 .leave_python = leave_python,
                 .graph = traced_graph};

}  // namespace

int add_bridge(PyObject* module) {
  PyObject* capsule = PyCapsule_New(&bridge, kBridgeName, nullptr);
  return capsule == nullptr ? -1 : PyModule_AddObject(module, "_bridge", capsule);
}

}  // namespace lamella::python
