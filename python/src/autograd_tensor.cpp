// The members of Tensor for autograd: requires_grad, grad, hooks, data.
#include "lamella/core/wrapper.h"
#include "lamella/dispatch/guards.h"
#include "python/src/autograd.h"
#include "python/src/errors.h"
#include "python/src/gil.h"
#include "python/src/tensor.h"

namespace lamella::python {
namespace {

PyObject* done_or_raise(lamella_status status) {
  if (status != LAMELLA_OK) return raise_status(status);
  Py_RETURN_NONE;
}

bool read_truth(PyObject* value, const char* what, bool* flag) {
  int truth = value != nullptr ? PyObject_IsTrue(value) : -1;
  if (value == nullptr) PyErr_Format(PyExc_RuntimeError, "%s: cannot be deleted", what);
  *flag = truth > 0;
  return truth >= 0;
}

// ---- requires_grad ----

PyObject* get_requires_grad(PyObject* self, void*) {
  return PyBool_FromLong(lamella_tensor_requires_grad(tensor_of(self)));
}
int put_requires_grad(PyObject* self, PyObject* value, void*) {
  bool flag;
  if (!read_truth(value, "requires_grad", &flag)) return -1;
  lamella_status status = lamella_tensor_set_requires_grad(tensor_of(self), flag);
  if (status == LAMELLA_OK) return 0;
  raise_status(status);
  return -1;
}
PyObject* requires_grad_method(PyObject* self, PyObject* const* args, Py_ssize_t nargs,
                               PyObject* kwnames) {
  static const char* const names[] = {"requires_grad"};
  PyObject* value;
  if (!read_arguments("requires_grad_", names, 1, 0, args, nargs, kwnames, &value)) return nullptr;
  if (put_requires_grad(self, value != nullptr ? value : Py_True, nullptr) != 0) return nullptr;
  Py_INCREF(self);
  return self;
}

// ---- grad ----

PyObject* get_retains_grad(PyObject* self, void*) {
  return PyBool_FromLong(autograd::retains_grad(tensor_of(self)));
}
PyObject* get_grad(PyObject* self, void*) {
  lamella_tensor* tensor = tensor_of(self);
  lamella_tensor* grad = lamella_tensor_grad(tensor);
  if (grad != nullptr) return wrap(grad);
  if (lamella_tensor_requires_grad(tensor) != 0 && !autograd::retains_grad(tensor) &&
      !autograd::is_leaf(tensor) &&
      PyErr_WarnEx(PyExc_UserWarning,
                   "grad: expected a leaf or a tensor with retain_grad(), got a computed tensor; "
                   "backward does not fill its grad",
                   1) != 0) {
    return nullptr;
  }
  Py_RETURN_NONE;
}
int put_grad(PyObject* self, PyObject* value, void*) {
  lamella_tensor* grad = nullptr;
  if (value != nullptr && value != Py_None) {
    if (!is_tensor(value)) {
      PyErr_Format(PyExc_TypeError, "grad: expected a Tensor or None, got %s",
                   Py_TYPE(value)->tp_name);
      return -1;
    }
    if (value == self) {
      PyErr_SetString(PyExc_RuntimeError, "grad: expected another tensor than the tensor itself");
      return -1;
    }
    grad = tensor_of(value);
  }
  lamella_status status = lamella_tensor_set_grad(tensor_of(self), grad);
  if (status == LAMELLA_OK) return 0;
  raise_status(status);
  return -1;
}
PyObject* retain_grad(PyObject* self, PyObject*) {
  return done_or_raise(lamella_tensor_retain_grad(tensor_of(self)));
}

// ---- The graph ----

PyObject* get_grad_fn(PyObject* self, void*) {
  return guarded([&] { return wrap_node(autograd::grad_fn(tensor_of(self))); });
}
PyObject* get_is_leaf(PyObject* self, void*) {
  return guarded([&] { return PyBool_FromLong(autograd::is_leaf(tensor_of(self))); });
}
PyObject* get_output_nr(PyObject* self, void*) {
  lamella_tensor* tensor = tensor_of(self);
  return guarded([&] { return PyLong_FromUnsignedLong(autograd::gradient_edge(tensor).input); });
}

PyObject* detach_in_place(PyObject* self, PyObject*) {
  return guarded([&] {
    autograd::detach_in_place(tensor_of(self));
    Py_INCREF(self);
    return self;
  });
}

// ---- Views and memory ----

PyObject* get_base(PyObject* self, void*) { return wrap(lamella_tensor_base(tensor_of(self))); }
PyObject* is_view(PyObject* self, PyObject*) {
  TensorBase base = TensorBase::adopt(lamella_tensor_base(tensor_of(self)));
  return PyBool_FromLong(base.defined());
}
PyObject* get_data(PyObject* self, void*) {
  lamella_tensor* made = nullptr;
  lamella_status status = lamella_tensor_data(tensor_of(self), &made);
  return status == LAMELLA_OK ? wrap(TensorBase::adopt(made)) : raise_status(status);
}
int put_data(PyObject* self, PyObject* value, void*) {
  if (value == nullptr || !is_tensor(value)) {
    PyErr_Format(value == nullptr ? PyExc_RuntimeError : PyExc_TypeError,
                 "data: expected a Tensor, got %s",
                 value != nullptr ? Py_TYPE(value)->tp_name : "nothing");
    return -1;
  }
  const bool batched = is_batched(tensor_of(self)) || is_batched(tensor_of(value));
  if (!batched &&
      ((tensor_of(self)->flags ^ tensor_of(value)->flags) & LAMELLA_TENSOR_WRAPPER) != 0) {
    PyErr_SetString(PyExc_RuntimeError,
                    "data: expected two tensors with memory, or two without, as sparse ones are");
    return -1;
  }
  return guarded(
      [&] {
        detail::check(lamella_tensor_set_data(tensor_of(self), tensor_of(value)));
        return 0;
      },
      -1);
}

// ---- Hooks ----

PyObject* register_hook(PyObject* self, PyObject* hook) {
  lamella_tensor* tensor = tensor_of(self);
  if (!PyCallable_Check(hook)) {
    return PyErr_Format(PyExc_TypeError, "register_hook: expected a function, got %s",
                        Py_TYPE(hook)->tp_name);
  }
  if (lamella_tensor_requires_grad(tensor) == 0) {
    PyErr_SetString(PyExc_RuntimeError,
                    "register_hook: expected a tensor that requires grad, got one that does not");
    return nullptr;
  }
  return guarded([&]() -> PyObject* {
    Ref cell(PyCell_New(hook));
    if (!cell) return nullptr;
    uint64_t id = autograd::add_tensor_hook(
        tensor, {call_tensor_hook, release_object, Ref::borrow(cell.get()).release()});
    track(self);
    return make_handle(WeakTensorRef(TensorBase::borrow(behind_levels(tensor))), id,
                       lamella_tensor_remove_hook, cell.get());
  });
}
PyObject* register_accumulate_hook(PyObject* self, PyObject* hook) {
  if (!PyCallable_Check(hook)) {
    return PyErr_Format(PyExc_TypeError,
                        "register_post_accumulate_grad_hook: expected a function, got %s",
                        Py_TYPE(hook)->tp_name);
  }
  if (lamella_tensor_requires_grad(tensor_of(self)) == 0 || !autograd::is_leaf(tensor_of(self))) {
    PyErr_Format(PyExc_RuntimeError,
                 "register_post_accumulate_grad_hook: expected a leaf that requires grad, got a "
                 "tensor that %s",
                 lamella_tensor_requires_grad(tensor_of(self)) == 0 ? "does not require grad"
                                                                    : "was computed");
    return nullptr;
  }
  return guarded([&] { return add_accumulate_hook(self, hook); });
}

PyGetSetDef getset[] = {
    {"requires_grad", get_requires_grad, put_requires_grad,
     "Whether operators on the tensor are recorded.", nullptr},
    {"grad", get_grad, put_grad, "The gradient that backward has accumulated, or None.", nullptr},
    {"_grad", get_grad, put_grad, nullptr, nullptr},
    {"grad_fn", get_grad_fn, nullptr, "The node that made the tensor; None for leaves.", nullptr},
    {"is_leaf", get_is_leaf, nullptr, "Whether no recorded operator made the tensor.", nullptr},
    {"output_nr", get_output_nr, nullptr, "Which output of its node the tensor is.", nullptr},
    {"retains_grad", get_retains_grad, nullptr, "Whether a computed tensor keeps its gradient.",
     nullptr},
    {"data", get_data, put_data, "The same memory without gradients.", nullptr},
    {"_base", get_base, nullptr, "The tensor that this one is a view of, or None.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyMethodDef methods[] = {
    {"backward", method(tensor_backward), METH_FASTCALL | METH_KEYWORDS,
     "backward(gradient=None, retain_graph=None, create_graph=False, inputs=None)\n\nAdds to "
     "`grad` of the leaves, or of `inputs`, the gradients of the tensor."},
    {"requires_grad_", method(requires_grad_method), METH_FASTCALL | METH_KEYWORDS,
     "Sets requires_grad; returns the tensor."},
    {"retain_grad", retain_grad, METH_NOARGS, "Keeps the gradient of a computed tensor."},
    {"detach_", detach_in_place, METH_NOARGS, "Makes the tensor a leaf without history."},
    {"register_hook", register_hook, METH_O,
     "Calls hook(grad) when the gradient is known; a tensor that it returns replaces it."},
    {"register_post_accumulate_grad_hook", register_accumulate_hook, METH_O,
     "Calls hook(tensor) when a backward has added to the leaf's grad."},
    {"_is_view", is_view, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

// ---- Functions ----

PyObject* bump_version(PyObject*, PyObject* object) {
  if (!is_tensor(object)) {
    return PyErr_Format(PyExc_TypeError, "increment_version: expected a Tensor, got %s",
                        Py_TYPE(object)->tp_name);
  }
  lamella_tensor_bump_version(tensor_of(object));
  Py_RETURN_NONE;
}
// _gradient_edge(tensor) -> (node, index, tensor)
PyObject* gradient_edge(PyObject*, PyObject* object) {
  if (!is_tensor(object)) {
    return PyErr_Format(PyExc_TypeError, "get_gradient_edge: expected a Tensor, got %s",
                        Py_TYPE(object)->tp_name);
  }
  return guarded([&] {
    autograd::Edge edge = autograd::gradient_edge(tensor_of(object));
    return Py_BuildValue("NkO", wrap_node(std::move(edge.node)),
                         static_cast<unsigned long>(edge.input), object);
  });
}
// _call_below_autograd(function, args, kwargs): calls a function below autograd, as its kernels do.
PyObject* call_below(PyObject*, PyObject* args) {
  PyObject *function, *positional, *keywords;
  if (!PyArg_ParseTuple(args, "OOO:_call_below_autograd", &function, &positional, &keywords)) {
    return nullptr;
  }
  Ref tuple(PySequence_Tuple(positional));
  if (!tuple) return nullptr;
  AutoDispatchBelowAutograd below;
  return call_object(function, tuple.get(), PyDict_GET_SIZE(keywords) != 0 ? keywords : nullptr);
}

PyMethodDef functions[] = {{"_bump_version", bump_version, METH_O, nullptr},
                           {"_call_below_autograd", call_below, METH_VARARGS, nullptr},
                           {"_gradient_edge", gradient_edge, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

int add_autograd_members(PyObject* module) {
  PyTypeObject* type = &TensorType;
  auto add = [&](const char* name, PyObject* owned) {
    Ref member(owned);
    return member && PyDict_SetItemString(type->tp_dict, name, member.get()) == 0;
  };
  for (PyGetSetDef* def = getset; def->name != nullptr; ++def) {
    if (!add(def->name, PyDescr_NewGetSet(type, def))) return -1;
  }
  for (PyMethodDef* def = methods; def->ml_name != nullptr; ++def) {
    if (!add(def->ml_name, PyDescr_NewMethod(type, def))) return -1;
  }
  PyType_Modified(type);
  return PyModule_AddFunctions(module, functions);
}

}  // namespace lamella::python
