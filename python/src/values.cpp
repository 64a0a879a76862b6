// dtype, device, layout, memory_format and Size.
#include <algorithm>
#include <cstring>
#include <limits>

#include "lamella/core/tensor_options.h"
#include "python/src/errors.h"

namespace lamella::python {

PyTypeObject DtypeType = {PyVarObject_HEAD_INIT(nullptr, 0)};
PyTypeObject DeviceType_ = {PyVarObject_HEAD_INIT(nullptr, 0)};
PyTypeObject LayoutType = {PyVarObject_HEAD_INIT(nullptr, 0)};
PyTypeObject MemoryFormatType = {PyVarObject_HEAD_INIT(nullptr, 0)};
PyTypeObject SizeType = {PyVarObject_HEAD_INIT(nullptr, 0)};

namespace {

// The only objects of each value, by number. Filled at import and never changed.
PyObject* dtypes[64];
PyObject* layouts[static_cast<int>(Layout::NumOptions)];
PyObject* formats[static_cast<int>(MemoryFormat::NumOptions)];

PyObject* cached(PyObject* object, const char* what) {
  if (object == nullptr) return PyErr_Format(PyExc_RuntimeError, "unknown %s", what);
  Py_INCREF(object);
  return object;
}

// ---- dtype ----

ScalarType type_of(PyObject* self) { return reinterpret_cast<PyDtype*>(self)->type; }

// The name of the package in texts of values; lamella.compat changes it.
const char* package = "lamella";

PyObject* dtype_repr(PyObject* self) {
  return PyUnicode_FromFormat("%s.%s", package, dtype_name(type_of(self)));
}
PyObject* dtype_reduce(PyObject* self, PyObject*) {
  return PyUnicode_FromString(dtype_name(type_of(self)));
}
PyObject* dtype_itemsize(PyObject* self, void*) {
  return PyLong_FromSize_t(element_size(type_of(self)));
}
PyObject* dtype_is_floating(PyObject* self, void*) {
  return PyBool_FromLong(is_floating_point(type_of(self)));
}
PyObject* dtype_is_complex(PyObject* self, void*) {
  return PyBool_FromLong(is_complex(type_of(self)));
}
PyObject* dtype_is_signed(PyObject* self, void*) {
  return PyBool_FromLong(is_signed_type(type_of(self)));
}
PyObject* dtype_to_real(PyObject* self, PyObject*) {
  return dtype_object(to_real_type(type_of(self)));
}
PyObject* dtype_to_complex(PyObject* self, PyObject*) {
  return guarded([&] { return dtype_object(to_complex_type(type_of(self))); });
}

// NumPy's protocol for foreign dtypes, so that numpy.empty(3, dtype=x.dtype) works.
PyObject* dtype_in_numpy(PyObject* self, void*) {
  ScalarType type = type_of(self);
  bool is_known =
      !is_float8(type) && type != ScalarType::BFloat16 && type != ScalarType::ComplexHalf;
  if (!is_known) {
    return PyErr_Format(PyExc_AttributeError, "NumPy has no dtype for %s", dtype_name(type));
  }
  Ref numpy(PyImport_ImportModule("numpy"));
  return numpy ? PyObject_CallMethod(numpy.get(), "dtype", "s", dtype_name(type)) : nullptr;
}

PyGetSetDef dtype_getset[] = {
    {"itemsize", dtype_itemsize, nullptr, "Bytes of one element.", nullptr},
    {"is_floating_point", dtype_is_floating, nullptr, nullptr, nullptr},
    {"is_complex", dtype_is_complex, nullptr, nullptr, nullptr},
    {"is_signed", dtype_is_signed, nullptr, nullptr, nullptr},
    {"__numpy_dtype__", dtype_in_numpy, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMethodDef dtype_methods[] = {
    {"__reduce__", dtype_reduce, METH_NOARGS, nullptr},
    {"to_real", dtype_to_real, METH_NOARGS, "The dtype of the real and imaginary parts."},
    {"to_complex", dtype_to_complex, METH_NOARGS, "The complex dtype with parts of this dtype."},
    {nullptr, nullptr, 0, nullptr}};

bool dtype_by_name(const char* name, ScalarType* type) {
  if (strcmp(name, "bool_") == 0) name = "bool";
  for (PyObject* object : dtypes) {
    if (object != nullptr && strcmp(name, dtype_name(type_of(object))) == 0) {
      *type = type_of(object);
      return true;
    }
  }
  return false;
}

// ---- device ----

Device device_of(PyObject* self) { return reinterpret_cast<PyDevice*>(self)->device; }

PyObject* device_new(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"type", "index", nullptr};
  PyObject* type;
  PyObject* index = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:device", const_cast<char**>(names), &type,
                                   &index)) {
    return nullptr;
  }
  Device device(kCPU);
  int found = device_from_object(type, &device);
  if (found < 0) return nullptr;
  if (found == 0) {
    return PyErr_Format(PyExc_TypeError,
                        "device: expected 'type' to be a str, int or device, got %s",
                        Py_TYPE(type)->tp_name);
  }
  if (index != Py_None) {
    long number = PyLong_AsLong(index);
    if (number == -1 && PyErr_Occurred() != nullptr) return nullptr;
    if (device.has_index()) {
      return PyErr_Format(PyExc_RuntimeError,
                          "device: expected 'type' without an index beside 'index', got '%s'",
                          device.str().c_str());
    }
    if (number < 0 || number > 127) {
      return PyErr_Format(PyExc_RuntimeError, "device: expected 'index' from 0 to 127, got %ld",
                          number);
    }
    device.set_index(static_cast<DeviceIndex>(number));
  }
  return device_object(device);
}
PyObject* device_repr(PyObject* self) {
  Device device = device_of(self);
  if (!device.has_index()) {
    return PyUnicode_FromFormat("device(type='%s')", device_type_name(device.type()));
  }
  return PyUnicode_FromFormat("device(type='%s', index=%d)", device_type_name(device.type()),
                              device.index());
}
PyObject* device_str(PyObject* self) { return PyUnicode_FromString(device_of(self).str().c_str()); }
Py_hash_t device_hash(PyObject* self) {
  Device device = device_of(self);
  return static_cast<int>(device.type()) * 256 + device.index() + 2;
}
PyObject* device_compare(PyObject* self, PyObject* other, int op) {
  if (Py_TYPE(other) != &DeviceType_ || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong((device_of(self) == device_of(other)) == (op == Py_EQ));
}
PyObject* device_type(PyObject* self, void*) {
  return PyUnicode_FromString(device_type_name(device_of(self).type()));
}
PyObject* device_index(PyObject* self, void*) {
  if (!device_of(self).has_index()) Py_RETURN_NONE;
  return PyLong_FromLong(device_of(self).index());
}
PyObject* device_reduce(PyObject* self, PyObject*) {
  return Py_BuildValue("O(s)", &DeviceType_, device_of(self).str().c_str());
}
// The number of the type in PyTorch.
PyObject* device_number(PyObject* self, void*) {
  return PyLong_FromLong(static_cast<long>(device_of(self).type()));
}
// _of(number of the type, index)
PyObject* device_from_numbers(PyObject*, PyObject* args) {
  int type, index;
  if (!PyArg_ParseTuple(args, "ii:_of", &type, &index)) return nullptr;
  if (type < 0 || type >= kDeviceTypes || index < -1 || index > 127) {
    return PyErr_Format(PyExc_ValueError,
                        "device: expected a type from 0 to %d and an index from -1 to 127, got %d "
                        "and %d",
                        kDeviceTypes - 1, type, index);
  }
  return device_object(Device(static_cast<DeviceType>(type), static_cast<DeviceIndex>(index)));
}
PyGetSetDef device_getset[] = {{"type", device_type, nullptr, nullptr, nullptr},
                               {"_number", device_number, nullptr, nullptr, nullptr},
                               {"index", device_index, nullptr, nullptr, nullptr},
                               {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMethodDef device_methods[] = {{"__reduce__", device_reduce, METH_NOARGS, nullptr},
                                {"_of", device_from_numbers, METH_VARARGS | METH_STATIC, nullptr},
                                {nullptr, nullptr, 0, nullptr}};

// ---- layout and memory format ----

const char* layout_name(Layout layout) {
  constexpr const char* names[] = {"strided",    "sparse_coo", "sparse_csr", "_mkldnn",
                                   "sparse_csc", "sparse_bsr", "sparse_bsc", "jagged"};
  return names[static_cast<int>(layout)];
}
PyObject* layout_repr(PyObject* self) {
  return PyUnicode_FromFormat("%s.%s", package,
                              layout_name(reinterpret_cast<PyLayout*>(self)->layout));
}
PyObject* layout_reduce(PyObject* self, PyObject*) {
  return PyUnicode_FromString(layout_name(reinterpret_cast<PyLayout*>(self)->layout));
}
PyObject* format_repr(PyObject* self) {
  return PyUnicode_FromFormat("%s.%s", package,
                              toString(reinterpret_cast<PyMemoryFormat*>(self)->format));
}
PyObject* format_reduce(PyObject* self, PyObject*) {
  return PyUnicode_FromString(toString(reinterpret_cast<PyMemoryFormat*>(self)->format));
}
PyMethodDef layout_methods[] = {{"__reduce__", layout_reduce, METH_NOARGS, nullptr},
                                {nullptr, nullptr, 0, nullptr}};
PyMethodDef format_methods[] = {{"__reduce__", format_reduce, METH_NOARGS, nullptr},
                                {nullptr, nullptr, 0, nullptr}};

// ---- Size ----

PyObject* as_size(PyObject* tuple) {
  if (tuple == nullptr || !PyTuple_CheckExact(tuple)) return tuple;
  Py_ssize_t count = PyTuple_GET_SIZE(tuple);
  PyObject* size = SizeType.tp_alloc(&SizeType, count);
  for (Py_ssize_t i = 0; size != nullptr && i < count; ++i) {
    PyObject* item = PyTuple_GET_ITEM(tuple, i);
    Py_INCREF(item);
    PyTuple_SET_ITEM(size, i, item);
  }
  Py_DECREF(tuple);
  return size;
}
PyObject* size_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  PyObject* self = PyTuple_Type.tp_new(type, args, kwargs);
  if (self == nullptr) return nullptr;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); ++i) {
    PyObject* item = PyTuple_GET_ITEM(self, i);
    if (PyLong_Check(item)) continue;
    PyObject* number = PyNumber_Index(item);
    if (number == nullptr) {
      PyErr_Format(PyExc_TypeError, "Size: expected items to be int, got %s",
                   Py_TYPE(item)->tp_name);
      Py_DECREF(self);
      return nullptr;
    }
    PyTuple_SET_ITEM(self, i, number);
    Py_DECREF(item);
  }
  return self;
}
PyObject* size_repr(PyObject* self) {
  Ref list(PySequence_List(self));
  if (!list) return nullptr;
  return PyUnicode_FromFormat("%s.Size(%R)", package, list.get());
}
PyObject* size_numel(PyObject* self, PyObject*) {
  Ref product(PyLong_FromLong(1));
  for (Py_ssize_t i = 0; product && i < PyTuple_GET_SIZE(self); ++i) {
    product = Ref(PyNumber_Multiply(product.get(), PyTuple_GET_ITEM(self, i)));
  }
  return product.release();
}
PyObject* size_reduce(PyObject* self, PyObject*) {
  Ref list(PySequence_List(self));
  if (!list) return nullptr;
  return Py_BuildValue("O(O)", &SizeType, list.get());
}
PyObject* size_concat(PyObject* self, PyObject* other) {
  return as_size(PyTuple_Type.tp_as_sequence->sq_concat(self, other));
}
// As a number slot it also handles tuple + Size, which a sequence slot would not.
PyObject* size_add(PyObject* a, PyObject* b) {
  if (!PyTuple_Check(a) || !PyTuple_Check(b)) Py_RETURN_NOTIMPLEMENTED;
  return size_concat(a, b);
}
PyObject* size_repeat(PyObject* self, Py_ssize_t times) {
  return as_size(PyTuple_Type.tp_as_sequence->sq_repeat(self, times));
}
PyObject* size_subscript(PyObject* self, PyObject* key) {
  PyObject* result = PyTuple_Type.tp_as_mapping->mp_subscript(self, key);
  return PySlice_Check(key) ? as_size(result) : result;
}
PyNumberMethods size_number;
PySequenceMethods size_sequence;
PyMappingMethods size_mapping;
PyMethodDef size_methods[] = {{"numel", size_numel, METH_NOARGS, "The product of all sizes."},
                              {"__reduce__", size_reduce, METH_NOARGS, nullptr},
                              {nullptr, nullptr, 0, nullptr}};

// ---- functions ----

PyObject* promote(PyObject*, PyObject* args) {
  PyObject *a, *b;
  if (!PyArg_ParseTuple(args, "O!O!:promote_types", &DtypeType, &a, &DtypeType, &b)) return nullptr;
  return guarded([&] { return dtype_object(promote_types(type_of(a), type_of(b))); });
}
PyObject* can_cast_types(PyObject*, PyObject* args) {
  PyObject *a, *b;
  if (!PyArg_ParseTuple(args, "O!O!:can_cast", &DtypeType, &a, &DtypeType, &b)) return nullptr;
  return PyBool_FromLong(can_cast(type_of(a), type_of(b)));
}
PyObject* dtype_of(PyObject*, PyObject* object) {
  ScalarType type;
  if (dtype_from_object(object, &type)) return dtype_object(type);
  return PyErr_Format(PyExc_TypeError, "expected a dtype, got %R", object);
}
PyObject* get_default(PyObject*, PyObject*) { return dtype_object(default_dtype()); }
PyObject* set_default(PyObject*, PyObject* object) {
  ScalarType type;
  if (!dtype_from_object(object, &type) || !is_floating_point(type)) {
    return PyErr_Format(PyExc_TypeError,
                        "set_default_dtype: expected a floating-point dtype, got %R", object);
  }
  return guarded([&]() -> PyObject* {
    change_default_dtype(type);
    Py_RETURN_NONE;
  });
}

// Types whose names include the package, by which other libraries recognise them.
struct Named {
  PyTypeObject* type;
  const char* in_lamella;
  const char* in_torch;
};
const Named named_types[] = {
    {&TensorType, "lamella.Tensor", "torch.Tensor"},
    {&DtypeType, "lamella.dtype", "torch.dtype"},
    {&DeviceType_, "lamella.device", "torch.device"},
    {&LayoutType, "lamella.layout", "torch.layout"},
    {&MemoryFormatType, "lamella.memory_format", "torch.memory_format"},
    {&SizeType, "lamella.Size", "torch.Size"},
};

// _set_package(name): sets the prefix of dtypes, layouts, formats and sizes in texts, and the
// package of their types.
PyObject* set_package(PyObject*, PyObject* name) {
  const char* text = PyUnicode_AsUTF8(name);
  if (text == nullptr) return nullptr;
  bool is_torch = strcmp(text, "torch") == 0;
  package = is_torch ? "torch" : "lamella";
  Ref value(PyUnicode_FromString(package));
  if (!value) return nullptr;
  for (const Named& named : named_types) {
    if (PyDict_SetItemString(named.type->tp_dict, "__module__", value.get()) != 0) return nullptr;
    named.type->tp_name = is_torch ? named.in_torch : named.in_lamella;
    PyType_Modified(named.type);
  }
  Py_RETURN_NONE;
}

// Of a floating-point type: bits of the mantissa, exponent of the smallest normal number, largest
// number, decimal digits.
template <class T>
PyObject* limits_of() {
  if constexpr (is_floating_point(CppTypeToScalarType<T>::value)) {
    using Limits = std::numeric_limits<T>;
    return Py_BuildValue("(iidi)", Limits::digits - 1, Limits::min_exponent - 1,
                         static_cast<double>(Limits::max()), std::max(Limits::digits10, 1));
  } else {
    Py_RETURN_NONE;
  }
}
// _scalar_types(): the columns of scalar_type.def that Python's modules need.
PyObject* scalar_types(PyObject*, PyObject*) {
  Ref rows(PyList_New(0));
#define LAMELLA_SCALAR_TYPE(cpp, name, number, text, code, format, safetensors)          \
  if (rows) {                                                                            \
    Ref row(Py_BuildValue("(NssN)", dtype_object(ScalarType::name), format, safetensors, \
                          limits_of<cpp>()));                                            \
    if (!row || PyList_Append(rows.get(), row.get()) != 0) return nullptr;               \
  }
#include "lamella/core/scalar_type.def"
  return rows.release();
}

PyMethodDef functions[] = {{"_set_package", set_package, METH_O, nullptr},
                           {"promote_types", promote, METH_VARARGS,
                            "The smallest dtype that both convert to without losing range."},
                           {"can_cast", can_cast_types, METH_VARARGS,
                            "Whether a result of the first dtype may be written to the second."},
                           {"_dtype", dtype_of, METH_O, nullptr},
                           {"_scalar_types", scalar_types, METH_NOARGS, nullptr},
                           {"get_default_dtype", get_default, METH_NOARGS,
                            "The dtype of floating-point factories and Python floats."},
                           {"set_default_dtype", set_default, METH_O,
                            "Sets the dtype of floating-point factories and Python floats."},
                           {nullptr, nullptr, 0, nullptr}};

template <class T>
T* make(PyTypeObject* type) {
  return reinterpret_cast<T*>(type->tp_alloc(type, 0));
}

}  // namespace

const char* package_name() { return package; }

int add_type(PyObject* module, PyTypeObject* type, const char* name, size_t size) {
  type->tp_name = name;
  type->tp_basicsize = static_cast<Py_ssize_t>(size);
  type->tp_flags |= Py_TPFLAGS_DEFAULT;
  if (PyType_Ready(type) != 0) return -1;
  Py_INCREF(type);
  return PyModule_AddObject(module, strchr(name, '.') + 1, reinterpret_cast<PyObject*>(type));
}

PyObject* dtype_object(ScalarType type) {
  return cached(dtypes[static_cast<uint8_t>(type) & 63], "dtype");
}
PyObject* layout_object(Layout layout) {
  int i = static_cast<int>(layout);
  return cached(i >= 0 && i < static_cast<int>(Layout::NumOptions) ? layouts[i] : nullptr,
                "layout");
}
PyObject* memory_format_object(MemoryFormat format) {
  int i = static_cast<int>(format);
  return cached(i >= 0 && i < static_cast<int>(MemoryFormat::NumOptions) ? formats[i] : nullptr,
                "memory format");
}
PyObject* device_object(Device device) {
  auto* object = make<PyDevice>(&DeviceType_);
  if (object != nullptr) object->device = device;
  return reinterpret_cast<PyObject*>(object);
}
PyObject* size_object(const int64_t* sizes, Py_ssize_t count) {
  PyObject* object = SizeType.tp_alloc(&SizeType, count);
  for (Py_ssize_t i = 0; object != nullptr && i < count; ++i) {
    PyObject* item = PyLong_FromLongLong(sizes[i]);
    if (item == nullptr) {
      Py_DECREF(object);
      return nullptr;
    }
    PyTuple_SET_ITEM(object, i, item);
  }
  return object;
}

bool dtype_from_object(PyObject* object, ScalarType* type) {
  if (Py_TYPE(object) == &DtypeType) {
    *type = type_of(object);
    return true;
  }
  if (object == reinterpret_cast<PyObject*>(&PyFloat_Type)) {
    *type = ScalarType::Double;
    return true;
  }
  if (object == reinterpret_cast<PyObject*>(&PyLong_Type)) {
    *type = ScalarType::Long;
    return true;
  }
  if (object == reinterpret_cast<PyObject*>(&PyBool_Type)) {
    *type = ScalarType::Bool;
    return true;
  }
  if (object == reinterpret_cast<PyObject*>(&PyComplex_Type)) {
    *type = ScalarType::ComplexDouble;
    return true;
  }
  // NumPy's types: numpy.float32 and numpy.dtype('float32').
  const char* name;
  Ref text;
  if (PyType_Check(object)) {
    name = reinterpret_cast<PyTypeObject*>(object)->tp_name;
    if (strncmp(name, "numpy.", 6) != 0) return false;
    name += 6;
  } else {
    name = Py_TYPE(object)->tp_name;
    if (strncmp(name, "numpy.dtype", 11) != 0) return false;
    text = Ref(PyObject_GetAttrString(object, "name"));
    name = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
    if (name == nullptr) {
      PyErr_Clear();
      return false;
    }
  }
  return dtype_by_name(name, type);
}

int device_from_object(PyObject* object, Device* device) {
  if (Py_TYPE(object) == &DeviceType_) {
    *device = device_of(object);
    return 1;
  }
  if (PyUnicode_Check(object)) {
    Py_ssize_t size = 0;
    const char* text = PyUnicode_AsUTF8AndSize(object, &size);
    if (text == nullptr) return -1;
    return guarded(
        [&] {
          *device = Device(std::string_view(text, static_cast<size_t>(size)));
          return 1;
        },
        -1);
  }
  if (!PyLong_Check(object) || PyBool_Check(object)) return 0;
  long index = PyLong_AsLong(object);
  if (PyErr_Occurred() != nullptr || index < 0 || index > 127) {
    PyErr_Clear();
    PyErr_Format(PyExc_RuntimeError, "Device: expected an index from 0 to 127, got %R", object);
    return -1;
  }
  *device = Device(kCUDA, static_cast<DeviceIndex>(index));
  return 1;
}

int add_values(PyObject* module) {
  DtypeType.tp_repr = dtype_repr;
  DtypeType.tp_getset = dtype_getset;
  DtypeType.tp_methods = dtype_methods;
  DeviceType_.tp_new = device_new;
  DeviceType_.tp_repr = device_repr;
  DeviceType_.tp_str = device_str;
  DeviceType_.tp_hash = device_hash;
  DeviceType_.tp_richcompare = device_compare;
  DeviceType_.tp_getset = device_getset;
  DeviceType_.tp_methods = device_methods;
  LayoutType.tp_repr = layout_repr;
  LayoutType.tp_methods = layout_methods;
  MemoryFormatType.tp_repr = format_repr;
  MemoryFormatType.tp_methods = format_methods;
  size_sequence.sq_concat = size_concat;
  size_sequence.sq_repeat = size_repeat;
  size_mapping.mp_subscript = size_subscript;
  SizeType.tp_base = &PyTuple_Type;
  SizeType.tp_new = size_new;
  SizeType.tp_repr = size_repr;
  size_number.nb_add = size_add;
  SizeType.tp_as_number = &size_number;
  SizeType.tp_as_sequence = &size_sequence;
  SizeType.tp_as_mapping = &size_mapping;
  SizeType.tp_methods = size_methods;
  DtypeType.tp_doc = "The type of a tensor's elements.";
  DeviceType_.tp_doc =
      "device(type, index=None): where a tensor's memory is, such as 'cpu' or 'cuda:1'.";
  LayoutType.tp_doc = "How a tensor's elements are stored.";
  MemoryFormatType.tp_doc = "The order in which dimensions lie in memory.";
  if (add_type(module, &DtypeType, "lamella.dtype", sizeof(PyDtype)) != 0 ||
      add_type(module, &DeviceType_, "lamella.device", sizeof(PyDevice)) != 0 ||
      add_type(module, &LayoutType, "lamella.layout", sizeof(PyLayout)) != 0 ||
      add_type(module, &MemoryFormatType, "lamella.memory_format", sizeof(PyMemoryFormat)) != 0 ||
      add_type(module, &SizeType, "lamella.Size", 0) != 0) {
    return -1;
  }
  auto add = [&](const char* name, PyObject* object) {
    Py_XINCREF(object);
    return object != nullptr && PyModule_AddObject(module, name, object) == 0;
  };
  auto add_dtype = [&](ScalarType type) {
    auto* object = make<PyDtype>(&DtypeType);
    if (object == nullptr) return false;
    object->type = type;
    dtypes[static_cast<uint8_t>(type)] = reinterpret_cast<PyObject*>(object);
    return add(dtype_name(type), reinterpret_cast<PyObject*>(object));
  };
#define LAMELLA_SCALAR_TYPE(cpp, name, number, text, ...) \
  if (!add_dtype(ScalarType::name)) return -1;
#include "lamella/core/scalar_type.def"
  constexpr struct {
    const char* alias;
    ScalarType type;
  } aliases[] = {{"float", kFloat},
                 {"double", kDouble},
                 {"half", kHalf},
                 {"short", kShort},
                 {"int", kInt},
                 {"long", kLong},
                 {"chalf", kComplexHalf},
                 {"cfloat", kComplexFloat},
                 {"cdouble", kComplexDouble}};
  for (const auto& [alias, type] : aliases) {
    if (!add(alias, dtypes[static_cast<uint8_t>(type)])) return -1;
  }
  for (int i = 0; i < static_cast<int>(Layout::NumOptions); ++i) {
    auto* object = make<PyLayout>(&LayoutType);
    if (object == nullptr) return -1;
    object->layout = static_cast<Layout>(i);
    layouts[i] = reinterpret_cast<PyObject*>(object);
    if (!add(layout_name(object->layout), layouts[i])) return -1;
  }
  for (int i = 0; i < static_cast<int>(MemoryFormat::NumOptions); ++i) {
    auto* object = make<PyMemoryFormat>(&MemoryFormatType);
    if (object == nullptr) return -1;
    object->format = static_cast<MemoryFormat>(i);
    formats[i] = reinterpret_cast<PyObject*>(object);
    if (!add(toString(object->format), formats[i])) return -1;
  }
  return PyModule_AddFunctions(module, functions);
}

}  // namespace lamella::python
