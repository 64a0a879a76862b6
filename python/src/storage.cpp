// Storages for Python: all bytes of a storage as a tensor, and tensors over such bytes.
#include "lamella/core/kept_forms.h"
#include "lamella/core/tensor_impl.h"
#include "python/src/errors.h"
#include "python/src/numbers.h"
#include "python/src/tensor.h"

namespace lamella::python {
namespace {

// Sets whether conjugation and negation of the elements are pending.
void set_lazy(TensorImpl* impl, bool conjugated, bool negated) {
  set_flag(impl, LAMELLA_TENSOR_CONJ, conjugated);
  set_flag(impl, LAMELLA_TENSOR_NEG, negated);
  constexpr uint64_t conjugate = detail::functionality_bit(detail::Functionality::Conjugate);
  constexpr uint64_t negative = detail::functionality_bit(detail::Functionality::Negative);
  impl->key_set &= ~(conjugate | negative);
  impl->key_set |= (conjugated ? conjugate : 0) | (negated ? negative : 0);
}

PyObject* storage_bytes(PyObject*, PyObject* object) {
  if (!is_tensor(object)) {
    return PyErr_Format(PyExc_TypeError, "_storage_bytes: expected a Tensor, got %s",
                        Py_TYPE(object)->tp_name);
  }
  if (!has_memory(tensor_of(object), "untyped_storage")) return nullptr;
  return guarded([&] {
    TensorBase tensor = tensor_ref(object);
    auto size = static_cast<int64_t>(lamella_tensor_storage_bytes(tensor.impl()));
    int64_t stride = 1;
    // The result shares only the memory, not the tensor's history, nor pending conjugation or
    // negation.
    TensorBase bytes = make_detached(make_view_as(make_detached(tensor), IntArrayRef(&size, 1),
                                                  IntArrayRef(&stride, 1), 0, ScalarType::Byte));
    set_lazy(TensorImpl::of(bytes), false, false);
    return wrap(std::move(bytes));
  });
}

bool read_ints(PyObject* tuple, std::vector<int64_t>* list) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i) {
    list->push_back(PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, i)));
    if (PyErr_Occurred() != nullptr) return false;
  }
  return true;
}

PyObject* view_storage(PyObject*, PyObject* args) {
  PyObject *bytes, *dtype, *size, *stride;
  long long offset;
  int lazy = 0;
  if (!PyArg_ParseTuple(args, "O!O!LO!O!|i:_view_storage", &TensorType, &bytes, &DtypeType, &dtype,
                        &offset, &PyTuple_Type, &size, &PyTuple_Type, &stride, &lazy)) {
    return nullptr;
  }
  return guarded([&]() -> PyObject* {
    ScalarType type = reinterpret_cast<PyDtype*>(dtype)->type;
    std::vector<int64_t> sizes, strides;
    if (!read_ints(size, &sizes) || !read_ints(stride, &strides)) return nullptr;
    LAMELLA_CHECK_VALUE(sizes.size() == strides.size(), "_view_storage: expected ", sizes.size(),
                        " strides, got ", strides.size());
    // Checks that the last element is inside the storage, as a pickle may contain anything.
    TensorBase base = tensor_ref(bytes);
    auto available =
        static_cast<__int128>(lamella_tensor_storage_bytes(base.impl()) / element_size(type));
    __int128 last = offset;
    bool empty = false;
    for (size_t d = 0; d < sizes.size(); ++d) {
      LAMELLA_CHECK_VALUE(sizes[d] >= 0 && strides[d] >= 0,
                          "_view_storage: expected sizes and strides of at least 0");
      if (sizes[d] == 0) empty = true;
      last += static_cast<__int128>(sizes[d] - 1) * strides[d];
    }
    LAMELLA_CHECK_VALUE(offset >= 0 && (empty || last < available),
                        "_view_storage: expected a view inside the storage's ",
                        static_cast<int64_t>(available), " elements");
    TensorBase view = make_detached(make_view_as(base, sizes, strides, offset, type));
    set_lazy(TensorImpl::of(view), (lazy & 1) != 0, (lazy & 2) != 0);
    return wrap(std::move(view));
  });
}

// Note [What is kept with a storage]
PyObject* kept_bytes(PyObject*, PyObject*) { return PyLong_FromLongLong(kept_form_bytes()); }

PyMethodDef functions[] = {{"_storage_bytes", storage_bytes, METH_O, nullptr},
                           {"_kept_form_bytes", kept_bytes, METH_NOARGS, nullptr},
                           {"_view_storage", view_storage, METH_VARARGS, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

int add_storage(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace lamella::python
