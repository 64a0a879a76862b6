// Runs operators for Python and wraps their results.
#include "python/src/call.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "lamella/abi/autograd.h"
#include "lamella/core/ivalue.h"
#include "lamella/dispatch/signature.h"
#include "python/src/autograd.h"
#include "python/src/errors.h"
#include "python/src/numbers.h"
#include "python/src/script_object.h"

namespace lamella::python {
namespace {

constexpr uint32_t kMaxArguments = 64;

inline uint64_t call_keys(const lamella_operator* op, const Frame& frame) {
  uint64_t keys = frame.keys;
  if (keys == 0) [[unlikely]] {
    keys = frame.device != 0 ? frame.device : abi::device_keys(Device(DeviceType::CPU));
  }
  return abi::with_thread(keys, op, lamella_thread);
}

[[gnu::noinline]] lamella_status run_without_gil(const lamella_operator* op, uint64_t keys,
                                                 const lamella_value* values,
                                                 lamella_value* returns) {
  WithoutGil others;
  return abi::call_boxed(op, keys, values, returns);
}

// The number of elements of a factory's result, or some number of at least kWorkToReleaseGil.
[[gnu::always_inline]] inline uint64_t factory_work(const Program& program,
                                                    const lamella_value* values) {
  if (program.sizes < 0) return 0;
  const lamella_value& value = values[program.sizes];
  if (value.tag != LAMELLA_INT_LIST) return 0;
  uint64_t product = 1;
  for (uint32_t i = 0; i < value.size; ++i) {
    int64_t size = static_cast<const int64_t*>(value.as.pointer)[i];
    if (size > 0 && product < kWorkToReleaseGil) product *= static_cast<uint64_t>(size);
  }
  return product;
}

PyObject* stream_object(const lamella_value& value) {
  auto* data = static_cast<const int64_t*>(value.as.pointer);
  Ref module(PyImport_ImportModule("lamella._device"));
  Ref device(
      device_object(Device(static_cast<DeviceType>(data[1]), static_cast<DeviceIndex>(data[2]))));
  Ref made(module && device
               ? PyObject_CallMethod(module.get(), "_stream", "OL", device.get(), data[0])
               : nullptr);
  return made.release();
}

PyObject* list_to_python(const lamella_value& value, SchemaType type) {
  type = type.without_optional();
  if (type.kind() == TypeKind::kStream && value.tag == LAMELLA_INT_LIST && value.size == 3) {
    return stream_object(value);
  }
  bool typed = type.is_list() || type.kind() == TypeKind::kTuple;
  Py_ssize_t size = value.size;
  PyObject* result = value.tag == LAMELLA_TUPLE ? PyTuple_New(size) : PyList_New(size);
  if (result == nullptr) return nullptr;
  for (Py_ssize_t i = 0; i < size; ++i) {
    PyObject* item = nullptr;
    switch (value.tag) {
      case LAMELLA_INT_LIST:
        item = PyLong_FromLongLong(static_cast<const int64_t*>(value.as.pointer)[i]);
        break;
      case LAMELLA_DOUBLE_LIST:
        item = PyFloat_FromDouble(static_cast<const double*>(value.as.pointer)[i]);
        break;
      case LAMELLA_BOOL_LIST:
        item = PyBool_FromLong(static_cast<const uint8_t*>(value.as.pointer)[i]);
        break;
      case LAMELLA_TENSOR_LIST: {
        lamella_tensor* tensor = static_cast<lamella_tensor* const*>(value.as.pointer)[i];
        item = wrap(TensorBase::borrow(tensor));
        break;
      }
      default: {
        SchemaType member;
        if (typed) {
          member = type.is_list() ? type.element() : type.elements()[static_cast<size_t>(i)];
        }
        item = to_python(static_cast<const lamella_value*>(value.as.pointer)[i], member, false);
      }
    }
    if (item == nullptr) {
      Py_DECREF(result);
      return nullptr;
    }
    if (value.tag == LAMELLA_TUPLE) {
      PyTuple_SET_ITEM(result, i, item);
    } else {
      PyList_SET_ITEM(result, i, item);
    }
  }
  return result;
}

void drop_object(PyObject* capsule) {
  auto* object = static_cast<lamella_object*>(PyCapsule_GetPointer(capsule, "lamella.object"));
  if (detail::count_down(&object->references) == 0) object->destroy(object);
}

PyObject* borrowed_to_python(const lamella_value& value, SchemaType type) {
  switch (value.tag) {
    case LAMELLA_NONE:
      Py_RETURN_NONE;
    case LAMELLA_TENSOR:
      return wrap(TensorBase::borrow(value.as.tensor));
    case LAMELLA_INT: {
      switch (type.without_optional().kind()) {
        case TypeKind::kScalarType:
          return dtype_object(static_cast<ScalarType>(value.as.i));
        case TypeKind::kLayout:
          return layout_object(static_cast<Layout>(value.as.i));
        case TypeKind::kMemoryFormat:
          return memory_format_object(static_cast<MemoryFormat>(value.as.i));
        default:
          return PyLong_FromLongLong(value.as.i);
      }
    }
    case LAMELLA_DOUBLE:
      return PyFloat_FromDouble(value.as.d);
    case LAMELLA_BOOL:
      return PyBool_FromLong(value.as.i != 0);
    case LAMELLA_COMPLEX: {
      auto* parts = static_cast<const double*>(value.as.pointer);
      return PyComplex_FromDoubles(parts[0], parts[1]);
    }
    case LAMELLA_STRING:
      return PyUnicode_DecodeUTF8(static_cast<const char*>(value.as.pointer), value.size,
                                  "surrogateescape");
    case LAMELLA_DEVICE:
      return device_object(IValue::unpack_device(value.as.i));
    case LAMELLA_GENERATOR: {
      auto* generator = static_cast<lamella_object*>(value.as.pointer);
      detail::count_up(&generator->references);
      return generator_object(generator);
    }
    case LAMELLA_OBJECT: {
      auto* object = static_cast<lamella_object*>(value.as.pointer);
      detail::count_up(&object->references);
      if (is_of_class(object)) return script_object(object);
      return PyCapsule_New(object, "lamella.object", drop_object);
    }
    case LAMELLA_DICT: {
      type = type.without_optional();
      SchemaType key_type, item_type;
      if (type.kind() == TypeKind::kDict) {
        key_type = type.elements()[0];
        item_type = type.elements()[1];
      }
      Ref result(PyDict_New());
      if (!result) return nullptr;
      auto* items = static_cast<const lamella_value*>(value.as.pointer);
      for (uint32_t i = 0; i + 1 < value.size; i += 2) {
        Ref key(borrowed_to_python(items[i], key_type));
        Ref item(key ? borrowed_to_python(items[i + 1], item_type) : nullptr);
        if (!item || PyDict_SetItem(result.get(), key.get(), item.get()) != 0) return nullptr;
      }
      return result.release();
    }
    default:
      return list_to_python(value, type);
  }
}

}  // namespace

[[gnu::noinline]] PyObject* wrap_returns(const Program& program, lamella_value* returns) {
  uint32_t count = program.op->return_count;
  if (count == 0) Py_RETURN_NONE;
  if (count == 1) return to_python(returns[0], program.return_types[0], true);
  PyObject* result;
  if (program.return_names.empty()) {
    result = PyTuple_New(count);
  } else {
    PyTypeObject* type = return_type_of(program);
    result = type != nullptr ? PyStructSequence_New(type) : nullptr;
    Py_XDECREF(type);
  }
  bool failed = result == nullptr;
  for (uint32_t i = 0; i < count; ++i) {
    PyObject* item = to_python(returns[i], program.return_types[i], true);
    failed = failed || item == nullptr;
    if (result == nullptr || item == nullptr) {
      Py_XDECREF(item);
    } else if (program.return_names.empty()) {
      PyTuple_SET_ITEM(result, i, item);
    } else {
      PyStructSequence_SET_ITEM(result, i, item);
    }
  }
  if (failed) Py_CLEAR(result);
  return result;
}

PyObject* to_python(const lamella_value& value, SchemaType type, bool owned) {
  if (!owned) return borrowed_to_python(value, type);
  if (value.tag == LAMELLA_TENSOR) return wrap(value.as.tensor);
  PyObject* result = borrowed_to_python(value, type);
  lamella_value mine = value;
  lamella_value_release(&mine);
  return result;
}

namespace {
[[gnu::always_inline]] inline PyObject* run(const Program& program, const lamella_value* values,
                                            Frame& frame, uint64_t keys) {
  const lamella_operator* op = program.op;
  ValueBuffer returns(op->return_count);
  uint64_t work = frame.keys == 0 ? factory_work(program, values) : frame.work;
  work |= program.least_work;
  lamella_status status = work >= kWorkToReleaseGil
                              ? run_without_gil(op, keys, values, returns.data())
                              : abi::call_boxed(op, keys, values, returns.data());
  if (status != LAMELLA_OK) [[unlikely]]
    return raise_status(status, op->name);
  if (op->return_count == 1 && returns[0].tag == LAMELLA_TENSOR) [[likely]] {
    if (frame.requires_grad) [[unlikely]] {
      status = lamella_tensor_set_requires_grad(returns[0].as.tensor, 1);
      if (status != LAMELLA_OK) {
        lamella_value_release(&returns[0]);
        return raise_status(status);
      }
    }
    return wrap(returns[0].as.tensor);
  }
  return wrap_returns(program, returns.data());
}
}  // namespace

PyObject* invoke(const Program& program, const lamella_value* values, Frame& frame) {
  return run(program, values, frame, call_keys(program.op, frame));
}
PyObject* invoke_with(const Program& program, const lamella_value* values, Frame& frame,
                      uint64_t keys) {
  return run(program, values, frame, keys);
}

namespace {
// For messages: the name by which it was called, or the operator's own name.
const char* name_of(const ProgramTable& table, const char* name) {
  return name != nullptr ? name : strstr(table.programs[0]->op->name, "::") + 2;
}
}  // namespace

namespace {
bool is_comparison(const char* op) {
  const char* name = strstr(op, "::") + 2;
  const size_t length = strcspn(name, ".");
  for (const char* one : {"eq", "ne", "lt", "le", "gt", "ge", "not_equal", "less", "less_equal",
                          "greater", "greater_equal"}) {
    if (strlen(one) == length && strncmp(one, name, length) == 0) return true;
  }
  return false;
}

// Calls again after an int did not fit 64 bits: those in [2^63, 2^64) become tensors without
// dimensions beside uint64, and floats beside floating point. NULL if there are none.
PyObject* call_with_large_ints(const ProgramTable& table, const char* name, bool is_method,
                               PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  if (!PyErr_ExceptionMatches(PyExc_OverflowError)) return nullptr;
  PyObject *error, *text, *traceback;
  PyErr_Fetch(&error, &text, &traceback);
  Py_ssize_t count = nargs + (kwnames != nullptr ? PyTuple_GET_SIZE(kwnames) : 0);
  bool large = false, whole = false, real = false, given = false;
  for (Py_ssize_t i = 0; i < count; ++i) {
    uint64_t number;
    ScalarType type;
    large = large || is_above_int64(args[i], &number);
    bool is_dtype = i >= nargs && Py_TYPE(args[i]) == &DtypeType;
    if (is_tensor(args[i]) && !given) {
      type = static_cast<ScalarType>(tensor_of(args[i])->scalar_type);
    } else if (!is_dtype || !dtype_from_object(args[i], &type)) {
      continue;
    }
    if (is_dtype) whole = real = false;
    given = given || is_dtype;
    whole = whole || type == ScalarType::UInt64;
    real = real || is_floating_point(type) || is_complex(type);
  }
  // Each is above all that other integers can be, as infinity is.
  const bool compares = large && !whole && !real && is_comparison(table.programs[0]->op->name);
  if (!large || (!whole && !real && !compares)) {
    PyErr_Restore(error, text, traceback);
    return nullptr;
  }
  Ref replaced[] = {Ref(error), Ref(text), Ref(traceback)};
  std::vector<Ref> held;
  std::vector<PyObject*> changed(args, args + count);
  for (PyObject*& arg : changed) {
    uint64_t number;
    if (!is_above_int64(arg, &number)) continue;
    if (whole && !real) {
      lamella_tensor* tensor = nullptr;
      lamella_status status = lamella_tensor_empty(
          0, nullptr, static_cast<uint8_t>(ScalarType::UInt64), 0, -1, &tensor);
      if (status != LAMELLA_OK) return raise_status(status);
      std::memcpy(tensor->data, &number, sizeof(number));
      lamella_tensor_set_wrapped_number(tensor, 1);
      held.emplace_back(wrap(tensor));
    } else {
      held.emplace_back(PyFloat_FromDouble(compares ? HUGE_VAL : static_cast<double>(number)));
    }
    arg = held.back().get();
    if (arg == nullptr) return nullptr;
  }
  return call_table(table, name, is_method, changed.data(), nargs, kwnames);
}
}  // namespace

namespace {
// Whether `out=` is given, and not as None.
bool has_out(PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(kwnames); ++k) {
    if (is_out_name(PyTuple_GET_ITEM(kwnames, k))) return args[nargs + k] != Py_None;
  }
  return false;
}
}  // namespace

PyObject* call_table(const ProgramTable& table, const char* name, bool is_method,
                     PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  lamella_value values[kMaxArguments];
  Frame frame;
  auto failed = [&] {
    PyObject* result = call_with_large_ints(table, name, is_method, args, nargs, kwnames);
    return result != nullptr ? result : name_conversion_error(name_of(table, name));
  };
  // Programs without outputs cannot take them: their arguments need not be converted.
  const bool to_out = kwnames != nullptr && has_out(args, nargs, kwnames);
  for (const Program* program : table.programs) {
    if (to_out && program->outs.empty()) continue;
    Match m = match(*program, args, nargs, kwnames, false, frame, values);
    if (m == Match::kYes) [[likely]]
      return run(*program, values, frame, call_keys(program->op, frame));
    if (m == Match::kError) return failed();
    frame.reset();
  }
  if (table.numbers) {
    for (const Program* program : table.programs) {
      Match m = match(*program, args, nargs, kwnames, true, frame, values);
      if (m == Match::kYes) return invoke(*program, values, frame);
      if (m == Match::kError) return failed();
      frame.reset();
    }
  }
  if (name == nullptr) Py_RETURN_NOTIMPLEMENTED;
  return raise_mismatch(table, name, is_method, args, nargs, kwnames);
}

const lamella_operator* KnownOperator::find() {
  const lamella_operator* op = nullptr;
  lamella_status status = lamella_find_operator(name, overload, &op);
  if (status != LAMELLA_OK) {
    raise_status(status);
    return nullptr;
  }
  found.store(op, std::memory_order_release);
  return op;
}

lamella_tensor* raise_without_tensor(const lamella_operator* op, lamella_status status) {
  if (status != LAMELLA_OK) {
    raise_status(status, op->name);
  } else {
    PyErr_Format(PyExc_RuntimeError, "%s: expected it to return a tensor", op->name);
  }
  return nullptr;
}

namespace {
// Calls an operator whose one return is a tensor.
TensorBase call_for_tensor(const lamella_operator* op, uint64_t keys, uint64_t work,
                           const lamella_value* values) {
  lamella_value result;
  lamella_status status = work >= kWorkToReleaseGil ? run_without_gil(op, keys, values, &result)
                                                    : abi::call_boxed(op, keys, values, &result);
  if (status != LAMELLA_OK || result.tag != LAMELLA_TENSOR || result.as.tensor == nullptr)
      [[unlikely]] {
    if (status == LAMELLA_OK) lamella_value_release(&result);
    return TensorBase::adopt(raise_without_tensor(op, status));
  }
  return TensorBase::adopt(result.as.tensor);
}
bool fits(const lamella_operator* op, size_t count) {
  if (count == op->argument_count && op->return_count == 1) [[likely]]
    return true;
  PyErr_Format(PyExc_RuntimeError, "%s: expected %u arguments, got %zu", op->name,
               op->argument_count, count);
  return false;
}
}  // namespace

TensorBase call_known(KnownOperator& known, const lamella_value* values, size_t count) {
  const lamella_operator* op = known.get();
  if (op == nullptr) return TensorBase();
  Frame frame;
  for (size_t i = 0; i < count; ++i) {
    const lamella_value& value = values[i];
    if (value.tag == LAMELLA_TENSOR && value.as.tensor != nullptr) frame.see(value.as.tensor);
    if (value.tag == LAMELLA_TENSOR_LIST) {
      auto* list = static_cast<lamella_tensor* const*>(value.as.pointer);
      for (uint32_t k = 0; k < value.size; ++k) {
        if (list[k] != nullptr) frame.see(list[k]);
      }
    }
    if (value.tag == LAMELLA_DEVICE) {
      frame.device = abi::device_keys(IValue::unpack_device(value.as.i));
    }
  }
  if (!fits(op, count)) return TensorBase();
  return call_for_tensor(op, call_keys(op, frame), frame.work, values);
}

}  // namespace lamella::python
