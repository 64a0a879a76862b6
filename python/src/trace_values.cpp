// Arguments and returns of a graph's nodes as Python objects that JSON takes, and back.
#include <cmath>
#include <cstring>

#include "lamella/core/generator_impl.h"
#include "lamella/core/memory_format.h"
#include "python/src/errors.h"
#include "python/src/numbers.h"
#include "python/src/trace.h"

namespace lamella::python {
namespace {

using tracing::kNoValue;
using tracing::ValueId;

PyObject* tagged(const char* tag, PyObject* owned) {
  Ref content(owned);
  return content ? Py_BuildValue("{s:O}", tag, content.get()) : nullptr;
}
PyObject* id_object(ValueId id) {
  if (id == kNoValue) Py_RETURN_NONE;
  return PyLong_FromUnsignedLong(id);
}
// JSON has no numbers for these.
PyObject* double_object(double number) {
  if (std::isfinite(number)) return PyFloat_FromDouble(number);
  const char* text = std::isnan(number) ? "nan" : number > 0 ? "inf" : "-inf";
  return tagged("float", PyUnicode_FromString(text));
}

template <class F>
PyObject* list_object(uint32_t count, F&& item) {
  Ref list(PyList_New(count));
  for (uint32_t i = 0; list && i < count; ++i) {
    PyObject* each = item(i);
    if (each == nullptr) return nullptr;
    PyList_SET_ITEM(list.get(), i, each);
  }
  return list.release();
}

PyObject* plain_object(const lamella_value& v, SchemaType type, const ValueId** next);

PyObject* generator_state(const lamella_value& value) {
  auto& generator = GeneratorImpl::of(IValue::from_borrowed(value).toGenerator());
  std::vector<uint8_t> state;
  {
    std::lock_guard lock(generator.mutex);
    state = generator.get_state();
  }
  std::string text;
  for (uint8_t byte : state) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
}

// A tensor that was converted from a Python number.
PyObject* number_object(lamella_tensor* tensor) {
  auto type = static_cast<ScalarType>(tensor->scalar_type);
  lamella_value number;
  double parts[2];
  load_element(tensor->data, type, &number, parts);
  if (number.tag == LAMELLA_COMPLEX) number.as.pointer = parts;
  const ValueId* none = nullptr;
  Ref content(plain_object(number, SchemaType(), &none));
  if (!content) return nullptr;
  return tagged("number", Py_BuildValue("[sO]", dtype_name(type), content.get()));
}

PyObject* plain_object(const lamella_value& v, SchemaType type, const ValueId** next) {
  TypeKind kind = type.without_optional().kind();
  switch (v.tag) {
    case LAMELLA_NONE:
      Py_RETURN_NONE;
    case LAMELLA_TENSOR:
      if (v.as.tensor != nullptr) return number_object(v.as.tensor);
      return tagged("%", id_object(*(*next)++));
    case LAMELLA_INT:
      if (kind == TypeKind::kScalarType) {
        return tagged("dtype", PyUnicode_FromString(dtype_name(static_cast<ScalarType>(v.as.i))));
      }
      if (kind == TypeKind::kMemoryFormat) {
        return tagged("memory_format",
                      PyUnicode_FromString(toString(static_cast<MemoryFormat>(v.as.i))));
      }
      return PyLong_FromLongLong(v.as.i);
    case LAMELLA_DOUBLE:
      return double_object(v.as.d);
    case LAMELLA_BOOL:
      return PyBool_FromLong(v.as.i != 0);
    case LAMELLA_COMPLEX: {
      auto* parts = static_cast<const double*>(v.as.pointer);
      return tagged("complex", list_object(2, [&](uint32_t i) { return double_object(parts[i]); }));
    }
    case LAMELLA_STRING:
      return PyUnicode_DecodeUTF8(static_cast<const char*>(v.as.pointer), v.size,
                                  "surrogateescape");
    case LAMELLA_DEVICE:
      return tagged("device", PyUnicode_FromString(IValue::unpack_device(v.as.i).str().c_str()));
    case LAMELLA_INT_LIST:
      return tagged("ints", list_object(v.size, [&](uint32_t i) {
                      return PyLong_FromLongLong(static_cast<const int64_t*>(v.as.pointer)[i]);
                    }));
    case LAMELLA_DOUBLE_LIST:
      return tagged("floats", list_object(v.size, [&](uint32_t i) {
                      return double_object(static_cast<const double*>(v.as.pointer)[i]);
                    }));
    case LAMELLA_BOOL_LIST:
      return tagged("bools", list_object(v.size, [&](uint32_t i) {
                      return PyBool_FromLong(static_cast<const uint8_t*>(v.as.pointer)[i]);
                    }));
    case LAMELLA_TENSOR_LIST:
      return tagged("tensors",
                    list_object(v.size, [&](uint32_t) { return id_object(*(*next)++); }));
    case LAMELLA_LIST:
    case LAMELLA_TUPLE:
    case LAMELLA_DICT: {
      auto* items = static_cast<const lamella_value*>(v.as.pointer);
      const char* tag = v.tag == LAMELLA_LIST ? "list" : v.tag == LAMELLA_TUPLE ? "tuple" : "dict";
      return tagged(tag, list_object(v.size, [&](uint32_t i) {
                      return plain_object(items[i], SchemaType(), next);
                    }));
    }
    case LAMELLA_GENERATOR:
      return tagged("generator", generator_state(v));
    default:
      PyErr_SetString(PyExc_TypeError,
                      "save: expected values that can be written, got an object of a custom class");
      return nullptr;
  }
}

// ---- Reading -----------------------------------------------------------------------------------

bool bad(const char* expected, PyObject* got) {
  if (PyErr_Occurred() == nullptr) {
    PyErr_Format(PyExc_ValueError, "load: expected %s, got %R", expected, got);
  }
  return false;
}

bool read_id(PyObject* object, std::vector<ValueId>* ids) {
  if (object == Py_None) {
    ids->push_back(kNoValue);
    return true;
  }
  if (!PyLong_CheckExact(object)) return bad("the number of a value", object);
  unsigned long number = PyLong_AsUnsignedLong(object);
  if (PyErr_Occurred() != nullptr || number >= kNoValue) {
    PyErr_Clear();
    return bad("the number of a value", object);
  }
  ids->push_back(static_cast<ValueId>(number));
  return true;
}

bool json_number(PyObject* object, double* number) {
  if (PyDict_CheckExact(object) && PyDict_GET_SIZE(object) == 1) {
    PyObject* text = PyDict_GetItemString(object, "float");
    const char* word = text != nullptr && PyUnicode_Check(text) ? PyUnicode_AsUTF8(text) : "";
    if (word == nullptr) return false;
    if (strcmp(word, "nan") == 0)
      *number = std::nan("");
    else if (strcmp(word, "inf") == 0)
      *number = HUGE_VAL;
    else if (strcmp(word, "-inf") == 0)
      *number = -HUGE_VAL;
    else
      return bad("a number", object);
    return true;
  }
  if (!PyFloat_CheckExact(object) && !PyLong_CheckExact(object)) return bad("a number", object);
  *number = PyFloat_AsDouble(object);
  return PyErr_Occurred() == nullptr;
}

bool json_int(PyObject* object, int64_t* number) {
  if (!PyLong_CheckExact(object)) return bad("a whole number", object);
  *number = PyLong_AsLongLong(object);
  return PyErr_Occurred() == nullptr;
}

bool read_plain(PyObject* object, IValue* value, std::vector<ValueId>* ids);

bool read_bytes(PyObject* text, std::vector<uint8_t>* bytes) {
  Py_ssize_t size = 0;
  const char* digits = PyUnicode_Check(text) ? PyUnicode_AsUTF8AndSize(text, &size) : nullptr;
  if (digits == nullptr || size % 2 != 0) return bad("a generator's state", text);
  auto digit = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  };
  for (Py_ssize_t i = 0; i < size; i += 2) {
    int high = digit(digits[i]), low = digit(digits[i + 1]);
    if (high < 0 || low < 0) return bad("a generator's state", text);
    bytes->push_back(static_cast<uint8_t>(high * 16 + low));
  }
  return true;
}

bool dtype_named(PyObject* name, ScalarType* type) {
  const char* text = PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : nullptr;
  for (int i = 0; text != nullptr && i < 64; ++i) {
    *type = static_cast<ScalarType>(i);
    if (strcmp(dtype_name(*type), text) == 0) return true;
  }
  return bad("a dtype", name);
}

bool read_number_tensor(PyObject* content, IValue* value) {
  ScalarType type;
  IValue number;
  std::vector<ValueId> none;
  if (PyList_GET_SIZE(content) != 2 || !dtype_named(PyList_GET_ITEM(content, 0), &type) ||
      !read_plain(PyList_GET_ITEM(content, 1), &number, &none)) {
    return bad("a dtype and a number", content);
  }
  if (!number.isScalar()) return bad("a number", content);
  lamella_tensor* made = nullptr;
  detail::check(lamella_tensor_empty(0, nullptr, static_cast<uint8_t>(type), 0, -1, &made));
  TensorBase tensor = TensorBase::adopt(made);
  lamella_tensor_set_wrapped_number(made, 1);
  const lamella_value& v = number.value();
  auto* parts = v.tag == LAMELLA_COMPLEX ? static_cast<const double*>(v.as.pointer) : nullptr;
  if (!store_element(made->data, type, v, parts)) return false;
  *value = IValue(std::move(tensor));
  return true;
}

bool read_list(const char* tag, PyObject* content, IValue* value, std::vector<ValueId>* ids) {
  if (!PyList_CheckExact(content)) return bad("a list", content);
  auto size = static_cast<size_t>(PyList_GET_SIZE(content));
  auto item = [&](size_t i) { return PyList_GET_ITEM(content, static_cast<Py_ssize_t>(i)); };
  auto is = [tag](const char* name) { return strcmp(tag, name) == 0; };
  if (is("number")) return read_number_tensor(content, value);
  if (is("ints")) {
    std::vector<int64_t> list(size);
    for (size_t i = 0; i < size; ++i) {
      if (!json_int(item(i), &list[i])) return false;
    }
    *value = IValue(list);
  } else if (is("floats") || is("complex")) {
    std::vector<double> list(size);
    for (size_t i = 0; i < size; ++i) {
      if (!json_number(item(i), &list[i])) return false;
    }
    if (is("floats")) {
      *value = IValue(list);
    } else if (size == 2) {
      *value = IValue(complex<double>(list[0], list[1]));
    } else {
      return bad("two numbers", content);
    }
  } else if (is("bools")) {
    lamella_value made;
    detail::check(lamella_value_allocate(LAMELLA_BOOL_LIST, size, &made));
    *value = IValue::adopt(made);
    for (size_t i = 0; i < size; ++i) {
      if (!PyBool_Check(item(i))) return bad("true or false", item(i));
      static_cast<uint8_t*>(made.as.pointer)[i] = item(i) == Py_True;
    }
  } else if (is("tensors")) {
    for (size_t i = 0; i < size; ++i) {
      if (!read_id(item(i), ids)) return false;
    }
    *value = IValue(std::vector<TensorBase>(size));
  } else {
    std::vector<IValue> items(size);
    for (size_t i = 0; i < size; ++i) {
      if (!read_plain(item(i), &items[i], ids)) return false;
    }
    if (is("list"))
      *value = IValue::list(items);
    else if (is("tuple"))
      *value = IValue::tuple(items);
    else if (is("dict") && size % 2 == 0)
      *value = IValue::dict(items);
    else
      return bad("a kind of value that is known", content);
  }
  return true;
}

bool read_tagged(PyObject* object, IValue* value, std::vector<ValueId>* ids) {
  PyObject *key, *content;
  Py_ssize_t at = 0;
  if (PyDict_GET_SIZE(object) != 1 || PyDict_Next(object, &at, &key, &content) == 0 ||
      !PyUnicode_Check(key)) {
    return bad("a dictionary of one entry", object);
  }
  const char* tag = PyUnicode_AsUTF8(key);
  if (tag == nullptr) return false;
  if (strcmp(tag, "%") == 0) {
    *value = IValue(TensorBase());
    return read_id(content, ids);
  }
  if (strcmp(tag, "float") == 0) {
    double number;
    if (!json_number(object, &number)) return false;
    *value = IValue(number);
    return true;
  }
  if (PyList_CheckExact(content)) return read_list(tag, content, value, ids);
  if (!PyUnicode_Check(content)) return bad("a kind of value that is known", object);
  const char* text = PyUnicode_AsUTF8(content);
  if (text == nullptr) return false;
  if (strcmp(tag, "dtype") == 0) {
    ScalarType type;
    if (!dtype_named(content, &type)) return false;
    *value = IValue(type);
    return true;
  }
  if (strcmp(tag, "memory_format") == 0) {
    for (int i = 0; i < static_cast<int>(MemoryFormat::NumOptions); ++i) {
      auto format = static_cast<MemoryFormat>(i);
      if (strcmp(toString(format), text) == 0) {
        *value = IValue(format);
        return true;
      }
    }
    return bad("a memory format", content);
  }
  if (strcmp(tag, "device") == 0) {
    *value = IValue(Device(std::string_view(text)));
    return true;
  }
  if (strcmp(tag, "generator") == 0) {
    std::vector<uint8_t> state;
    if (!read_bytes(content, &state)) return false;
    Generator generator = make_cpu_generator();
    *value = IValue(generator);
    auto* impl =
        static_cast<GeneratorImpl*>(static_cast<lamella_object*>(value->value().as.pointer));
    std::lock_guard lock(impl->mutex);
    impl->set_state(state.data(), state.size());
    return true;
  }
  return bad("a kind of value that is known", object);
}

bool read_plain(PyObject* object, IValue* value, std::vector<ValueId>* ids) {
  if (object == Py_None) {
    *value = IValue();
  } else if (PyBool_Check(object)) {
    *value = IValue(object == Py_True);
  } else if (PyLong_CheckExact(object)) {
    int64_t number;
    if (!json_int(object, &number)) return false;
    *value = IValue(number);
  } else if (PyFloat_CheckExact(object)) {
    *value = IValue(PyFloat_AS_DOUBLE(object));
  } else if (PyUnicode_Check(object)) {
    Ref bytes(PyUnicode_AsEncodedString(object, "utf-8", "surrogateescape"));
    if (!bytes) return false;
    *value = IValue(std::string_view(PyBytes_AS_STRING(bytes.get()),
                                     static_cast<size_t>(PyBytes_GET_SIZE(bytes.get()))));
  } else if (PyDict_CheckExact(object)) {
    return read_tagged(object, value, ids);
  } else {
    return bad("a value", object);
  }
  return true;
}

}  // namespace

PyObject* operand_to_python(const tracing::Graph& graph, const tracing::Operand& operand,
                            SchemaType type) {
  ArrayRef<ValueId> ids = graph.tensors(operand);
  if (operand.form == tracing::Operand::kTensor) return tagged("%", id_object(ids[0]));
  if (operand.form == tracing::Operand::kList) {
    return tagged("tensors",
                  list_object(operand.count, [&](uint32_t i) { return id_object(ids[i]); }));
  }
  const ValueId* next = ids.data();
  return plain_object(operand.value.value(), type, &next);
}

bool operand_from_python(PyObject* object, SchemaType, IValue* value, std::vector<ValueId>* ids) {
  return guarded([&] { return read_plain(object, value, ids); }, false);
}

}  // namespace lamella::python
