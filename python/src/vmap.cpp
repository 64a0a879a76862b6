// Levels of vmap and batched tensors for Python.
#include "lamella/layers/vmap/vmap.h"

#include "lamella/api/functions.h"
#include "lamella/core/warning_hook.h"
#include "python/src/call.h"
#include "python/src/errors.h"

namespace lamella::python {
namespace {

// A level that lasts from _vmap_enter to _vmap_leave, or for one call from C.
struct LevelScope {
  LevelScope(int64_t size, int randomness) {
    level.number = vmap::next_level_number();
    level.size = size;
    level.randomness = static_cast<vmap::Randomness>(randomness);
    vmap::enter(&level);
    // A batched tensor has no memory, so its layer must see each call, even if excluded outside.
    lamella_thread.excluded &= ~vmap::kBatchedBit;
  }
  ~LevelScope() {
    vmap::leave(&level);
    lamella_thread.excluded |= excluded;
  }
  vmap::Level level;
  uint64_t excluded = lamella_thread.excluded & vmap::kBatchedBit;
};

// The tensor with its dimension `dim` moved to the front.
Tensor with_front(const TensorBase& t, int64_t dim) {
  if (dim < 0) dim += t.dim();
  return dim == 0 ? Tensor(t) : Tensor(t).movedim(dim, 0);
}

// A result of the function without the level: its batch becomes dimension `dim`.
TensorBase without_level(const TensorBase& t, const vmap::Level& level, int64_t dim) {
  if (vmap::is_batched(t.impl()) && vmap::level_number(t.impl()) > level.number) {
    vmap::level_of(t.impl(), "vmap");  // throws, as an inner vmap has ended
  }
  TensorBase value = vmap::expose(t, level);
  if (dim == 0) return value;
  int64_t dims = value.dim();
  LAMELLA_CHECK_VALUE(dim >= -dims && dim < dims, "vmap: expected 'out_dims' from ", -dims, " to ",
                      dims - 1, " for an output of shape ", t.sizes(), ", got ", dim);
  return Tensor(value).movedim(0, dim);
}

bool read_tensor(PyObject* object, const char* what) {
  if (is_tensor(object)) return true;
  PyErr_Format(PyExc_TypeError, "%s: expected a Tensor, got %s", what, Py_TYPE(object)->tp_name);
  return false;
}

// _vmap_enter(size, randomness) -> level
PyObject* enter_level(PyObject*, PyObject* args) {
  long long size;
  int randomness;
  if (!PyArg_ParseTuple(args, "Li:_vmap_enter", &size, &randomness)) return nullptr;
  auto* scope = new LevelScope(size, randomness);
  return PyLong_FromUnsignedLong(scope->level.number);
}
// _vmap_leave(level)
PyObject* leave_level(PyObject*, PyObject* number) {
  unsigned long wanted = PyLong_AsUnsignedLong(number);
  if (wanted == static_cast<unsigned long>(-1) && PyErr_Occurred() != nullptr) return nullptr;
  vmap::Level* level = vmap::find_level(static_cast<uint32_t>(wanted));
  if (level == nullptr) {
    return PyErr_Format(PyExc_RuntimeError, "_vmap_leave: expected a level that is running");
  }
  delete reinterpret_cast<LevelScope*>(level);
  Py_RETURN_NONE;
}
static_assert(offsetof(LevelScope, level) == 0);

// _vmap_wrap(tensor, dim, level)
PyObject* wrap_level(PyObject*, PyObject* args) {
  PyObject* tensor;
  long long dim;
  unsigned long level;
  if (!PyArg_ParseTuple(args, "OLk:_vmap_wrap", &tensor, &dim, &level) ||
      !read_tensor(tensor, "_vmap_wrap")) {
    return nullptr;
  }
  return guarded([&] {
    return wrap(
        vmap::make_batched(with_front(tensor_ref(tensor), dim), static_cast<uint32_t>(level)));
  });
}
// _vmap_unwrap(tensor, level, size, dim): works also after the level has been left.
PyObject* unwrap_level(PyObject*, PyObject* args) {
  PyObject* tensor;
  long long size, dim;
  unsigned long number;
  if (!PyArg_ParseTuple(args, "OkLL:_vmap_unwrap", &tensor, &number, &size, &dim) ||
      !read_tensor(tensor, "_vmap_unwrap")) {
    return nullptr;
  }
  vmap::Level level;
  level.number = static_cast<uint32_t>(number);
  level.size = size;
  return guarded([&] { return wrap(without_level(tensor_ref(tensor), level, dim)); });
}
// _vmap_has_level(tensor, level)
PyObject* has_level(PyObject*, PyObject* args) {
  PyObject* tensor;
  unsigned long number;
  if (!PyArg_ParseTuple(args, "Ok:_vmap_has_level", &tensor, &number) ||
      !read_tensor(tensor, "_vmap_has_level")) {
    return nullptr;
  }
  return PyBool_FromLong(vmap::has_level(tensor_of(tensor), static_cast<uint32_t>(number)));
}
// _vmap_inspect(tensor) -> (level, size of the batch, value), None if it is not batched
PyObject* inspect(PyObject*, PyObject* object) {
  if (!read_tensor(object, "_vmap_inspect")) return nullptr;
  lamella_tensor* tensor = tensor_of(object);
  if (!vmap::is_batched(tensor)) Py_RETURN_NONE;
  lamella_tensor* value = vmap::wrapped(tensor);
  return Py_BuildValue("kLN", static_cast<unsigned long>(vmap::level_number(tensor)),
                       static_cast<long long>(value->sizes[0]), wrap(TensorBase::borrow(value)));
}
// _vmap_levels() -> ((level, size, randomness), ...), outermost first
PyObject* running_levels(PyObject*, PyObject*) {
  Ref list(PyList_New(0));
  for (vmap::Level* at = vmap::innermost(); list && at != nullptr; at = at->outer) {
    Ref one(Py_BuildValue("kLi", static_cast<unsigned long>(at->number),
                          static_cast<long long>(at->size), static_cast<int>(at->randomness)));
    if (!one || PyList_Insert(list.get(), 0, one.get()) != 0) return nullptr;
  }
  return list ? PyList_AsTuple(list.get()) : nullptr;
}
// _vmap_over_all(tensor): the tensor, batched at all running levels
PyObject* over_all(PyObject*, PyObject* object) {
  if (!read_tensor(object, "_vmap_over_all")) return nullptr;
  if (vmap::innermost() == nullptr) {
    Py_INCREF(object);
    return object;
  }
  return guarded([&] { return wrap(vmap::batch_over_all(tensor_ref(object))); });
}
// _vmap_over(tensor, level, size): the tensor, batched at a level at which it was not batched
PyObject* over_level(PyObject*, PyObject* args) {
  PyObject* tensor;
  unsigned long number;
  vmap::Level level;
  long long size;
  if (!PyArg_ParseTuple(args, "OkL:_vmap_over", &tensor, &number, &size) ||
      !read_tensor(tensor, "_vmap_over")) {
    return nullptr;
  }
  level.number = static_cast<uint32_t>(number);
  level.size = size;
  return guarded(
      [&] { return wrap(vmap::hide(vmap::expose(tensor_ref(tensor), level), level.number)); });
}

// _vmap_call(function, args, kwargs, in_dim, out_dim, randomness, finish): the fast path of vmap,
// for tensors that are all mapped over one dimension, with one tensor as the result. Returns
// NotImplemented, with nothing done, for other arguments. Results that are not tensors are passed
// to finish(output, level, size).
PyObject* call_mapped(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  if (nargs != 7) return PyErr_Format(PyExc_TypeError, "_vmap_call: expected 7 arguments");
  PyObject *function = args[0], *given = args[1], *kwargs = args[2];
  int64_t in_dim = PyLong_AsLongLong(args[3]);
  int64_t out_dim = PyLong_AsLongLong(args[4]);
  int randomness = static_cast<int>(PyLong_AsLong(args[5]));
  if (PyErr_Occurred() != nullptr) return nullptr;
  constexpr Py_ssize_t kMaxArguments = 16;
  Py_ssize_t count = PyTuple_GET_SIZE(given);
  if (count == 0 || count > kMaxArguments) Py_RETURN_NOTIMPLEMENTED;
  int64_t size = 0;
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* one = PyTuple_GET_ITEM(given, i);
    if (!is_tensor(one)) Py_RETURN_NOTIMPLEMENTED;
    lamella_tensor* tensor = tensor_of(one);
    if (in_dim < -tensor->ndim || in_dim >= tensor->ndim) Py_RETURN_NOTIMPLEMENTED;
    int64_t own = tensor->sizes[in_dim < 0 ? in_dim + tensor->ndim : in_dim];
    if (i != 0 && own != size) Py_RETURN_NOTIMPLEMENTED;
    size = own;
  }
  return guarded([&]() -> PyObject* {
    Ref output;
    vmap::Level level;
    {
      LevelScope scope(size, randomness);
      level = scope.level;
      PyObject* mapped[kMaxArguments + 1] = {nullptr};
      Ref owned[kMaxArguments];
      for (Py_ssize_t i = 0; i < count; ++i) {
        TensorBase value = with_front(tensor_ref(PyTuple_GET_ITEM(given, i)), in_dim);
        owned[i] = Ref(wrap(vmap::make_batched(std::move(value), level.number)));
        if (!owned[i]) return nullptr;
        mapped[i + 1] = owned[i].get();
      }
      auto flags = static_cast<size_t>(count) | PY_VECTORCALL_ARGUMENTS_OFFSET;
      bool named = kwargs != Py_None && PyDict_GET_SIZE(kwargs) != 0;
      output = Ref(PyObject_VectorcallDict(function, mapped + 1, flags, named ? kwargs : nullptr));
    }
    if (!output) return nullptr;
    if (is_tensor(output.get())) {
      return wrap(without_level(tensor_ref(output.get()), level, out_dim));
    }
    return PyObject_CallFunction(args[6], "OkL", output.get(),
                                 static_cast<unsigned long>(level.number),
                                 static_cast<long long>(level.size));
  });
}

lamella_status warn(const char* text) {
  GilScope gil;
  return PyErr_WarnEx(PyExc_UserWarning, text, 1) == 0 ? LAMELLA_OK : keep_python_error();
}

PyMethodDef functions[] = {{"_vmap_enter", enter_level, METH_VARARGS, nullptr},
                           {"_vmap_leave", leave_level, METH_O, nullptr},
                           {"_vmap_wrap", wrap_level, METH_VARARGS, nullptr},
                           {"_vmap_unwrap", unwrap_level, METH_VARARGS, nullptr},
                           {"_vmap_has_level", has_level, METH_VARARGS, nullptr},
                           {"_vmap_inspect", inspect, METH_O, nullptr},
                           {"_vmap_levels", running_levels, METH_NOARGS, nullptr},
                           {"_vmap_over_all", over_all, METH_O, nullptr},
                           {"_vmap_over", over_level, METH_VARARGS, nullptr},
                           {"_vmap_call", method(call_mapped), METH_FASTCALL, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

int add_vmap(PyObject* module) {
  set_warning_hook(warn);
  return PyModule_AddFunctions(module, functions);
}

}  // namespace lamella::python
