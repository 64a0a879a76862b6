// Memory shared with other libraries: the buffer protocol both ways, and DLPack.
#include <bit>
#include <cstring>

#include "lamella/abi/autograd.h"
#include "lamella/core/dlpack.h"
#include "lamella/core/kept_forms.h"
#include "lamella/core/tensor_impl.h"
#include "lamella/dispatch/guards.h"
#include "python/src/errors.h"
#include "python/src/gil.h"
#include "python/src/numbers.h"
#include "python/src/small_floats.h"
#include "python/src/tensor.h"
#include "python/src/trace.h"

namespace lamella::python {
namespace {

// ---- Buffers out -------------------------------------------------------------------------------

// The struct module's format of an element, or NULL.
const char* format_of(ScalarType type) {
  const char* format = "";
  switch (type) {
#define LAMELLA_SCALAR_TYPE(cpp, name, number, text, code, struct_format, ...) \
  case ScalarType::name:                                                       \
    format = struct_format;                                                    \
    break;
#include "lamella/core/scalar_type.def"
    default:
      break;
  }
  return *format == 0 ? nullptr : format;
}

// What a buffer keeps alive: another tensor over the memory, since `self` may get other memory by
// `x.data = y`, set_, resize_ or `out=`. Its sizes, and strides in bytes, follow.
struct Export {
  lamella_tensor* kept;
};

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
    return refuse("a tensor on cpu",
                  device_type_name(static_cast<DeviceType>(tensor->device_type)));
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
  ExcludeDispatchKeyGuard without{DispatchKey::Python};  // no handlers: this is about memory
  TensorBase kept = guarded([&] { return make_detached(tensor_ref(self)); }, TensorBase());
  if (!kept.defined()) return -1;
  auto ndim = static_cast<size_t>(tensor->ndim);
  auto* exported =
      static_cast<Export*>(PyMem_Malloc(sizeof(Export) + 2 * ndim * sizeof(Py_ssize_t)));
  if (exported == nullptr) {
    PyErr_NoMemory();
    return -1;
  }
  exported->kept = kept.unsafe_release();
  begin_exposure(exported->kept->storage);
  auto* extents = reinterpret_cast<Py_ssize_t*>(exported + 1);
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
  view->internal = exported;
  Py_INCREF(self);
  view->obj = self;
  return 0;
}
void release_buffer(PyObject*, Py_buffer* view) {
  auto* exported = static_cast<Export*>(view->internal);
  end_exposure(exported->kept->storage);
  detail::release(exported->kept);
  PyMem_Free(exported);
}
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

// A row-major copy of a buffer's elements.
TensorBase copy_buffer(const Py_buffer& view, IntArrayRef sizes, ScalarType type) {
  lamella_tensor* made = nullptr;
  detail::check(lamella_tensor_empty(static_cast<int32_t>(sizes.size()), sizes.data(),
                                     static_cast<uint8_t>(type), 0, -1, &made));
  TensorBase tensor = TensorBase::adopt(made);
  // Python 3.9 and 3.10 take the view without const, and do not write it.
  auto* source = const_cast<Py_buffer*>(&view);
  bool failed = view.len != 0 && PyBuffer_ToContiguous(made->data, source, view.len, 'C') != 0;
  return failed ? TensorBase() : tensor;
}

}  // namespace

bool is_aligned(const void* data, ScalarType type) {
  return reinterpret_cast<uintptr_t>(data) % element_size(to_real_type(type)) == 0;
}

int open_buffer(PyObject* object, int kind, Py_buffer* view, bool* read_only) {
  *read_only = false;
  for (int flags : {kind | PyBUF_WRITABLE, kind}) {
    if (PyObject_GetBuffer(object, view, flags) == 0) return 1;
    if (!PyErr_ExceptionMatches(PyExc_BufferError) && !PyErr_ExceptionMatches(PyExc_TypeError) &&
        !PyErr_ExceptionMatches(PyExc_ValueError)) {
      return -1;
    }
    PyErr_Clear();
    *read_only = true;
  }
  return 0;
}

void release_view(void* context) {
  // After the interpreter's end there is nothing left to release.
  if (!Py_IsInitialized()) return;
  GilScope gil;
  PyBuffer_Release(static_cast<Py_buffer*>(context));
  delete static_cast<Py_buffer*>(context);
}

TensorBase tensor_from_buffer(PyObject* object, bool only_read, const char** copied) {
  if (copied != nullptr) *copied = nullptr;
  if (!PyObject_CheckBuffer(object) || PyBytes_Check(object)) return TensorBase();
  auto* view = new Py_buffer;
  bool read_only = false;
  int opened = open_buffer(object, PyBUF_FULL_RO, view, &read_only);
  if (opened <= 0) {
    delete view;
    // NumPy arrays of objects, dates and the like have no buffer.
    if (opened == 0) {
      TensorBase floats = tensor_from_small_floats(object, only_read, copied);
      if (floats.defined() || PyErr_Occurred() != nullptr) return floats;
      PyErr_Format(PyExc_TypeError, "expected memory of numbers, got %R", Py_TYPE(object));
    }
    return TensorBase();
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
    release_view(view);
    raise_text(wrong_type ? PyExc_TypeError : PyExc_ValueError, problem);
    return TensorBase();
  }
  bool aligned = view->len == 0 || is_aligned(view->buf, type);
  if ((read_only && !only_read) || !aligned) {
    if (copied != nullptr) *copied = aligned ? "is read-only" : "has elements that are not aligned";
    TensorBase copy = guarded([&] { return copy_buffer(*view, sizes, type); }, TensorBase());
    release_view(view);
    return copy;
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
  const char* copied;
  TensorBase tensor =
      guarded([&] { return tensor_from_buffer(array, false, &copied); }, TensorBase());
  if (!tensor.defined()) return nullptr;
  if (copied != nullptr &&
      PyErr_WarnFormat(PyExc_UserWarning, 1,
                       "from_numpy: the array %s; the tensor has a copy of it", copied) != 0) {
    return nullptr;
  }
  return wrap(std::move(tensor));
}

// ---- DLPack ------------------------------------------------------------------------------------

constexpr const char* kPlain = "dltensor";
constexpr const char* kVersioned = "dltensor_versioned";

void end_plain(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, kPlain)) return;  // taken over by a consumer
  auto* managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, kPlain));
  if (managed->deleter != nullptr) managed->deleter(managed);
}
void end_versioned(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, kVersioned)) return;
  auto* managed = static_cast<DLManagedTensorVersioned*>(PyCapsule_GetPointer(capsule, kVersioned));
  if (managed->deleter != nullptr) managed->deleter(managed);
}

// Raises BufferError for tensors that cannot be exported, so that consumers try another way.
template <class F>
PyObject* exporting(F&& body) {
  try {
    return body();
  } catch (const OutOfMemoryError&) {
    return raise_current_exception();
  } catch (const Error& e) {
    return raise_text(PyExc_BufferError, e.what());
  } catch (...) {
    return raise_current_exception();
  }
}

PyObject* dlpack_device(PyObject* self, PyObject*) {
  return exporting([&] {
    auto field = dlpack::device_field(tensor_ref(self).device());
    return Py_BuildValue("ii", field.device_type, field.device_id);
  });
}

// Calls a function of lamella.cuda that orders the streams of producer and consumer.
template <class... A>
PyObject* about_streams(const char* function, const char* format, A... arguments) {
  Ref module(PyImport_ImportModule("lamella.cuda._dlpack"));
  return module ? PyObject_CallMethod(module.get(), function, format, arguments...) : nullptr;
}

// Reads a tuple of two ints; ints that are too large become -1, which no version and device has.
bool read_pair(PyObject* object, const char* name, long* first, long* second) {
  bool fits = PyTuple_Check(object) && PyTuple_GET_SIZE(object) == 2;
  for (int i = 0; fits && i < 2; ++i) {
    int over = 0;
    PyObject* item = PyTuple_GET_ITEM(object, i);
    fits = PyLong_Check(item) && !PyBool_Check(item);
    if (fits) *(i == 0 ? first : second) = PyLong_AsLongAndOverflow(item, &over);
  }
  if (!fits) {
    PyErr_Format(PyExc_TypeError, "__dlpack__: expected '%s' to be a tuple of two ints, got %R",
                 name, object);
  }
  return fits;
}
bool read_copy(PyObject* object, const char* function) {
  if (object == Py_None || PyBool_Check(object)) return true;
  PyErr_Format(PyExc_TypeError, "%s: expected 'copy' to be a bool or None, got %s", function,
               Py_TYPE(object)->tp_name);
  return false;
}

PyObject* clone_of(PyObject* self) {
  static SlotOperator clone{"aten::clone"};
  const ProgramTable* table = clone.table();
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
  long major = 0, minor = 0, type = 0, id = 0;
  if (max_version != Py_None && !read_pair(max_version, "max_version", &major, &minor)) {
    return nullptr;
  }
  if (device != Py_None && !read_pair(device, "dl_device", &type, &id)) return nullptr;
  if (!read_copy(copy, "__dlpack__")) return nullptr;
  if (lamella_tensor_requires_grad(tensor_of(self)) != 0) {
    PyErr_SetString(PyExc_BufferError,
                    "__dlpack__: expected a tensor that does not require grad, got one that does; "
                    "use detach()");
    return nullptr;
  }
  if (!note_read(tensor_of(self), "__dlpack__()")) return nullptr;
  return exporting([&]() -> PyObject* {
    TensorBase tensor = tensor_ref(self);
    if (!has_memory(tensor.impl(), "__dlpack__")) return nullptr;
    if (stream != Py_None && !PyLong_Check(stream)) {
      return PyErr_Format(PyExc_TypeError,
                          "__dlpack__: expected 'stream' to be an int or None, got %s",
                          Py_TYPE(stream)->tp_name);
    }
    if (stream != Py_None && tensor.is_cpu()) {
      PyErr_SetString(PyExc_BufferError,
                      "__dlpack__: expected 'stream' to be None for a tensor on cpu");
      return nullptr;
    }
    if (device != Py_None) {
      auto mine = dlpack::device_field(tensor.device());
      if (mine.device_type != type || mine.device_id != id) {
        return PyErr_Format(PyExc_BufferError,
                            "__dlpack__: expected 'dl_device' to be (%d, %d), where the tensor is, "
                            "got %R",
                            mine.device_type, mine.device_id, device);
      }
    }
    if (tensor.is_cuda()) {
      Ref waits(about_streams("producer_stream", "iO", tensor.device().index(), stream));
      if (!waits) return nullptr;
    }
    Ref copied;
    if (copy == Py_True) {
      copied = Ref(clone_of(self));
      if (!copied) return nullptr;
      tensor = tensor_ref(copied.get());
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

// How imported memory is used.
struct Access {
  bool only_read = false;   // nothing will be written to it
  bool never_copy = false;  // copy=False
  // An unversioned capsule cannot say that memory is read-only. A producer that returns one
  // although it was asked for a versioned one may export constants, as JAX does.
  bool plain_is_read_only = false;
};

PyObject* writable(TensorBase tensor, bool read_only, Access access) {
  if (!read_only || access.only_read) return wrap(std::move(tensor));
  if (access.never_copy) {
    PyErr_SetString(PyExc_BufferError,
                    "from_dlpack: expected memory that may be written because of copy=False, got "
                    "read-only memory");
    return nullptr;
  }
  Ref shared(wrap(std::move(tensor)));
  return shared ? clone_of(shared.get()) : nullptr;
}

PyObject* import_capsule(PyObject* capsule, Access access) {
  return guarded([&]() -> PyObject* {
    if (PyCapsule_IsValid(capsule, kVersioned)) {
      auto* managed =
          static_cast<DLManagedTensorVersioned*>(PyCapsule_GetPointer(capsule, kVersioned));
      TensorBase tensor = dlpack::import_tensor_versioned(managed);
      PyCapsule_SetName(capsule, "used_dltensor_versioned");
      bool read_only = dlpack::is_read_only(tensor);
      return writable(std::move(tensor), read_only, access);
    }
    if (!PyCapsule_IsValid(capsule, kPlain)) {
      PyErr_SetString(PyExc_RuntimeError,
                      "from_dlpack: expected a capsule that was not used before");
      return nullptr;
    }
    auto* managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, kPlain));
    TensorBase tensor = dlpack::import_tensor(managed);
    PyCapsule_SetName(capsule, "used_dltensor");
    return writable(std::move(tensor), access.plain_is_read_only, access);
  });
}

// Whether elements in the host's memory are not aligned for their type.
bool has_unaligned(PyObject* capsule) {
  const DLTensor* t = nullptr;
  if (PyCapsule_IsValid(capsule, kVersioned)) {
    void* managed = PyCapsule_GetPointer(capsule, kVersioned);
    t = &static_cast<DLManagedTensorVersioned*>(managed)->dl_tensor;
  } else if (PyCapsule_IsValid(capsule, kPlain)) {
    t = &static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, kPlain))->dl_tensor;
  } else {
    return false;
  }
  uint64_t bytes = t->dtype.bits / (t->dtype.code == kDLComplex ? 16 : 8);
  constexpr int32_t kHost = 1;  // DLPack's code of the host's memory
  return t->device.device_type == kHost && bytes > 1 &&
         (reinterpret_cast<uintptr_t>(t->data) + t->byte_offset) % bytes != 0;
}

PyObject* from_dlpack(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"ext_tensor", "device", "copy", "_only_read", nullptr};
  PyObject *object, *device = Py_None, *copy = Py_None;
  int only_read = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$OOp:from_dlpack", const_cast<char**>(names),
                                   &object, &device, &copy, &only_read) ||
      !read_copy(copy, "from_dlpack")) {
    return nullptr;
  }
  Access access{only_read != 0, copy == Py_False, false};
  if (PyCapsule_CheckExact(object)) return import_capsule(object, access);
  Ref method(PyObject_GetAttrString(object, "__dlpack__"));
  if (!method) {
    if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return nullptr;
    PyErr_Clear();
    return PyErr_Format(PyExc_TypeError, "from_dlpack: expected an object with __dlpack__, got %s",
                        Py_TYPE(object)->tp_name);
  }
  Ref none(PyTuple_New(0));
  Ref options(Py_BuildValue("{s(ii)}", "max_version", static_cast<int>(dlpack::kMajorVersion),
                            static_cast<int>(dlpack::kMinorVersion)));
  if (!none || !options) return nullptr;
  if (copy != Py_None && PyDict_SetItemString(options.get(), "copy", copy) != 0) return nullptr;
  Ref place(PyObject_CallMethod(object, "__dlpack_device__", nullptr));
  if (!place) PyErr_Clear();
  long place_type = 0, place_index = 0;
  if (place && !read_pair(place.get(), "__dlpack_device__", &place_type, &place_index)) {
    return nullptr;
  }
  if (place_type == kDLCUDA) {
    Ref stream(about_streams("consumer_stream", "l", place_index));
    if (!stream || PyDict_SetItemString(options.get(), "stream", stream.get()) != 0) return nullptr;
  }
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
  access.plain_is_read_only = static_cast<bool>(capsule);
  if (!capsule && PyErr_ExceptionMatches(PyExc_TypeError) && copy == Py_None && device == Py_None) {
    // A producer from before DLPack 1.0.
    PyErr_Clear();
    capsule = Ref(PyObject_CallNoArgs(method.get()));
  }
  if (!capsule) return nullptr;
  // Unaligned elements are copied, as by from_numpy and frombuffer; here the producer copies them.
  if (copy == Py_None && PyCapsule_CheckExact(capsule.get()) && has_unaligned(capsule.get())) {
    if (PyErr_WarnFormat(PyExc_UserWarning, 1,
                         "from_dlpack: the array has elements that are not aligned; the tensor "
                         "has a copy of it") != 0 ||
        PyDict_SetItemString(options.get(), "copy", Py_True) != 0) {
      return nullptr;
    }
    capsule = Ref(call_object(method.get(), none.get(), options.get()));
    if (!capsule) return nullptr;
  }
  if (!PyCapsule_CheckExact(capsule.get())) {
    return PyErr_Format(PyExc_TypeError,
                        "from_dlpack: expected __dlpack__ of %s to return a capsule, got %s",
                        Py_TYPE(object)->tp_name, Py_TYPE(capsule.get())->tp_name);
  }
  return import_capsule(capsule.get(), access);
}

PyMethodDef functions[] = {
    {"from_numpy", from_numpy, METH_O,
     "from_numpy(ndarray)\n\nA tensor over the array's memory; over a copy, with a warning, if it "
     "is read-only."},
    {"from_dlpack", method(from_dlpack), METH_VARARGS | METH_KEYWORDS,
     "from_dlpack(ext_tensor, *, device=None, copy=None)\n\nA tensor over another library's "
     "memory; over a copy of it where that is read-only or, as JAX's, may be. With copy=False such "
     "memory is a BufferError."},
    {nullptr, nullptr, 0, nullptr}};
PyMethodDef methods[] = {
    {"__dlpack__", method(to_dlpack), METH_VARARGS | METH_KEYWORDS,
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
