// Conversion of Python values, and matching of calls against programs.
#include "python/src/parse.h"

#include <cstring>

#include "lamella/core/ivalue.h"
#include "lamella/dispatch/signature.h"
#include "python/src/errors.h"
#include "python/src/numbers.h"
#include "python/src/script_object.h"

namespace lamella::python {

lamella_tensor* number_tensor(PyObject* object) {
  double parts[2];
  lamella_value number;
  if (read_number(object, &number, parts) != Match::kYes) return nullptr;
  ScalarType type = number.tag == LAMELLA_BOOL     ? ScalarType::Bool
                    : number.tag == LAMELLA_INT    ? ScalarType::Long
                    : number.tag == LAMELLA_DOUBLE ? ScalarType::Double
                                                   : ScalarType::ComplexDouble;
  lamella_tensor* tensor = nullptr;
  lamella_status status =
      lamella_tensor_empty(0, nullptr, static_cast<uint8_t>(type), 0, -1, &tensor);
  if (status != LAMELLA_OK) {
    raise_status(status);
    return nullptr;
  }
  if (number.tag == LAMELLA_BOOL) {
    *static_cast<bool*>(tensor->data) = number.as.i != 0;
  } else if (number.tag == LAMELLA_COMPLEX) {
    std::memcpy(tensor->data, parts, sizeof(parts));
  } else {
    std::memcpy(tensor->data, &number.as, 8);
  }
  lamella_tensor_set_wrapped_number(tensor, 1);
  return tensor;
}

namespace {

inline void set_int(lamella_value* value, uint8_t tag, int64_t number) {
  value->as.i = number;
  value->size = 0;
  value->tag = tag;
  value->flags = 0;
  value->reserved = 0;
}
inline void set_list(lamella_value* value, uint8_t tag, void* data, Py_ssize_t size) {
  value->as.pointer = data;
  value->size = static_cast<uint32_t>(size);
  value->tag = tag;
  value->flags = 0;
  value->reserved = 0;
}

// Whether the items of a sequence may change as soon as Python code runs.
inline bool may_change(PyObject* sequence) { return PyList_Check(sequence); }

// The items of a list or tuple, or of another sequence that is not text as a new tuple that the
// frame owns. The items of a list must be read before other code runs, or be held.
Match as_items(PyObject* object, Frame& frame, PyObject*** items, Py_ssize_t* size) {
  if (PyTuple_Check(object)) {
    *items = &PyTuple_GET_ITEM(object, 0);
    *size = PyTuple_GET_SIZE(object);
    return Match::kYes;
  }
#ifndef Py_GIL_DISABLED  // without the GIL another thread may change the list
  if (PyList_Check(object)) {
    *items = reinterpret_cast<PyListObject*>(object)->ob_item;
    *size = PyList_GET_SIZE(object);
    return Match::kYes;
  }
#endif
  if (PyUnicode_Check(object) || PyBytes_Check(object) || is_tensor(object) ||
      !PySequence_Check(object)) {
    return Match::kNo;
  }
  PyObject* tuple = PySequence_Tuple(object);
  if (tuple == nullptr) return not_of_this_kind();
  frame.own(tuple);
  *items = &PyTuple_GET_ITEM(tuple, 0);
  *size = PyTuple_GET_SIZE(tuple);
  return Match::kYes;
}
// The same, with references to the items.
Match held_items(PyObject* object, Frame& frame, PyObject*** items, Py_ssize_t* size) {
  Match m = as_items(object, frame, items, size);
  if (m == Match::kYes && may_change(object)) *items = frame.hold(*items, *size);
  return m;
}

// `changing`: the items are those of a list.
Match int_list(PyObject* const* items, Py_ssize_t size, bool changing, Frame& frame,
               lamella_value* value) {
  auto* data = static_cast<int64_t*>(frame.allocate(static_cast<size_t>(size) * 8));
  for (Py_ssize_t i = 0; i < size; ++i) {
    if (changing && !PyLong_CheckExact(items[i])) [[unlikely]] {
      items = frame.hold(items, size);
      changing = false;
    }
    if (Match m = read_int(items[i], &data[i]); m != Match::kYes) return m;
  }
  set_list(value, LAMELLA_INT_LIST, data, size);
  return Match::kYes;
}

Match tensor_list(PyObject* const* items, Py_ssize_t size, bool optional, Frame& frame,
                  lamella_value* value) {
  auto* data = static_cast<lamella_tensor**>(frame.allocate(static_cast<size_t>(size) * 8));
  for (Py_ssize_t i = 0; i < size; ++i) {
    if (is_tensor(items[i])) {
      data[i] = tensor_of(items[i]);
      frame.see(data[i]);
    } else if (optional && items[i] == Py_None) {
      data[i] = nullptr;
    } else {
      return Match::kNo;
    }
  }
  set_list(value, LAMELLA_TENSOR_LIST, data, size);
  return Match::kYes;
}

Match scalar(PyObject* object, Frame& frame, lamella_value* value) {
  if (holds_gradient(object)) return Match::kNo;
  double parts[2];
  Match m = read_number(object, value, parts);
  if (m == Match::kYes && value->tag == LAMELLA_COMPLEX) {
    auto* kept = static_cast<double*>(frame.allocate(sizeof(parts)));
    std::memcpy(kept, parts, sizeof(parts));
    set_list(value, LAMELLA_COMPLEX, kept, 2);
  }
  return m;
}

Match text(PyObject* object, lamella_value* value) {
  if (!PyUnicode_Check(object)) return Match::kNo;
  Py_ssize_t size = 0;
  const char* utf8 = PyUnicode_AsUTF8AndSize(object, &size);
  if (utf8 == nullptr) return Match::kError;
  set_list(value, LAMELLA_STRING, const_cast<char*>(utf8), size);
  return Match::kYes;
}

Match device(PyObject* object, Frame& frame, lamella_value* value) {
  Device result(DeviceType::CPU);
  int found = device_from_object(object, &result);
  if (found <= 0) return static_cast<Match>(found);
  set_int(value, LAMELLA_DEVICE, IValue::pack_device(result));
  frame.device = abi::device_keys(result);
  return Match::kYes;
}

// A stream becomes a list of its id, its device's type and its device's index.
Match stream(PyObject* object, Frame& frame, lamella_value* value) {
  Ref id(PyObject_GetAttrString(object, "stream_id"));
  Ref held(id ? PyObject_GetAttrString(object, "device") : nullptr);
  Device where(DeviceType::CPU);
  int64_t number;
  if (!held || read_int(id.get(), &number) != Match::kYes ||
      device_from_object(held.get(), &where) <= 0) {
    PyErr_Clear();
    return Match::kNo;
  }
  auto* data = static_cast<int64_t*>(frame.allocate(24));
  data[0] = number;
  data[1] = static_cast<int64_t>(where.type());
  data[2] = where.index();
  set_list(value, LAMELLA_INT_LIST, data, 3);
  return Match::kYes;
}

// A memory format, or text that names one.
bool format_from_object(PyObject* object, int64_t* format) {
  if (Py_TYPE(object) == &MemoryFormatType) {
    *format = static_cast<int64_t>(reinterpret_cast<PyMemoryFormat*>(object)->format);
    return true;
  }
  if (!PyUnicode_Check(object)) return false;
  for (int i = 0; i < static_cast<int>(MemoryFormat::NumOptions); ++i) {
    if (PyUnicode_CompareWithASCIIString(object, toString(static_cast<MemoryFormat>(i))) == 0) {
      *format = i;
      return true;
    }
  }
  return false;
}

// Calls `convert` for a list, tuple or dictionary, unless the nesting is too deep.
template <class F>
Match nested(Frame& frame, F&& convert) {
  if (!frame.enter_nested()) return Match::kError;
  Match m = convert();
  frame.leave_nested();
  return m;
}

Match list_of(SchemaType element, PyObject* object, Frame& frame, lamella_value* value) {
  PyObject** items;
  Py_ssize_t size;
  if (Match m = held_items(object, frame, &items, &size); m != Match::kYes) return m;
  auto* data = static_cast<lamella_value*>(
      frame.allocate(static_cast<size_t>(size) * sizeof(lamella_value)));
  for (Py_ssize_t i = 0; i < size; ++i) {
    if (Match m = convert_type(element, items[i], frame, &data[i]); m != Match::kYes) return m;
  }
  set_list(value, LAMELLA_LIST, data, size);
  return Match::kYes;
}

Match dict(SchemaType type, PyObject* object, Frame& frame, lamella_value* value) {
  if (!PyDict_Check(object)) return Match::kNo;
  PyObject* items = PyDict_Items(object);
  if (items == nullptr) return Match::kError;
  frame.own(items);
  Py_ssize_t size = PyList_GET_SIZE(items);
  auto* data = static_cast<lamella_value*>(
      frame.allocate(static_cast<size_t>(size) * 2 * sizeof(lamella_value)));
  bool typed = type.kind() == TypeKind::kDict;
  for (Py_ssize_t i = 0; i < size; ++i) {
    for (int part = 0; part < 2; ++part) {
      PyObject* item = PyTuple_GET_ITEM(PyList_GET_ITEM(items, i), part);
      lamella_value* to = &data[2 * i + part];
      Match m = typed ? convert_type(type.elements()[static_cast<size_t>(part)], item, frame, to)
                      : convert_any(item, frame, to);
      if (m != Match::kYes) return m;
    }
  }
  set_list(value, LAMELLA_DICT, data, 2 * size);
  return Match::kYes;
}

Match tuple(SchemaType type, PyObject* object, Frame& frame, lamella_value* value) {
  PyObject** items;
  Py_ssize_t size;
  if (Match m = held_items(object, frame, &items, &size); m != Match::kYes) return m;
  auto members = type.elements();
  if (static_cast<size_t>(size) != members.size()) return Match::kNo;
  auto* data = static_cast<lamella_value*>(
      frame.allocate(static_cast<size_t>(size) * sizeof(lamella_value)));
  for (Py_ssize_t i = 0; i < size; ++i) {
    Match m = convert_type(members[static_cast<size_t>(i)], items[i], frame, &data[i]);
    if (m != Match::kYes) return m;
  }
  set_list(value, LAMELLA_TUPLE, data, size);
  return Match::kYes;
}

// Converts what convert() does not: all but a tensor for a tensor parameter.
Match convert_rest(Kind kind, bool optional, int fixed_size, SchemaType type, PyObject* object,
                   Frame& frame, lamella_value* value) {
  if (object == Py_None && optional) {
    set_int(value, LAMELLA_NONE, 0);
    return Match::kYes;
  }
  switch (kind) {
    case Kind::kTensor:
      return Match::kNo;
    case Kind::kScalar:
      return scalar(object, frame, value);
    case Kind::kInt: {
      int64_t number;
      Match m = read_int(object, &number);
      if (m == Match::kYes) set_int(value, LAMELLA_INT, number);
      return m;
    }
    case Kind::kFloat: {
      if (holds_gradient(object)) return Match::kNo;
      double number;
      Match m = read_double(object, &number);
      set_int(value, LAMELLA_DOUBLE, 0);
      value->as.d = number;
      return m;
    }
    case Kind::kBool: {
      bool flag;
      if (!read_bool(object, &flag)) return Match::kNo;
      set_int(value, LAMELLA_BOOL, flag);
      return Match::kYes;
    }
    case Kind::kComplex: {
      Match m = scalar(object, frame, value);
      if (m != Match::kYes || value->tag == LAMELLA_COMPLEX) return m;
      auto* parts = static_cast<double*>(frame.allocate(16));
      parts[0] = value->tag == LAMELLA_DOUBLE ? value->as.d : static_cast<double>(value->as.i);
      parts[1] = 0;
      set_list(value, LAMELLA_COMPLEX, parts, 2);
      return m;
    }
    case Kind::kString:
      return text(object, value);
    case Kind::kGenerator:
      if (!PyObject_TypeCheck(object, &GeneratorType)) return Match::kNo;
      set_list(value, LAMELLA_GENERATOR, reinterpret_cast<PyGenerator*>(object)->generator, 0);
      frame.keys |= abi::generator_keys(reinterpret_cast<PyGenerator*>(object)->generator);
      return Match::kYes;
    case Kind::kScalarType: {
      ScalarType dtype;
      if (!dtype_from_object(object, &dtype)) return Match::kNo;
      set_int(value, LAMELLA_INT, static_cast<int64_t>(dtype));
      return Match::kYes;
    }
    case Kind::kLayout:
      if (Py_TYPE(object) != &LayoutType) return Match::kNo;
      set_int(value, LAMELLA_INT,
              static_cast<int64_t>(reinterpret_cast<PyLayout*>(object)->layout));
      return Match::kYes;
    case Kind::kDevice:
      return device(object, frame, value);
    case Kind::kMemoryFormat: {
      int64_t format;
      if (!format_from_object(object, &format)) return Match::kNo;
      set_int(value, LAMELLA_INT, format);
      return Match::kYes;
    }
    case Kind::kTensorList:
    case Kind::kOptionalTensorList: {
      PyObject** items;
      Py_ssize_t size;
      if (Match m = held_items(object, frame, &items, &size); m != Match::kYes) return m;
      return tensor_list(items, size, kind == Kind::kOptionalTensorList, frame, value);
    }
    case Kind::kIntList: {
      PyObject** items;
      Py_ssize_t size;
      Match whole = as_items(object, frame, &items, &size);
      if (whole == Match::kYes) {
        return int_list(items, size, may_change(object), frame, value);
      }
      if (fixed_size == 0 || whole == Match::kError) return whole;
      int64_t number;
      if (Match m = read_int(object, &number); m != Match::kYes) return m;
      auto* data = static_cast<int64_t*>(frame.allocate(static_cast<size_t>(fixed_size) * 8));
      for (int i = 0; i < fixed_size; ++i) data[i] = number;
      set_list(value, LAMELLA_INT_LIST, data, fixed_size);
      return Match::kYes;
    }
    case Kind::kFloatList: {
      PyObject** items;
      Py_ssize_t size;
      Match whole = held_items(object, frame, &items, &size);
      if (whole != Match::kYes) {
        if (fixed_size == 0 || whole == Match::kError) return whole;
        double number;
        if (Match m = read_double(object, &number); m != Match::kYes) return m;
        auto* data = static_cast<double*>(frame.allocate(static_cast<size_t>(fixed_size) * 8));
        for (int i = 0; i < fixed_size; ++i) data[i] = number;
        set_list(value, LAMELLA_DOUBLE_LIST, data, fixed_size);
        return Match::kYes;
      }
      auto* data = static_cast<double*>(frame.allocate(static_cast<size_t>(size) * 8));
      for (Py_ssize_t i = 0; i < size; ++i) {
        if (Match m = read_double(items[i], &data[i]); m != Match::kYes) return m;
      }
      set_list(value, LAMELLA_DOUBLE_LIST, data, size);
      return Match::kYes;
    }
    case Kind::kBoolList: {
      PyObject** items;
      Py_ssize_t size;
      bool flag;
      Match whole = held_items(object, frame, &items, &size);
      bool one = whole != Match::kYes;
      if (whole == Match::kError) return whole;
      if (one && (fixed_size == 0 || !read_bool(object, &flag))) return Match::kNo;
      if (one) size = fixed_size;
      auto* data = static_cast<uint8_t*>(frame.allocate(static_cast<size_t>(size)));
      for (Py_ssize_t i = 0; i < size; ++i) {
        if (!one && !read_bool(items[i], &flag)) return Match::kNo;
        data[i] = flag;
      }
      set_list(value, LAMELLA_BOOL_LIST, data, size);
      return Match::kYes;
    }
    case Kind::kList:
      return nested(
          frame, [&] { return list_of(type.without_optional().element(), object, frame, value); });
    case Kind::kDict:
      return nested(frame, [&] { return dict(type.without_optional(), object, frame, value); });
    case Kind::kTuple:
      return nested(frame, [&] { return tuple(type.without_optional(), object, frame, value); });
    case Kind::kAny:
      return convert_any(object, frame, value);
    case Kind::kObject:
      if (type.without_optional().kind() == TypeKind::kStream) return stream(object, frame, value);
      if (lamella_object* found = script_object_of(object, type.without_optional())) {
        set_list(value, LAMELLA_OBJECT, found, 0);
        return Match::kYes;
      }
      if (!PyCapsule_IsValid(object, "lamella.object")) return Match::kNo;
      set_list(value, LAMELLA_OBJECT, PyCapsule_GetPointer(object, "lamella.object"), 0);
      return Match::kYes;
    case Kind::kNever:
      return Match::kNo;
  }
  return Match::kNo;
}

}  // namespace

Match convert_any(PyObject* object, Frame& frame, lamella_value* value) {
  if (is_tensor(object)) {
    lamella_tensor* tensor = tensor_of(object);
    frame.see(tensor);
    set_list(value, LAMELLA_TENSOR, tensor, 0);
    return Match::kYes;
  }
  static const SchemaType any = SchemaType::atom(TypeKind::kAny);
  Kind kind = Kind::kScalar;
  if (PyUnicode_Check(object)) {
    kind = Kind::kString;
  } else if (Py_TYPE(object) == &DtypeType) {
    kind = Kind::kScalarType;
  } else if (Py_TYPE(object) == &DeviceType_) {
    kind = Kind::kDevice;
  } else if (Py_TYPE(object) == &LayoutType) {
    kind = Kind::kLayout;
  } else if (Py_TYPE(object) == &MemoryFormatType) {
    kind = Kind::kMemoryFormat;
  } else if (PyObject_TypeCheck(object, &GeneratorType)) {
    kind = Kind::kGenerator;
  } else if (PyCapsule_CheckExact(object) || PyObject_TypeCheck(object, &ScriptObjectType)) {
    kind = Kind::kObject;
  } else if (PyDict_Check(object)) {
    return nested(frame, [&] { return dict(any, object, frame, value); });
  } else if (PyTuple_Check(object) || PyList_Check(object)) {
    Match m = nested(frame, [&] { return list_of(any, object, frame, value); });
    if (m == Match::kYes && PyTuple_Check(object)) value->tag = LAMELLA_TUPLE;
    return m;
  }
  return convert_rest(kind, true, 0, any, object, frame, value);
}

Match convert_type(SchemaType type, PyObject* object, Frame& frame, lamella_value* value) {
  bool optional;
  Kind kind = kind_of(type, &optional);
  if (kind == Kind::kTensor && is_tensor(object)) {
    lamella_tensor* tensor = tensor_of(object);
    frame.see(tensor);
    set_list(value, LAMELLA_TENSOR, tensor, 0);
    return Match::kYes;
  }
  return convert_rest(kind, optional, type.without_optional().fixed_size().value_or(0), type,
                      object, frame, value);
}

namespace {

// Converts the most common values inline.
[[gnu::always_inline]] inline Match convert_fast(const Param& param, PyObject* object, bool numbers,
                                                 Frame& frame, lamella_value* value) {
  if (param.kind == Kind::kTensor && is_exact_tensor(object)) [[likely]] {
    lamella_tensor* tensor = tensor_of(object);
    frame.see(tensor);
    set_list(value, LAMELLA_TENSOR, tensor, 0);
    return Match::kYes;
  }
  int64_t number;
  if (param.kind == Kind::kInt && read_plain_int(object, &number)) {
    set_int(value, LAMELLA_INT, number);
    return Match::kYes;
  }
  return convert(param, object, numbers, frame, value);
}

}  // namespace

Match convert(const Param& param, PyObject* object, bool numbers, Frame& frame,
              lamella_value* value) {
  if (param.kind == Kind::kTensor) [[likely]] {
    if (is_tensor(object)) [[likely]] {
      lamella_tensor* tensor = tensor_of(object);
      frame.see(tensor);
      set_list(value, LAMELLA_TENSOR, tensor, 0);
      return Match::kYes;
    }
    if (numbers && object != Py_None) {
      lamella_tensor* tensor = number_tensor(object);
      if (tensor == nullptr) return PyErr_Occurred() != nullptr ? Match::kError : Match::kNo;
      frame.own(tensor);
      frame.see(tensor);
      set_list(value, LAMELLA_TENSOR, tensor, 0);
      return Match::kYes;
    }
  } else if (param.kind == Kind::kScalar) {
    if (PyFloat_CheckExact(object)) {
      set_int(value, LAMELLA_DOUBLE, 0);
      value->as.d = PyFloat_AS_DOUBLE(object);
      return Match::kYes;
    }
  }
  return convert_rest(param.kind, param.optional, param.fixed_size, param.type, object, frame,
                      value);
}

namespace {

// Assigns `out=` to the arguments that are written.
Match match_out(const Program& program, PyObject* object, Frame& frame, lamella_value* values,
                uint64_t* seen) {
  if (program.outs.empty()) return object == Py_None ? Match::kYes : Match::kNo;
  auto give = [&](size_t i, PyObject* item) {
    const Param& param = program.params[program.outs[i]];
    if (*seen & (uint64_t{1} << program.outs[i])) return Match::kNo;
    *seen |= uint64_t{1} << program.outs[i];
    return convert(param, item, false, frame, &values[param.index]);
  };
  if (program.outs.size() == 1) return give(0, object);
  PyObject** items;
  Py_ssize_t size;
  if (Match m = held_items(object, frame, &items, &size); m != Match::kYes) return m;
  if (static_cast<size_t>(size) != program.outs.size()) return Match::kNo;
  for (size_t i = 0; i < program.outs.size(); ++i) {
    if (Match m = give(i, items[i]); m != Match::kYes) return m;
  }
  return Match::kYes;
}

}  // namespace

Match match(const Program& program, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames,
            bool numbers, Frame& frame, lamella_value* values) {
  const Param* params = program.params.data();
  Py_ssize_t given = nargs;
  bool spread = false;
  if (program.varargs >= 0 && nargs > program.varargs) {
    PyObject* first = args[program.varargs];
    if (PyLong_CheckExact(first)) {
      spread = true;
    } else if (!PyTuple_Check(first) && !PyList_Check(first)) [[unlikely]] {
      int64_t number;
      Match m = read_int(first, &number);
      if (m == Match::kError) return m;
      spread = m == Match::kYes;
    }
    if (spread) given = program.varargs;
  }
  if (given > program.positional) return Match::kNo;
  if (kwnames == nullptr && !spread && given < program.needed) return Match::kNo;
  __builtin_memcpy(values, program.defaults.data(), program.argument_count * sizeof(lamella_value));
  for (Py_ssize_t i = 0; i < given; ++i) {
    Match m = convert_fast(params[i], args[i], numbers, frame, &values[params[i].index]);
    if (m != Match::kYes) return m;
  }
  uint64_t seen = given < 64 ? (uint64_t{1} << given) - 1 : ~uint64_t{0};
  if (spread) {
    const Param& param = params[program.varargs];
    Match m = int_list(args + program.varargs, nargs - program.varargs, false, frame,
                       &values[param.index]);
    if (m != Match::kYes) return m;
    seen |= uint64_t{1} << program.varargs;
  }
  if (kwnames != nullptr) {
    Py_ssize_t count = PyTuple_GET_SIZE(kwnames);
    for (Py_ssize_t k = 0; k < count; ++k) {
      PyObject* keyword = PyTuple_GET_ITEM(kwnames, k);
      PyObject* object = args[nargs + k];
      if (is_out_name(keyword)) {
        Match m = match_out(program, object, frame, values, &seen);
        if (m != Match::kYes) return m;
        continue;
      }
      int i = find_keyword(program, keyword);
      if (i < 0 && program.factory && is_requires_grad_name(keyword)) {
        if (object != Py_True && object != Py_False) return Match::kNo;
        frame.requires_grad = object == Py_True;
        continue;
      }
      if (i < 0 || (seen & (uint64_t{1} << i)) != 0) return Match::kNo;
      seen |= uint64_t{1} << i;
      // dtype=None is like no dtype: randint(..., dtype=None) makes integers.
      if (object == Py_None && params[i].kind == Kind::kScalarType && params[i].has_default)
        continue;
      Match m = convert(params[i], object, numbers, frame, &values[params[i].index]);
      if (m != Match::kYes) return m;
    }
  }
  return (program.required & ~seen) == 0 ? Match::kYes : Match::kNo;
}

}  // namespace lamella::python
