// Forward mode: tensors with tangents.
#include "lamella/layers/autograd/mode.h"
#include "python/src/autograd.h"
#include "python/src/errors.h"

namespace lamella::python {
namespace {

KnownOperator alias_op{"aten::alias", ""};

bool both_tensors(const char* what, PyObject* a, PyObject* b) {
  if (is_tensor(a) && is_tensor(b)) return true;
  PyErr_Format(PyExc_TypeError, "%s: expected Tensors, got %s and %s", what, Py_TYPE(a)->tp_name,
               Py_TYPE(b)->tp_name);
  return false;
}

// _make_dual(tensor, tangent)
PyObject* make_dual(PyObject*, PyObject* args) {
  PyObject *tensor, *tangent;
  if (!PyArg_ParseTuple(args, "OO:make_dual", &tensor, &tangent) ||
      !both_tensors("make_dual", tensor, tangent)) {
    return nullptr;
  }
  return guarded([&]() -> PyObject* {
    if (autograd::tangent(tensor_of(tensor)).defined()) {
      PyErr_SetString(PyExc_RuntimeError,
                      "make_dual: expected 'tensor' to have no tangent, got one with a tangent");
      return nullptr;
    }
    if (autograd::tangent(tensor_of(tangent)).defined()) {
      PyErr_SetString(PyExc_RuntimeError,
                      "make_dual: expected 'tangent' to have no tangent, got one with a tangent");
      return nullptr;
    }
    TensorBase view = call_known(alias_op, {tensor_value(tensor_of(tensor))});
    if (!view.defined()) return nullptr;
    autograd::set_tangent(view.impl(), tensor_ref(tangent));
    return wrap(std::move(view));
  });
}

// _unpack_dual(tensor) -> (primal, tangent or None)
PyObject* unpack_dual(PyObject*, PyObject* object) {
  if (!is_tensor(object)) {
    return PyErr_Format(PyExc_TypeError, "unpack_dual: expected a Tensor, got %s",
                        Py_TYPE(object)->tp_name);
  }
  return guarded([&]() -> PyObject* {
    TensorBase tangent = autograd::tangent(tensor_of(object));
    if (!tangent.defined()) return Py_BuildValue("OO", object, Py_None);
    TensorBase primal;
    {
      autograd::ModeGuard without(LAMELLA_MODE_NO_FORWARD, LAMELLA_MODE_NO_FORWARD);
      primal = call_known(alias_op, {tensor_value(tensor_of(object))});
    }
    if (!primal.defined()) return nullptr;
    return Py_BuildValue("NN", wrap(std::move(primal)), wrap(std::move(tangent)));
  });
}

PyObject* enter_level(PyObject*, PyObject*) {
  autograd::begin_forward_level();
  Py_RETURN_NONE;
}

PyObject* exit_level(PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    autograd::end_forward_level();
    Py_RETURN_NONE;
  });
}

PyMethodDef functions[] = {{"_make_dual", make_dual, METH_VARARGS, nullptr},
                           {"_unpack_dual", unpack_dual, METH_O, nullptr},
                           {"_enter_dual_level", enter_level, METH_NOARGS, nullptr},
                           {"_exit_dual_level", exit_level, METH_NOARGS, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

int add_forward(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace lamella::python
