// Memory shared with other libraries: the buffer protocol both ways, and DLPack.
#include <bit>
#include <cstring>

#include "lamella/abi/autograd.h"
#include "lamella/core/dlpack.h"
#include "python/src/errors.h"
#include "python/src/gil.h"
#include "python/src/numbers.h"
#include "python/src/tensor.h"
#include "python/src/trace.h"

namespace lamella::python {
namespace {

// ---- Buffers out -------------------------------------------------------------------------------

// The struct module's format of an element, or NULL.
const char* format_of(ScalarType type) {
  switch (type) {
    case ScalarType::Bool:
      return "?";
    case ScalarType::Byte:
      return "B";
    case ScalarType::Char:
      return "b";
    case ScalarType::Short:
      return "h";
    case ScalarType::Int:
      return "i";
    case ScalarType::Long:
      return "l";
    case ScalarType::UInt16:
      return "H";
    case ScalarType::UInt32:
      return "I";
    case ScalarType::UInt64:
      return "L";
    case ScalarType::Half:
      return "e";
    case ScalarType::Float:
      return "f";
    case ScalarType::Double:
      return "d";
    case ScalarType::ComplexFloat:
      return "Zf";
    case ScalarType::ComplexDouble:
      return "Zd";
    default:
      return nullptr;
  }
}

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  lamella_tensor* tensor = tensor_of(self);
  auto type = static_cast<ScalarType>(tensor->scalar_type);
  const char* format = format_of(type);
  view->obj = nullptr;
  if (!has_memory(tensor, "buffer")) return -1;
  auto refuse = [&](const char* expected, const char* got) {
    PyErr_Format(PyExc_BufferError, "buffer: expected %s, got %s", expected, got);
    return -1;
  };
  if (tensor->device_type != 0) {
    return refuse("a tensor on cpu", DeviceTypeName(static_cast<DeviceType>(tensor->device_type)));
  }
  if (lamella_tensor_requires_grad(tensor) != 0) {
    return refuse("a tensor that does not require grad", "one that does; use detach()");
  }
  if (tensor->layout != 0) return refuse("a strided tensor", "another layout");
  if (format == nullptr) return refuse("a dtype that buffers have", dtype_name(type));
  if ((tensor->flags & (LAMELLA_TENSOR_CONJ | LAMELLA_TENSOR_NEG)) != 0) {
    return refuse("resolved elements", "a lazily conjugated or negated tensor");
  }
  bool contiguous = (tensor->flags & LAMELLA_TENSOR_CONTIGUOUS) != 0;
  if (((flags & PyBUF_STRIDES) != PyBUF_STRIDES ||
       (flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS) &&
      !contiguous) {
    return refuse("a contiguous tensor", "one with gaps or permuted dimensions");
  }
  if (((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS) && !(contiguous && tensor->ndim < 2)) {
    return refuse("a column-major tensor", "another order");
  }
  if ((flags & PyBUF_WRITABLE) == PyBUF_WRITABLE && dlpack::is_read_only(tensor_ref(self))) {
    return refuse("a writable tensor", "one over read-only memory");
  }
  if (!note_read(tensor, "numpy()")) return -1;
  auto ndim = static_cast<size_t>(tensor->ndim);
  auto* extents = static_cast<Py_ssize_t*>(PyMem_Malloc((2 * ndim + 1) * sizeof(Py_ssize_t)));
  if (extents == nullptr) {
    PyErr_NoMemory();
    return -1;
  }
  auto bytes = static_cast<Py_ssize_t>(element_size(type));
  for (size_t d = 0; d < ndim; ++d) {
    extents[d] = tensor->sizes[d];
    extents[ndim + d] = tensor->strides[d] * bytes;
  }
  static char nothing[8];
  view->buf = tensor->data != nullptr ? tensor->data : nothing;
  view->len = tensor->numel * bytes;
  view->itemsize = bytes;
  view->readonly = dlpack::is_read_only(tensor_ref(self));
  view->ndim = tensor->ndim;
  view->format = (flags & PyBUF_FORMAT) != 0 ? const_cast<char*>(format) : nullptr;
  view->shape = (flags & PyBUF_ND) != 0 ? extents : nullptr;
  view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? extents + ndim : nullptr;
  view->suboffsets = nullptr;
  view->internal = extents;
  Py_INCREF(self);
  view->obj = self;
  return 0;
}
void release_buffer(PyObject*, Py_buffer* view) { PyMem_Free(view->internal); }
PyBufferProcs buffer_slots = {get_buffer, release_buffer};

// ---- Buffers in --------------------------------------------------------------------------------

bool type_of_format(const char* format, Py_ssize_t bytes, ScalarType* type) {
  if (format == nullptr) format = "B";
  constexpr bool little = std::endian::native == std::endian::little;
  if (*format == '@' || *format == '=' || (*format == '<' && little) ||
      (*format == '>' && !little) || *format == '|') {
    ++format;
  }
  auto pick = [&](std::initializer_list<ScalarType> types) {
    for (ScalarType t : types) {
      if (element_size(t) == static_cast<size_t>(bytes)) {
        *type = t;
        return true;
      }
    }
    return false;
  };
  if (strlen(format) == 2 && format[0] == 'Z') {
    return pick({ScalarType::ComplexHalf, ScalarType::ComplexFloat, ScalarType::ComplexDouble});
  }
  if (strlen(format) != 1) return false;
  switch (*format) {
    case '?':
      return pick({ScalarType::Bool});
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
    case 'n':
      return pick({ScalarType::Char, ScalarType::Short, ScalarType::Int, ScalarType::Long});
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
    case 'N':
      return pick({ScalarType::Byte, ScalarType::UInt16, ScalarType::UInt32, ScalarType::UInt64});
    case 'e':
    case 'f':
    case 'd':
      return pick({ScalarType::Half, ScalarType::Float, ScalarType::Double});
    default:
      return false;
  }
}

void release_view(void* context) {
  // After the interpreter's end there is nothing left to give back.
  if (!Py_IsInitialized()) return;
  GilScope gil;
  PyBuffer_Release(static_cast<Py_buffer*>(context));
  delete static_cast<Py_buffer*>(context);
}

}  // namespace

TensorBase tensor_from_buffer(PyObject* object, bool* read_only) {
  if (!PyObject_CheckBuffer(object) || PyBytes_Check(object)) return TensorBase();
  auto* view = new Py_buffer;
  *read_only = false;
  if (PyObject_GetBuffer(object, view, PyBUF_FULL) != 0) {
    PyErr_Clear();
    *read_only = true;
    if (PyObject_GetBuffer(object, view, PyBUF_FULL_RO) != 0) {
      delete view;
      // NumPy arrays of objects, dates and the like have no buffer.
      PyErr_Clear();
      PyErr_Format(PyExc_TypeError, "expected memory of numbers, got %R", Py_TYPE(object));
      return TensorBase();
    }
  }
  ScalarType type = ScalarType::Undefined;
  std::string problem;
  std::vector<int64_t> sizes, strides;
  if (!type_of_format(view->format, view->itemsize, &type)) {
    problem = std::string(
                  "expected elements of a dtype that tensors have, in native byte order, "
                  "got format '") +
              (view->format != nullptr ? view->format : "B") + "'";
  }
  for (int d = 0; d < view->ndim && problem.empty(); ++d) {
    Py_ssize_t stride = view->strides != nullptr ? view->strides[d] : 0;
    if (stride < 0) {
      problem = "expected strides of at least 0; copy the array first, as array.copy()";
    } else if (stride % view->itemsize != 0) {
      problem = "expected strides that are whole elements";
    }
    sizes.push_back(view->shape != nullptr ? view->shape[d] : view->len / view->itemsize);
    strides.push_back(stride / view->itemsize);
  }
  if (view->suboffsets != nullptr && problem.empty()) {
    for (int d = 0; d < view->ndim; ++d) {
      if (view->suboffsets[d] >= 0) problem = "expected one block of memory, got an indirect one";
    }
  }
  if (!problem.empty()) {
    bool wrong_type = type == ScalarType::Undefined;
    PyBuffer_Release(view);
    delete view;
    PyErr_SetString(wrong_type ? PyExc_TypeError : PyExc_ValueError, problem.c_str());
    return TensorBase();
  }
  lamella_tensor* made = nullptr;
  lamella_status status = lamella_tensor_from_blob(
      view->buf, view->ndim, sizes.data(), view->strides != nullptr ? strides.data() : nullptr,
      static_cast<uint8_t>(type), 0, -1, release_view, view, &made);
  if (status != LAMELLA_OK) {
    raise_status(status);
    return TensorBase();
  }
  return TensorBase::adopt(made);
}

namespace {

PyObject* from_numpy(PyObject*, PyObject* array) {
  if (is_tensor(array) || !PyObject_CheckBuffer(array) || PyBytes_Check(array)) {
    return PyErr_Format(PyExc_TypeError, "from_numpy: expected a numpy.ndarray, got %s",
                        Py_TYPE(array)->tp_name);
  }
  bool read_only = false;
  TensorBase tensor = guarded([&] { return tensor_from_buffer(array, &read_only); }, TensorBase());
  if (!tensor.defined()) return nullptr;
  if (read_only &&
      PyErr_WarnEx(PyExc_UserWarning,
                   "from_numpy: the array is read-only; writing to the tensor is undefined",
                   1) != 0) {
    return nullptr;
  }
  return wrap(std::move(tensor));
}

// ---- DLPack ------------------------------------------------------------------------------------

constexpr const char* kPlain = "dltensor";
constexpr const char* kVersioned = "dltensor_versioned";

void end_plain(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, kPlain)) return;  // taken over by a consumer
  auto* managed = static_cast<dlpack::Managed*>(PyCapsule_GetPointer(capsule, kPlain));
  if (managed->deleter != nullptr) managed->deleter(managed);
}
void end_versioned(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, kVersioned)) return;
  auto* managed = static_cast<dlpack::ManagedVersioned*>(PyCapsule_GetPointer(capsule, kVersioned));
  if (managed->deleter != nullptr) managed->deleter(managed);
}

PyObject* dlpack_device(PyObject* self, PyObject*) {
  return guarded([&] {
    auto field = dlpack::device_field(tensor_ref(self).device());
    return Py_BuildValue("ii", field.device_type, field.device_id);
  });
}

PyObject* clone_of(PyObject* self) {
  static SlotOperator clone{"aten::clone"};
  const Table* table = clone.table();
  if (table == nullptr) return PyErr_Format(PyExc_RuntimeError, "aten::clone: is not defined");
  return call_table(*table, "clone", false, &self, 1, nullptr);
}

PyObject* to_dlpack(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"stream", "max_version", "dl_device", "copy", nullptr};
  PyObject *stream = Py_None, *max_version = Py_None, *device = Py_None, *copy = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO:__dlpack__", const_cast<char**>(names),
                                   &stream, &max_version, &device, &copy)) {
    return nullptr;
  }
  if (lamella_tensor_requires_grad(tensor_of(self)) != 0) {
    PyErr_SetString(PyExc_BufferError,
                    "__dlpack__: expected a tensor that does not require grad, got one that does; "
                    "use detach()");
    return nullptr;
  }
  if (!note_read(tensor_of(self), "__dlpack__()")) return nullptr;
  return guarded([&]() -> PyObject* {
    TensorBase tensor = tensor_ref(self);
    if (!has_memory(tensor.impl(), "__dlpack__")) return nullptr;
    if (stream != Py_None && tensor.is_cpu()) {
      PyErr_SetString(PyExc_BufferError,
                      "__dlpack__: expected 'stream' to be None for a tensor on cpu");
      return nullptr;
    }
    if (device != Py_None) {
      int type, id;
      if (!PyArg_ParseTuple(device, "ii", &type, &id)) return nullptr;
      auto mine = dlpack::device_field(tensor.device());
      if (mine.device_type != type || mine.device_id != id) {
        return PyErr_Format(PyExc_BufferError,
                            "__dlpack__: expected 'dl_device' to be (%d, %d), where the tensor is, "
                            "got (%d, %d)",
                            mine.device_type, mine.device_id, type, id);
      }
    }
    Ref copied;
    if (copy == Py_True) {
      copied = Ref(clone_of(self));
      if (!copied) return nullptr;
      tensor = tensor_ref(copied.get());
    }
    long major = 0;
    if (max_version != Py_None) {
      if (!PyTuple_Check(max_version) || PyTuple_GET_SIZE(max_version) < 1) {
        PyErr_SetString(PyExc_TypeError,
                        "__dlpack__: expected 'max_version' to be a tuple of two ints");
        return nullptr;
      }
      major = PyLong_AsLong(PyTuple_GET_ITEM(max_version, 0));
      if (PyErr_Occurred() != nullptr) return nullptr;
    }
    if (major >= 1) {
      auto* managed = dlpack::export_tensor_versioned(tensor, copy == Py_True);
      PyObject* capsule = PyCapsule_New(managed, kVersioned, end_versioned);
      if (capsule == nullptr) managed->deleter(managed);
      return capsule;
    }
    auto* managed = dlpack::export_tensor(tensor);
    PyObject* capsule = PyCapsule_New(managed, kPlain, end_plain);
    if (capsule == nullptr) managed->deleter(managed);
    return capsule;
  });
}

PyObject* import_capsule(PyObject* capsule) {
  return guarded([&]() -> PyObject* {
    if (PyCapsule_IsValid(capsule, kVersioned)) {
      auto* managed =
          static_cast<dlpack::ManagedVersioned*>(PyCapsule_GetPointer(capsule, kVersioned));
      TensorBase tensor = dlpack::import_tensor_versioned(managed);
      PyCapsule_SetName(capsule, "used_dltensor_versioned");
      return wrap(std::move(tensor));
    }
    if (!PyCapsule_IsValid(capsule, kPlain)) {
      PyErr_SetString(PyExc_RuntimeError,
                      "from_dlpack: expected a capsule that was not used before");
      return nullptr;
    }
    auto* managed = static_cast<dlpack::Managed*>(PyCapsule_GetPointer(capsule, kPlain));
    TensorBase tensor = dlpack::import_tensor(managed);
    PyCapsule_SetName(capsule, "used_dltensor");
    return wrap(std::move(tensor));
  });
}

PyObject* from_dlpack(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"ext_tensor", "device", "copy", nullptr};
  PyObject *object, *device = Py_None, *copy = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$OO:from_dlpack", const_cast<char**>(names),
                                   &object, &device, &copy)) {
    return nullptr;
  }
  if (PyCapsule_CheckExact(object)) return import_capsule(object);
  Ref method(PyObject_GetAttrString(object, "__dlpack__"));
  if (!method) {
    PyErr_Clear();
    return PyErr_Format(PyExc_TypeError, "from_dlpack: expected an object with __dlpack__, got %s",
                        Py_TYPE(object)->tp_name);
  }
  Ref none(PyTuple_New(0));
  Ref options(Py_BuildValue("{s(ii)}", "max_version", static_cast<int>(dlpack::kMajorVersion),
                            static_cast<int>(dlpack::kMinorVersion)));
  if (!none || !options) return nullptr;
  if (copy != Py_None && PyDict_SetItemString(options.get(), "copy", copy) != 0) return nullptr;
  if (device != Py_None) {
    Device wanted(kCPU);
    int found = device_from_object(device, &wanted);
    if (found < 0) return nullptr;
    Ref field(guarded([&]() -> PyObject* {
      if (found == 0) {
        Py_INCREF(device);
        return device;
      }
      auto code = dlpack::device_field(wanted);
      return Py_BuildValue("ii", code.device_type, code.device_id);
    }));
    if (!field || PyDict_SetItemString(options.get(), "dl_device", field.get()) != 0) {
      return nullptr;
    }
  }
  Ref capsule(call_object(method.get(), none.get(), options.get()));
  if (!capsule && PyErr_ExceptionMatches(PyExc_TypeError) && copy == Py_None && device == Py_None) {
    // A producer from before DLPack 1.0.
    PyErr_Clear();
    capsule = Ref(PyObject_CallNoArgs(method.get()));
  }
  return capsule ? import_capsule(capsule.get()) : nullptr;
}

PyCFunction keywords(PyCFunctionWithKeywords function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

PyMethodDef functions[] = {
    {"from_numpy", from_numpy, METH_O, "from_numpy(ndarray)\n\nA tensor over the array's memory."},
    {"from_dlpack", keywords(from_dlpack), METH_VARARGS | METH_KEYWORDS,
     "from_dlpack(ext_tensor, *, device=None, copy=None)\n\nA tensor over another library's "
     "memory."},
    {nullptr, nullptr, 0, nullptr}};
PyMethodDef methods[] = {
    {"__dlpack__", keywords(to_dlpack), METH_VARARGS | METH_KEYWORDS,
     "A capsule through which another library uses the tensor's memory."},
    {"__dlpack_device__", dlpack_device, METH_NOARGS, "The device's DLPack type and index."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

void fill_buffer_slots(PyTypeObject* type) { type->tp_as_buffer = &buffer_slots; }

int add_interop(PyObject* module) {
  for (PyMethodDef* method = methods; method->ml_name != nullptr; ++method) {
    Ref descriptor(PyDescr_NewMethod(&TensorType, method));
    if (!descriptor ||
        PyDict_SetItemString(TensorType.tp_dict, method->ml_name, descriptor.get()) != 0) {
      return -1;
    }
  }
  PyType_Modified(&TensorType);
  return PyModule_AddFunctions(module, functions);
}

}  // namespace lamella::python
