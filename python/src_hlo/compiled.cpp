// What a compiled function is guarded by: the layers and modes of its thread, and what its tensors
// are.
#include "lamella/abi/autocast.h"
#include "lamella/abi/autograd.h"
#include "python/src/object.h"
#include "python/src_hlo/hlo.h"

namespace lamella::python {
namespace {

constexpr uint32_t kGuardedModes = LAMELLA_MODE_NO_GRAD | LAMELLA_MODE_INFERENCE;
constexpr uint32_t kGuardedFlags = LAMELLA_TENSOR_CONJ | LAMELLA_TENSOR_NEG |
                                   LAMELLA_TENSOR_REQUIRES_GRAD | LAMELLA_TENSOR_INFERENCE |
                                   LAMELLA_TENSOR_TANGENT | LAMELLA_TENSOR_WRAPPER;
constexpr auto kCpu = static_cast<uint8_t>(DeviceType::CPU);

// (layers added, layers taken, modes, dtype of autocast or None).
PyObject* call_state(PyObject*, PyObject*) {
  bool casts = lamella_autocast_enabled(kCpu) != 0;
  return Py_BuildValue("KKIi", static_cast<unsigned long long>(lamella_thread.included),
                       static_cast<unsigned long long>(lamella_thread.excluded),
                       lamella_thread.modes & kGuardedModes,
                       casts ? static_cast<int>(lamella_autocast_dtype(kCpu)) : -1);
}

// What a program is made for: everything about a tensor but its elements.
PyObject* tensor_facts(PyObject*, PyObject* object) {
  if (!PyObject_TypeCheck(object, bridge->tensor_type)) {
    PyErr_SetString(PyExc_TypeError, "expected a Tensor");
    return nullptr;
  }
  const lamella_tensor* tensor = tensor_of(object);
  return guarded([&] {
    bool has_sizes = tensor->sizes != nullptr || tensor->ndim == 0;
    auto count = static_cast<size_t>(has_sizes ? tensor->ndim : 0);
    Ref sizes(numbers_object({tensor->sizes, count}));
    Ref strides(numbers_object({tensor->strides, count}));
    return required(Py_BuildValue("KiiIOOO", static_cast<unsigned long long>(tensor->key_set),
                                  static_cast<int>(tensor->scalar_type),
                                  static_cast<int>(tensor->device_type),
                                  tensor->flags & kGuardedFlags, sizes.get(), strides.get(),
                                  reinterpret_cast<PyObject*>(Py_TYPE(object))));
  });
}

PyMethodDef functions[] = {{"_call_state", call_state, METH_NOARGS, nullptr},
                           {"_tensor_facts", tensor_facts, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

int add_compiled(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace lamella::python
