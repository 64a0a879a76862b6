// Attributes and methods of tensors that are not operators: shape, dtype, memory, elements.
#include <cstring>

#include "lamella/core/ivalue.h"
#include "lamella/core/tensor_impl.h"
#include "lamella/dispatch/guards.h"
#include "python/src/errors.h"
#include "python/src/numbers.h"
#include "python/src/tensor.h"
#include "python/src/trace.h"

namespace lamella::python {
namespace {

KnownOperator permute_op{"aten::permute", ""};

// Calls an operator by its packet, which chooses among overloads. `args`: `count` positional
// arguments, then those of `names`.
PyObject* call_named(SlotOperator& slot, PyObject* const* args, Py_ssize_t count,
                     PyObject* names = nullptr) {
  const ProgramTable* table = slot.table();
  if (table == nullptr) {
    if (PyErr_Occurred() != nullptr) return nullptr;
    return PyErr_Format(PyExc_NotImplementedError, "%s: is not defined", slot.qualified);
  }
  return call_table(*table, strstr(slot.qualified, "::") + 2, false, args, count, names);
}

PyObject* get_shape(PyObject* self, void*) {
  return size_object(tensor_of(self)->sizes, tensor_of(self)->ndim);
}
PyObject* get_dtype(PyObject* self, void*) {
  return dtype_object(static_cast<ScalarType>(tensor_of(self)->scalar_type));
}
PyObject* get_device(PyObject* self, void*) {
  lamella_tensor* tensor = tensor_of(self);
  return device_object(Device(static_cast<DeviceType>(tensor->device_type), tensor->device_index));
}
PyObject* get_layout(PyObject* self, void*) {
  return layout_object(static_cast<Layout>(tensor_of(self)->layout));
}
PyObject* get_ndim(PyObject* self, void*) { return PyLong_FromLong(tensor_of(self)->ndim); }
PyObject* get_itemsize(PyObject* self, void*) {
  return PyLong_FromSize_t(element_size(static_cast<ScalarType>(tensor_of(self)->scalar_type)));
}
PyObject* get_nbytes(PyObject* self, void*) { return PyLong_FromSize_t(tensor_ref(self).nbytes()); }
template <DeviceType D>
PyObject* is_on(PyObject* self, void*) {
  return PyBool_FromLong(tensor_of(self)->device_type == static_cast<uint8_t>(D));
}
PyObject* get_version(PyObject* self, void*) {
  const auto* t = static_cast<const TensorImpl*>(tensor_of(self));
  const bool counts_apart = t->version_counter != 0 && t->base == nullptr;
  if (tensor_ref(self).is_inference() && !counts_apart) {
    PyErr_SetString(PyExc_RuntimeError,
                    "_version: expected a tensor made outside of inference mode, since the writes "
                    "to others are not counted");
    return nullptr;
  }
  return PyLong_FromUnsignedLong(lamella_tensor_version(tensor_of(self)));
}

PyObject* get_t(PyObject* self, void*) {
  lamella_tensor* tensor = tensor_of(self);
  return guarded([&]() -> PyObject* {
    std::vector<int64_t> dims;
    for (int64_t d = tensor->ndim; d-- > 0;) dims.push_back(d);
    TensorBase result = call_known(
        permute_op, {tensor_value(tensor), list_value(LAMELLA_INT_LIST, dims.data(), dims.size())});
    return result.defined() ? wrap(std::move(result)) : nullptr;
  });
}
PyObject* get_part(PyObject* self, void* slot) {
  return call_named(*static_cast<SlotOperator*>(slot), &self, 1);
}
// Writes into the part: the elements of a tensor, or one number for all elements.
int put_part(PyObject* self, PyObject* value, void* slot) {
  if (value == nullptr) {
    PyErr_SetString(PyExc_AttributeError,
                    "Tensor: expected 'real' and 'imag' to be written, not "
                    "deleted");
    return -1;
  }
  Ref part(get_part(self, slot));
  if (!part) return -1;
  Ref written(PyObject_CallMethod(part.get(), is_tensor(value) ? "copy_" : "fill_", "O", value));
  return written ? 0 : -1;
}
SlotOperator real_op{"aten::real"}, imag_op{"aten::imag"};
SlotOperator mt_op{"aten::mT"}, h_op{"aten::matrix_H"}, mh_op{"aten::mH"};

bool read_dim(lamella_tensor* tensor, PyObject* object, const char* what, int64_t* dim) {
  Match m = read_int(object, dim);
  if (m == Match::kNo) {
    PyErr_Format(PyExc_TypeError, "%s: expected 'dim' to be int, got %s", what,
                 Py_TYPE(object)->tp_name);
  }
  if (m != Match::kYes) return false;
  int64_t ndim = tensor->ndim;
  if (*dim < -ndim || *dim >= ndim) {
    PyErr_Format(PyExc_IndexError, "%s: expected 'dim' from %lld to %lld, got %lld", what,
                 static_cast<long long>(-ndim), static_cast<long long>(ndim - 1),
                 static_cast<long long>(*dim));
    return false;
  }
  if (*dim < 0) *dim += ndim;
  return true;
}

template <bool Strides>
PyObject* extents(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"dim", nullptr};
  PyObject* object = Py_None;
  const char* what = Strides ? "stride" : "size";
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, Strides ? "|O:stride" : "|O:size",
                                   const_cast<char**>(names), &object)) {
    return nullptr;
  }
  lamella_tensor* tensor = tensor_of(self);
  const int64_t* list = Strides ? tensor->strides : tensor->sizes;
  if (object != Py_None) {
    int64_t dim;
    return read_dim(tensor, object, what, &dim) ? PyLong_FromLongLong(list[dim]) : nullptr;
  }
  if (!Strides) return size_object(list, tensor->ndim);
  PyObject* result = PyTuple_New(tensor->ndim);
  for (int d = 0; result != nullptr && d < tensor->ndim; ++d) {
    PyTuple_SET_ITEM(result, d, PyLong_FromLongLong(list[d]));
  }
  return result;
}

PyObject* dim(PyObject* self, PyObject*) { return get_ndim(self, nullptr); }
PyObject* numel(PyObject* self, PyObject*) { return PyLong_FromLongLong(tensor_of(self)->numel); }
PyObject* element_bytes(PyObject* self, PyObject*) { return get_itemsize(self, nullptr); }
PyObject* storage_offset(PyObject* self, PyObject*) {
  return PyLong_FromLongLong(tensor_of(self)->storage_offset);
}
PyObject* data_ptr(PyObject* self, PyObject*) {
  if (!note_read(tensor_of(self), "data_ptr()")) return nullptr;
  if (!has_memory(tensor_of(self), "data_ptr")) return nullptr;
  lamella_tensor_expose(tensor_of(self));
  return PyLong_FromVoidPtr(tensor_of(self)->data);
}
PyObject* get_device_index(PyObject* self, PyObject*) {
  return PyLong_FromLong(tensor_of(self)->device_index);
}
template <uint32_t Flag>
PyObject* has_flag(PyObject* self, PyObject*) {
  return PyBool_FromLong((tensor_of(self)->flags & Flag) != 0);
}
template <bool (*Test)(ScalarType)>
PyObject* of_type(PyObject* self, PyObject*) {
  return PyBool_FromLong(Test(static_cast<ScalarType>(tensor_of(self)->scalar_type)));
}
bool test_floating(ScalarType type) { return is_floating_point(type); }
bool test_complex(ScalarType type) { return is_complex(type); }
bool test_signed(ScalarType type) { return is_signed_type(type); }

PyObject* is_contiguous(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"memory_format", nullptr};
  PyObject* format = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O!:is_contiguous", const_cast<char**>(names),
                                   &MemoryFormatType, &format)) {
    return nullptr;
  }
  MemoryFormat wanted = format != nullptr ? reinterpret_cast<PyMemoryFormat*>(format)->format
                                          : MemoryFormat::Contiguous;
  return PyBool_FromLong(tensor_ref(self).is_contiguous(wanted));
}

PyObject* item(PyObject* self, PyObject*) { return tensor_item(tensor_of(self)); }
PyObject* to_list(PyObject* self, PyObject*) { return tensor_to_list(self); }
PyObject* as_complex(PyObject* self, PyObject*) {
  if (tensor_of(self)->numel != 1) {
    return PyErr_Format(PyExc_ValueError,
                        "complex(): expected a tensor of one element, got one of %lld elements",
                        static_cast<long long>(tensor_of(self)->numel));
  }
  Ref value(tensor_item(tensor_of(self)));
  if (!value) return nullptr;
  Py_complex number = PyComplex_AsCComplex(value.get());
  return PyErr_Occurred() != nullptr ? nullptr : PyComplex_FromCComplex(number);
}

SlotOperator to_op{"aten::to"};

// self.to(target, memory_format=...); `there`: without a memory format the result is `self`.
PyObject* converted(PyObject* self, const char* what, bool there, PyObject* target,
                    PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  Ref held(target);
  if (!target) return nullptr;
  static PyObject* names = Py_BuildValue("(s)", "memory_format");
  if (names == nullptr) return nullptr;
  PyObject* format = Py_None;
  Py_ssize_t named = kwnames != nullptr ? PyTuple_GET_SIZE(kwnames) : 0;
  for (Py_ssize_t i = 0; i < named; ++i) {
    PyObject* name = PyTuple_GET_ITEM(kwnames, i);
    if (PyUnicode_CompareWithASCIIString(name, "memory_format") != 0) {
      return PyErr_Format(PyExc_TypeError, "%s: expected no argument but 'memory_format', got '%U'",
                          what, name);
    }
    format = args[nargs + i];
  }
  if (nargs != 0) {
    return PyErr_Format(PyExc_TypeError, "%s: expected no positional arguments, got %zd", what,
                        nargs);
  }
  if (format == Py_None && there) return Ref::borrow(self).release();
  if (format != Py_None && Py_TYPE(format) != &MemoryFormatType) {
    return PyErr_Format(PyExc_TypeError,
                        "%s: expected 'memory_format' to be a memory_format, got %s", what,
                        Py_TYPE(format)->tp_name);
  }
  PyObject* given[] = {self, target, format};
  return call_named(to_op, given, 2, format != Py_None ? names : nullptr);
}

template <ScalarType T>
PyObject* convert_to(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  bool there = tensor_of(self)->scalar_type == static_cast<uint8_t>(T);
  if (there && nargs == 0 && kwnames == nullptr) return Ref::borrow(self).release();
  return converted(self, dtype_name(T), there, dtype_object(T), args, nargs, kwnames);
}
PyObject* cpu(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  return converted(self, "cpu", tensor_of(self)->device_type == 0, device_object(Device(kCPU)),
                   args, nargs, kwnames);
}
PyObject* is_set_to(PyObject* self, PyObject* other) {
  if (!is_tensor(other)) return PyErr_Format(PyExc_TypeError, "is_set_to: expected a Tensor");
  lamella_tensor *a = tensor_of(self), *b = tensor_of(other);
  bool same = a->storage == b->storage && a->storage_offset == b->storage_offset &&
              a->ndim == b->ndim &&
              memcmp(a->sizes, b->sizes, sizeof(int64_t) * static_cast<size_t>(a->ndim)) == 0 &&
              memcmp(a->strides, b->strides, sizeof(int64_t) * static_cast<size_t>(a->ndim)) == 0;
  return PyBool_FromLong(same);
}
// A tensor's storage, for comparison: its identity, its address, its size in bytes.
PyObject* storage_info(PyObject* self, PyObject*) {
  lamella_tensor* tensor = tensor_of(self);
  void* data = tensor->storage != nullptr ? tensor->storage->data : nullptr;
  return Py_BuildValue("KKn", reinterpret_cast<unsigned long long>(tensor->storage),
                       reinterpret_cast<unsigned long long>(data),
                       static_cast<Py_ssize_t>(lamella_tensor_storage_bytes(tensor)));
}

constexpr int kConversion = METH_FASTCALL | METH_KEYWORDS;
// The Python number of an element that read_element or load_element has put into value and parts.
PyObject* number_of_element(const lamella_value& value, const double parts[2],
                            const lamella_tensor* tensor) {
  switch (value.tag) {
    case LAMELLA_DOUBLE:
      return PyFloat_FromDouble(value.as.d);
    case LAMELLA_BOOL:
      return PyBool_FromLong(value.as.i != 0);
    case LAMELLA_COMPLEX:
      return PyComplex_FromDoubles(parts[0], parts[1]);
    default:
      return tensor->scalar_type == static_cast<uint8_t>(ScalarType::UInt64)
                 ? PyLong_FromUnsignedLongLong(static_cast<uint64_t>(value.as.i))
                 : PyLong_FromLongLong(value.as.i);
  }
}

PyObject* list_of_elements(const char* data, const lamella_tensor* tensor, int d, size_t bytes) {
  if (d == tensor->ndim) {
    lamella_value value;
    double parts[2];
    load_element(data, static_cast<ScalarType>(tensor->scalar_type), &value, parts);
    return number_of_element(value, parts, tensor);
  }
  Py_ssize_t size = static_cast<Py_ssize_t>(tensor->sizes[d]);
  PyObject* list = PyList_New(size);
  for (Py_ssize_t i = 0; list != nullptr && i < size; ++i) {
    PyObject* element = list_of_elements(
        data + i * tensor->strides[d] * static_cast<Py_ssize_t>(bytes), tensor, d + 1, bytes);
    if (element == nullptr) {
      Py_CLEAR(list);
    } else {
      PyList_SET_ITEM(list, i, element);
    }
  }
  return list;
}

}  // namespace

PyObject* tensor_item(lamella_tensor* tensor) {
  lamella_value value;
  double parts[2];
  if (read_element(tensor, &value, parts) != Match::kYes) return nullptr;
  return number_of_element(value, parts, tensor);
}

TensorBase readable(lamella_tensor* tensor) {
  static SlotOperator resolve_conj{"aten::resolve_conj"}, resolve_neg{"aten::resolve_neg"};
  if (!has_memory(tensor, "tolist")) return TensorBase();
  if (tensor->device_type == static_cast<uint8_t>(DeviceType::Meta)) {
    PyErr_SetString(PyExc_NotImplementedError,
                    "expected a tensor with elements to read, got one on device meta");
    return TensorBase();
  }
  Ref object(wrap(TensorBase::borrow(tensor)));
  if (object && (tensor->flags & LAMELLA_TENSOR_CONJ) != 0) {
    PyObject* argument = object.get();
    object = Ref(call_named(resolve_conj, &argument, 1));
  }
  if (object && (tensor_of(object.get())->flags & LAMELLA_TENSOR_NEG) != 0) {
    PyObject* argument = object.get();
    object = Ref(call_named(resolve_neg, &argument, 1));
  }
  if (object) object = Ref(cpu(object.get(), nullptr, 0, nullptr));
  if (!object) return TensorBase();
  // An alias, as Python code may change the tensor while it is read.
  ExcludeDispatchKeyGuard without{DispatchKey::Python};
  return guarded([&] { return make_detached(tensor_ref(object.get())); }, TensorBase());
}

PyObject* tensor_to_list(PyObject* self) {
  if (!note_read(tensor_of(self), "tolist()")) return nullptr;
  TensorBase tensor = readable(tensor_of(self));
  if (!tensor.defined()) return nullptr;
  return list_of_elements(static_cast<const char*>(tensor.const_data_ptr()), tensor.impl(), 0,
                          tensor.itemsize());
}

PyGetSetDef tensor_getset[] = {
    {"shape", get_shape, nullptr, "The sizes of all dimensions.", nullptr},
    {"dtype", get_dtype, nullptr, "The type of the elements.", nullptr},
    {"device", get_device, nullptr, "Where the memory is.", nullptr},
    {"layout", get_layout, nullptr, "How the elements are stored: lamella.strided.", nullptr},
    {"ndim", get_ndim, nullptr, "The number of dimensions.", nullptr},
    {"itemsize", get_itemsize, nullptr, "Bytes of one element.", nullptr},
    {"nbytes", get_nbytes, nullptr, "Bytes of all elements.", nullptr},
    {"is_cpu", is_on<DeviceType::CPU>, nullptr, "Whether the memory is the host's.", nullptr},
    {"is_cuda", is_on<DeviceType::CUDA>, nullptr, "Whether the memory is a CUDA device's.",
     nullptr},
    {"is_meta", is_on<DeviceType::Meta>, nullptr, "Whether it has a shape and no memory.", nullptr},
    {"T", get_t, nullptr, "The tensor with its dimensions reversed.", nullptr},
    {"mT", get_part, nullptr, "The tensor with its last two dimensions exchanged.", &mt_op},
    {"H", get_part, nullptr, "The matrix transposed and conjugated.", &h_op},
    {"mH", get_part, nullptr, "The last two dimensions exchanged, conjugated.", &mh_op},
    {"real", get_part, put_part, "A view of the real parts, which may be written.", &real_op},
    {"imag", get_part, put_part, "A view of the imaginary parts, which may be written.", &imag_op},
    {"_version", get_version, nullptr, "Writes so far, through any alias.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyMethodDef tensor_methods[] = {
    {"size", method(extents<false>), METH_VARARGS | METH_KEYWORDS,
     "The shape, or the size of one dimension."},
    {"stride", method(extents<true>), METH_VARARGS | METH_KEYWORDS,
     "The strides, or that of one dimension, counted in elements."},
    {"dim", dim, METH_NOARGS, "The number of dimensions."},
    {"ndimension", dim, METH_NOARGS, "The number of dimensions."},
    {"numel", numel, METH_NOARGS, "The number of elements."},
    {"nelement", numel, METH_NOARGS, "The number of elements."},
    {"element_size", element_bytes, METH_NOARGS, "Bytes of one element."},
    {"storage_offset", storage_offset, METH_NOARGS,
     "Where the first element is in the storage, counted in elements."},
    {"data_ptr", data_ptr, METH_NOARGS, "The address of the first element."},
    {"get_device", get_device_index, METH_NOARGS, "The device's index, -1 for the current one."},
    {"is_contiguous", method(is_contiguous), METH_VARARGS | METH_KEYWORDS,
     "Whether the elements lie in memory in the order of a memory format."},
    {"is_floating_point", of_type<test_floating>, METH_NOARGS,
     "Whether the dtype is a floating-point type."},
    {"is_complex", of_type<test_complex>, METH_NOARGS, "Whether the dtype is a complex type."},
    {"is_signed", of_type<test_signed>, METH_NOARGS, "Whether the dtype has negative values."},
    {"is_conj", has_flag<LAMELLA_TENSOR_CONJ>, METH_NOARGS,
     "Whether its elements are the conjugates of those in memory."},
    {"is_neg", has_flag<LAMELLA_TENSOR_NEG>, METH_NOARGS,
     "Whether its elements are the negatives of those in memory."},
    {"is_inference", has_flag<LAMELLA_TENSOR_INFERENCE>, METH_NOARGS,
     "Whether it was made in inference mode."},
    {"is_set_to", is_set_to, METH_O, "Whether both are the same view of the same memory."},
    {"item", item, METH_NOARGS, "The one element as a Python number."},
    {"tolist", to_list, METH_NOARGS, "The elements as nested lists."},
    {"__complex__", as_complex, METH_NOARGS, nullptr},
    {"float", method(convert_to<ScalarType::Float>), kConversion, "Converts to float32."},
    {"double", method(convert_to<ScalarType::Double>), kConversion, "Converts to float64."},
    {"half", method(convert_to<ScalarType::Half>), kConversion, "Converts to float16."},
    {"bfloat16", method(convert_to<ScalarType::BFloat16>), kConversion, "Converts to bfloat16."},
    {"int", method(convert_to<ScalarType::Int>), kConversion, "Converts to int32."},
    {"long", method(convert_to<ScalarType::Long>), kConversion, "Converts to int64."},
    {"short", method(convert_to<ScalarType::Short>), kConversion, "Converts to int16."},
    {"char", method(convert_to<ScalarType::Char>), kConversion, "Converts to int8."},
    {"byte", method(convert_to<ScalarType::Byte>), kConversion, "Converts to uint8."},
    {"bool", method(convert_to<ScalarType::Bool>), kConversion, "Converts to bool."},
    {"cfloat", method(convert_to<ScalarType::ComplexFloat>), kConversion, "Converts to complex64."},
    {"cdouble", method(convert_to<ScalarType::ComplexDouble>), kConversion,
     "Converts to complex128."},
    {"chalf", method(convert_to<ScalarType::ComplexHalf>), kConversion, "Converts to complex32."},
    {"cpu", method(cpu), kConversion, "Copies to the CPU, or itself if it is there."},
    {"_storage_info", storage_info, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace lamella::python
