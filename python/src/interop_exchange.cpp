// Tensors of other libraries by DLPack's table of C functions, which a type of Python has as its
// __dlpack_c_exchange_api__ (DLPack 1.3): both ways without a capsule. lamella.bridge.dlpack uses
// it.
#include "lamella/core/dlpack.h"
#include "python/src/errors.h"
#include "python/src/tensor.h"

namespace lamella::python {
namespace {

// The table's beginning; functions that are not used have no type.
struct ExchangeTable {
  uint32_t major_version, minor_version;
  ExchangeTable* earlier;
  void* allocate;
  int (*from_object)(void* object, DLManagedTensorVersioned** out);
  int (*to_object)(DLManagedTensorVersioned* tensor, void** out);
};

// The table of the present major version, NULL with an error if there is none.
const ExchangeTable* table_of(PyObject* capsule) {
  auto* table = static_cast<ExchangeTable*>(PyCapsule_GetPointer(capsule, "dlpack_exchange_api"));
  if (table == nullptr) return nullptr;
  while (table != nullptr && table->major_version != dlpack::kMajorVersion) {
    table = table->earlier;
  }
  if (table == nullptr) {
    PyErr_Format(PyExc_BufferError, "from_dlpack: expected functions of DLPack %d",
                 static_cast<int>(dlpack::kMajorVersion));
  }
  return table;
}

bool has_two(Py_ssize_t count) {
  if (count != 2) PyErr_SetString(PyExc_TypeError, "expected a capsule and a tensor");
  return count == 2;
}

// (capsule, array) -> Tensor; None: the array's memory is read-only or not aligned.
PyObject* from_exchange(PyObject*, PyObject* const* args, Py_ssize_t count) {
  const ExchangeTable* table = has_two(count) ? table_of(args[0]) : nullptr;
  if (table == nullptr) return nullptr;
  DLManagedTensorVersioned* managed = nullptr;
  if (table->from_object(args[1], &managed) != 0) return nullptr;
  const DLTensor& t = managed->dl_tensor;
  const uint64_t bytes = t.dtype.bits / (t.dtype.code == kDLComplex ? 16 : 8);
  const bool is_aligned = t.device.device_type != kDLCPU || bytes <= 1 ||
                          (reinterpret_cast<uintptr_t>(t.data) + t.byte_offset) % bytes == 0;
  if (!is_aligned || (managed->flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0) {
    if (managed->deleter != nullptr) managed->deleter(managed);
    Py_RETURN_NONE;
  }
  PyObject* made = guarded([&] { return wrap(dlpack::import_tensor_versioned(managed)); });
  if (made == nullptr && managed->deleter != nullptr) managed->deleter(managed);
  return made;
}

// (capsule, Tensor) -> array of the capsule's kind
PyObject* to_exchange(PyObject*, PyObject* const* args, Py_ssize_t count) {
  const ExchangeTable* table = has_two(count) ? table_of(args[0]) : nullptr;
  if (table == nullptr) return nullptr;
  if (!is_tensor(args[1])) {
    PyErr_SetString(PyExc_TypeError, "expected a tensor");
    return nullptr;
  }
  return guarded([&]() -> PyObject* {
    void* made = nullptr;
    // The tensor is the other library's from here on, whatever it answers.
    if (table->to_object(dlpack::export_tensor_versioned(tensor_ref(args[1])), &made) != 0) {
      return nullptr;
    }
    return static_cast<PyObject*>(made);
  });
}

// Whether an attribute of a tensor of PyTorch, or what its method of that name gives, is true.
bool says(PyObject* object, PyObject* name, bool calls) {
  Ref found(calls ? PyObject_CallMethodNoArgs(object, name) : PyObject_GetAttr(object, name));
  if (!found) PyErr_Clear();
  return found.get() != Py_False;
}

// (capsule, type, whether it is PyTorch's, function of tensors, arguments) -> array;
// NotImplemented: before anything is called, where an argument is of another kind or cannot be
// taken as it is. The function gives one tensor.
PyObject* call_exchanged(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count != 5 || !PyTuple_Check(args[4]) || PyTuple_GET_SIZE(args[4]) > 16) {
    Py_RETURN_NOTIMPLEMENTED;
  }
  static PyObject* const kNames[] = {PyUnicode_InternFromString("requires_grad"),
                                     PyUnicode_InternFromString("is_neg"),
                                     PyUnicode_InternFromString("is_conj")};
  const Py_ssize_t size = PyTuple_GET_SIZE(args[4]);
  Ref given[16];
  PyObject* borrowed[16];
  for (Py_ssize_t i = 0; i < size; ++i) {
    PyObject* one = PyTuple_GET_ITEM(args[4], i);
    if (reinterpret_cast<PyObject*>(Py_TYPE(one)) == args[1]) {
      if (args[2] == Py_True && (says(one, kNames[0], false) || says(one, kNames[1], true) ||
                                 says(one, kNames[2], true))) {
        Py_RETURN_NOTIMPLEMENTED;
      }
      PyObject* const pair[] = {args[0], one};
      given[i] = Ref(from_exchange(nullptr, pair, 2));
      if (!given[i]) return nullptr;
      one = given[i].get();
      if (one == Py_None) Py_RETURN_NOTIMPLEMENTED;
    } else if (!PyFloat_Check(one) && !PyLong_Check(one) && !PyUnicode_Check(one) &&
               one != Py_None) {
      Py_RETURN_NOTIMPLEMENTED;
    }
    borrowed[i] = one;
  }
  Ref made(PyObject_Vectorcall(args[3], borrowed, static_cast<size_t>(size), nullptr));
  if (!made || !is_tensor(made.get())) return made.release();
  const lamella_tensor* result = tensor_of(made.get());
  bool is_shared = (result->flags & (LAMELLA_TENSOR_CONJ | LAMELLA_TENSOR_NEG)) != 0;
  for (Py_ssize_t i = 0; i < size; ++i) {
    is_shared |= given[i] && tensor_of(given[i].get())->storage == result->storage;
  }
  if (is_shared) {
    made = Ref(PyObject_CallMethod(made.get(), "resolve_conj", nullptr));
    if (made) made = Ref(PyObject_CallMethod(made.get(), "resolve_neg", nullptr));
    if (made) made = Ref(PyObject_CallMethod(made.get(), "clone", nullptr));
    if (!made) return nullptr;
  }
  PyObject* const pair[] = {args[0], made.get()};
  return to_exchange(nullptr, pair, 2);
}

PyMethodDef functions[] = {{"_call_exchanged", method(call_exchanged), METH_FASTCALL, nullptr},
                           {"_from_exchange", method(from_exchange), METH_FASTCALL, nullptr},
                           {"_to_exchange", method(to_exchange), METH_FASTCALL, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

int add_interop_exchange(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace lamella::python
