// Tensors from Python data: tensor(), as_tensor(), asarray(), frombuffer().
#include <cstring>

#include "lamella/abi/autograd.h"
#include "lamella/core/complex.h"
#include "lamella/core/key_set.h"
#include "lamella/core/tensor_impl.h"
#include "python/src/errors.h"
#include "python/src/numbers.h"
#include "python/src/tensor.h"
#include "python/src/torch_function.h"
#include "python/src/trace.h"

namespace lamella::python {
namespace {

constexpr size_t kMaxDepth = 64;

bool is_sequence(PyObject* object) {
  return PyList_Check(object) || PyTuple_Check(object) ||
         (PySequence_Check(object) && !PyUnicode_Check(object) && !PyBytes_Check(object) &&
          !is_tensor(object));
}

// The contents of nested sequences, gathered in one walk, as Python code that runs during the walk,
// or when elements are converted, may change the sequences.
struct Survey {
  Survey() = default;
  Survey(const Survey&) = delete;
  Survey& operator=(const Survey&) = delete;
  ~Survey() {
    for (PyObject* leaf : leaves) Py_DECREF(leaf);
  }
  std::vector<int64_t> sizes;
  ScalarType type = ScalarType::Undefined;
  std::vector<PyObject*> leaves;  // owned
};

void join(Survey* survey, ScalarType type) {
  survey->type = survey->type == ScalarType::Undefined ? type : promote_types(survey->type, type);
}

bool fail_depth() {
  PyErr_SetString(PyExc_ValueError, "tensor: expected sequences of equal depth");
  return false;
}
bool fail_length(const Survey& survey, size_t depth, Py_ssize_t size) {
  PyErr_Format(PyExc_ValueError,
               "tensor: expected sequences of length %lld at dimension %zu, got %zd",
               static_cast<long long>(survey.sizes[depth]), depth, size);
  return false;
}

// NumPy's numbers and arrays have a dtype; float64 and complex128 also derive from Python's
// numbers.
bool is_numpy(PyObject* object) { return strncmp(Py_TYPE(object)->tp_name, "numpy.", 6) == 0; }
bool numpy_type(PyObject* object, ScalarType* type) {
  Ref dtype(PyObject_GetAttrString(object, "dtype"));
  if (!dtype) return false;
  if (dtype_from_object(dtype.get(), type)) return true;
  PyErr_Format(PyExc_TypeError, "tensor: expected numbers of a dtype that tensors have, got %s",
               Py_TYPE(object)->tp_name);
  return false;
}

// The dtype of a number. `object` is neither a tensor nor a sequence.
bool number_type(PyObject* object, ScalarType* type) {
  if (PyBool_Check(object)) {
    *type = ScalarType::Bool;
  } else if (is_numpy(object)) {
    return numpy_type(object, type);
  } else if (PyFloat_Check(object)) {
    *type = default_dtype();
  } else if (PyLong_Check(object)) {
    *type = ScalarType::Long;
  } else if (PyComplex_Check(object)) {
    *type = to_complex_type(default_dtype());
  } else {
    lamella_value value;
    double parts[2];
    Match m = read_number(object, &value, parts);
    if (m == Match::kNo) {
      PyErr_Format(PyExc_TypeError, "tensor: expected numbers, got %s", Py_TYPE(object)->tp_name);
    }
    if (m != Match::kYes) return false;
    *type = value.tag == LAMELLA_BOOL     ? ScalarType::Bool
            : value.tag == LAMELLA_INT    ? ScalarType::Long
            : value.tag == LAMELLA_DOUBLE ? ScalarType::Double
                                          : ScalarType::ComplexDouble;
  }
  return true;
}

bool look(PyObject* object, size_t depth, bool need_type, Survey* survey);

bool look_at_items(PyObject* object, size_t depth, bool need_type, Survey* survey) {
  if (depth >= kMaxDepth) {
    PyErr_Format(PyExc_ValueError, "tensor: expected at most %zu nested sequences", kMaxDepth);
    return false;
  }
  Ref items(PySequence_Fast(object, "tensor: expected a sequence"));
  if (!items) return false;
  Py_ssize_t size = PySequence_Fast_GET_SIZE(items.get());
  if (depth == survey->sizes.size()) {
    // All leaves so far are less deep.
    if (!survey->leaves.empty()) return fail_depth();
    survey->sizes.push_back(size);
  } else if (survey->sizes[depth] != size) {
    return fail_length(*survey, depth, size);
  }
  size_t known = survey->sizes.size();
  for (Py_ssize_t i = 0; i < size; ++i) {
    if (PySequence_Fast_GET_SIZE(items.get()) != size) {
      PyErr_SetString(PyExc_RuntimeError, "tensor: a sequence changed while it was read");
      return false;
    }
    Ref item = Ref::borrow(PySequence_Fast_GET_ITEM(items.get(), i));
    size_t before = survey->sizes.size();
    if (!look(item.get(), depth + 1, need_type, survey)) return false;
    if (i > 0 && survey->sizes.size() != before && known == before) return fail_depth();
  }
  return true;
}

bool look(PyObject* object, size_t depth, bool need_type, Survey* survey) {
  ScalarType type = ScalarType::Undefined;
  size_t dims = 0;  // of the leaf itself
  if (PyFloat_CheckExact(object)) {
    type = default_dtype();
  } else if (PyLong_CheckExact(object)) {
    type = ScalarType::Long;
  } else if (is_tensor(object)) {
    // A tensor with one element is a number, or nested sequences of length 1 if it has dimensions.
    lamella_tensor* tensor = tensor_of(object);
    if (tensor->numel != 1) {
      PyErr_SetString(PyExc_ValueError,
                      "tensor: expected tensors inside sequences to have one element; use stack()");
      return false;
    }
    type = static_cast<ScalarType>(tensor->scalar_type);
    dims = static_cast<size_t>(tensor->ndim);
  } else if (PyUnicode_Check(object) || PyBytes_Check(object)) {
    PyErr_Format(PyExc_TypeError, "tensor: expected numbers, got %s", Py_TYPE(object)->tp_name);
    return false;
  } else if (is_sequence(object)) {
    bool array = is_numpy(object);
    if (array && need_type && !numpy_type(object, &type)) return false;
    if (type != ScalarType::Undefined) join(survey, type);
    Ref ndim(array ? PyObject_GetAttrString(object, "ndim") : nullptr);
    if (array && !ndim) return false;
    if (!array || PyObject_IsTrue(ndim.get()) != 0) {
      return look_at_items(object, depth, need_type && !array, survey);
    }
    Ref number(PyObject_CallMethod(object, "item", nullptr));  // an array of no dimensions
    if (!number) return false;
    return look(number.get(), depth, false, survey);
  } else if (need_type && !number_type(object, &type)) {
    return false;
  }
  if (survey->sizes.size() < depth || survey->sizes.size() > depth + dims) return fail_depth();
  for (size_t d = depth; d < survey->sizes.size(); ++d) {
    if (survey->sizes[d] != 1) return fail_length(*survey, d, 1);
  }
  if (need_type) join(survey, type);
  Py_INCREF(object);
  survey->leaves.push_back(object);
  return true;
}

bool store(PyObject* object, ScalarType type, char* to) {
  // The most common elements are stored directly.
  if (PyFloat_CheckExact(object) && type == ScalarType::Float) {
    auto element = static_cast<float>(PyFloat_AS_DOUBLE(object));
    std::memcpy(to, &element, sizeof(element));
    return true;
  }
  lamella_value value;
  double parts[2];
  Match m = is_tensor(object) ? read_element(tensor_of(object), &value, parts)
                              : read_number(object, &value, parts);
  if (m == Match::kError && PyErr_ExceptionMatches(PyExc_OverflowError) &&
      type == ScalarType::UInt64 && PyIndex_Check(object)) {
    PyErr_Clear();
    Ref number(PyNumber_Index(object));
    if (!number) return false;
    uint64_t element = PyLong_AsUnsignedLongLong(number.get());
    if (PyErr_Occurred() != nullptr) return false;
    std::memcpy(to, &element, sizeof(element));
    return true;
  }
  // Ints of more than 64 bits can be converted to floats and to bool.
  if (m == Match::kError && PyErr_ExceptionMatches(PyExc_OverflowError) && PyLong_Check(object) &&
      (!is_integral(type, false))) {
    PyErr_Clear();
    value = lamella_value{{0}, 0, LAMELLA_DOUBLE, 0, 0};
    value.as.d = type == ScalarType::Bool ? 1 : PyLong_AsDouble(object);
    if (PyErr_Occurred() != nullptr) return false;
    m = Match::kYes;
  }
  if (m == Match::kNo) {
    PyErr_Format(PyExc_TypeError, "tensor: expected numbers, got %s", Py_TYPE(object)->tp_name);
  }
  return m == Match::kYes && store_element(to, type, value, parts);
}

TensorBase empty(const std::vector<int64_t>& sizes, ScalarType type) {
  lamella_tensor* made = nullptr;
  detail::check(lamella_tensor_empty(static_cast<int32_t>(sizes.size()), sizes.data(),
                                     static_cast<uint8_t>(type), 0, -1, &made));
  return TensorBase::adopt(made);
}

SlotOperator to_op{"aten::to"};
SlotOperator clone_op{"aten::clone"};

// tensor.to(device, dtype), for those that are given; a copy if `copy`.
PyObject* converted(PyObject* owned, ScalarType type, PyObject* device, bool copy) {
  Ref tensor(owned);
  if (!tensor) return nullptr;
  lamella_tensor* raw = tensor_of(owned);
  bool other_type = type != ScalarType::Undefined && static_cast<uint8_t>(type) != raw->scalar_type;
  bool other_device = false;
  if (device != Py_None) {
    Device wanted(kCPU);
    int found = device_from_object(device, &wanted);
    if (found < 0) return nullptr;
    if (found == 0) {
      return PyErr_Format(PyExc_TypeError, "tensor: expected 'device' to be a device, got %s",
                          Py_TYPE(device)->tp_name);
    }
    other_device = static_cast<uint8_t>(wanted.type()) != raw->device_type ||
                   (wanted.has_index() && wanted.index() != raw->device_index && !wanted.is_cpu());
  }
  if (!other_type && !other_device && !copy) return tensor.release();
  if (!other_type && !other_device) {
    const ProgramTable* table = clone_op.table();
    if (table == nullptr) return PyErr_Format(PyExc_RuntimeError, "aten::clone: is not defined");
    return call_table(*table, "clone", false, &owned, 1, nullptr);
  }
  const ProgramTable* table = to_op.table();
  if (table == nullptr) return PyErr_Format(PyExc_RuntimeError, "aten::to: is not defined");
  Ref dtype(dtype_object(other_type ? type : static_cast<ScalarType>(raw->scalar_type)));
  Ref target(other_device ? Ref::borrow(device)
                          : Ref(device_object(Device(static_cast<DeviceType>(raw->device_type),
                                                     raw->device_index))));
  PyObject* args[] = {owned, target.get(), dtype.get()};
  return call_table(*table, "to", false, args, 3, nullptr);
}

struct Options {
  PyObject* data;
  ScalarType dtype = ScalarType::Undefined;
  PyObject* device = Py_None;
  PyObject* copy = Py_None;
  int requires_grad = 0;
  int pin_memory = 0;
};

// In asarray, whose result requires gradients as its tensor does unless it is told.
constexpr int kAsGiven = -1;

// The tensor, which requires gradients if the options say so.
PyObject* finished(PyObject* owned, const Options& options) {
  if (owned == nullptr || options.requires_grad <= 0) return owned;
  lamella_status status = lamella_tensor_set_requires_grad(tensor_of(owned), 1);
  if (status == LAMELLA_OK) return owned;
  Py_DECREF(owned);
  return raise_status(status);
}

bool read_options(PyObject* args, PyObject* kwargs, const char* format, const char* const* names,
                  const char* what, Options* options) {
  PyObject* dtype = Py_None;
  bool has_copy = strcmp(what, "asarray") == 0;
  int good = has_copy ? PyArg_ParseTupleAndKeywords(args, kwargs, format, const_cast<char**>(names),
                                                    &options->data, &dtype, &options->device,
                                                    &options->copy, &options->requires_grad)
                      : PyArg_ParseTupleAndKeywords(args, kwargs, format, const_cast<char**>(names),
                                                    &options->data, &dtype, &options->device,
                                                    &options->requires_grad, &options->pin_memory);
  if (!good) return false;
  if (dtype != Py_None && !dtype_from_object(dtype, &options->dtype)) {
    PyErr_Format(PyExc_TypeError, "%s: expected 'dtype' to be a dtype, got %R", what, dtype);
    return false;
  }
  return true;
}

// The data as a tensor, sharing memory where it can be shared.
PyObject* shared_tensor(const Options& options, bool* fresh) {
  *fresh = false;
  if (is_tensor(options.data)) {
    Py_INCREF(options.data);
    return options.data;
  }
  return guarded([&]() -> PyObject* {
    const char* copied;
    TensorBase tensor = tensor_from_buffer(options.data, false, &copied);
    if (PyErr_Occurred() != nullptr) return nullptr;
    *fresh = copied != nullptr;
    if (!tensor.defined() && options.dtype != ScalarType::Undefined &&
        !PyList_Check(options.data) && !PyTuple_Check(options.data) &&
        PyObject_HasAttrString(options.data, "_elements_of") != 0) {
      Ref dtype(dtype_object(options.dtype));
      return PyObject_CallMethod(options.data, "_elements_of", "O", dtype.get());
    }
    if (!tensor.defined()) {
      *fresh = true;
      tensor = tensor_from_data(options.data, options.dtype, true);
    }
    return tensor.defined() ? wrap(std::move(tensor)) : nullptr;
  });
}

// Reports a tensor made from Python data to the trace of this thread.
PyObject* noted(PyObject* owned, const Options& options) {
  if (owned == nullptr || is_tensor(options.data) || !tracing::is_tracing()) return owned;
  return guarded([&] {
    Ref made(owned);
    note_made(owned);
    return made.release();
  });
}

// Under functionalization, wraps the new tensor, which has no aliases yet.
PyObject* lifted(PyObject* owned) {
  constexpr uint64_t functionalize =
      detail::functionality_bit(detail::Functionality::Functionalize);
  if (owned == nullptr || (lamella_thread.included & functionalize) == 0) return owned;
  static KnownOperator lift{"aten::lift_fresh", ""};
  return guarded([&]() -> PyObject* {
    Ref made(owned);
    TensorBase tensor = call_known(lift, {tensor_value(tensor_of(owned))});
    return tensor.defined() ? wrap(std::move(tensor)) : nullptr;
  });
}

PyObject* tensor_function(PyObject*, PyObject* args, PyObject* kwargs) {
  PyObject* answer;
  if (torch_function_on && ask_mode("tensor", args, kwargs, &answer)) [[unlikely]]
    return answer;
  static const char* names[] = {"data", "dtype", "device", "requires_grad", "pin_memory", nullptr};
  Options options;
  if (!read_options(args, kwargs, "O|$OOpp:tensor", names, "tensor", &options)) return nullptr;
  if (is_tensor(options.data) &&
      PyErr_WarnEx(PyExc_UserWarning,
                   "tensor: expected data that is not a Tensor; to copy a tensor without history "
                   "use detach().clone(), and requires_grad_() on the copy",
                   1) != 0) {
    return nullptr;
  }
  bool fresh;
  PyObject* tensor = shared_tensor(options, &fresh);
  PyObject* made = converted(tensor, options.dtype, options.device, !fresh);
  if (made != nullptr && is_tensor(options.data) &&
      lamella_tensor_requires_grad(tensor_of(made)) != 0) {
    // Always a new leaf, also if the source has a history.
    made = guarded([&] {
      Ref computed(made);
      return wrap(make_detached(tensor_ref(made)));
    });
  }
  return finished(lifted(noted(made, options)), options);
}
PyObject* as_tensor(PyObject*, PyObject* args, PyObject* kwargs) {
  PyObject* answer;
  if (torch_function_on && ask_mode("as_tensor", args, kwargs, &answer)) [[unlikely]]
    return answer;
  static const char* names[] = {"data", "dtype", "device", nullptr};
  Options options;
  if (!read_options(args, kwargs, "O|OO:as_tensor", names, "as_tensor", &options)) return nullptr;
  bool fresh;
  PyObject* tensor = shared_tensor(options, &fresh);
  PyObject* made = converted(tensor, options.dtype, options.device, false);
  return fresh ? noted(made, options) : made;
}
PyObject* asarray(PyObject*, PyObject* args, PyObject* kwargs) {
  PyObject* answer;
  if (torch_function_on && ask_mode("asarray", args, kwargs, &answer)) [[unlikely]]
    return answer;
  static const char* names[] = {"obj", "dtype", "device", "copy", "requires_grad", nullptr};
  Options options;
  options.requires_grad = kAsGiven;
  if (!read_options(args, kwargs, "O|$OOOp:asarray", names, "asarray", &options)) return nullptr;
  bool fresh = false;
  PyObject* tensor = nullptr;
  bool exchanged =
      PyCapsule_CheckExact(options.data) || PyObject_HasAttrString(options.data, "__dlpack__") != 0;
  if (!is_tensor(options.data) && exchanged && !PyObject_CheckBuffer(options.data)) {
    Ref extension(PyImport_ImportModule("lamella"));
    if (!extension) return nullptr;
    tensor = PyObject_CallMethod(extension.get(), "from_dlpack", "O", options.data);
  } else {
    tensor = shared_tensor(options, &fresh);
  }
  if (tensor == nullptr) return nullptr;
  bool copy = options.copy == Py_True && !fresh;
  bool never = options.copy == Py_False;
  Ref held = Ref::borrow(tensor);
  PyObject* result = converted(tensor, options.dtype, options.device, copy);
  if (result != nullptr && never && (fresh || result != held.get())) {
    Py_DECREF(result);
    return PyErr_Format(PyExc_ValueError,
                        "asarray: expected 'obj' to share its memory because of copy=False");
  }
  if (result != nullptr && options.requires_grad == 0 && tensor_ref(result).requires_grad()) {
    Ref recorded(result);
    return PyObject_CallMethod(recorded.get(), "detach", nullptr);
  }
  return finished(result, options);
}

PyObject* frombuffer(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"buffer", "dtype", "count", "offset", "requires_grad", nullptr};
  PyObject *object, *dtype = nullptr;
  Py_ssize_t count = -1, offset = 0;
  Options options;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$Onnp:frombuffer", const_cast<char**>(names),
                                   &object, &dtype, &count, &offset, &options.requires_grad)) {
    return nullptr;
  }
  if (dtype == nullptr) {
    PyErr_SetString(PyExc_TypeError, "frombuffer: expected the argument 'dtype', got none");
    return nullptr;
  }
  ScalarType type;
  if (!dtype_from_object(dtype, &type)) {
    return PyErr_Format(PyExc_TypeError, "frombuffer: expected 'dtype' to be a dtype, got %R",
                        dtype);
  }
  auto* view = new Py_buffer;
  bool read_only = false;
  int opened = open_buffer(object, PyBUF_SIMPLE, view, &read_only);
  if (opened <= 0) {
    delete view;
    if (opened < 0) return nullptr;
    return PyErr_Format(PyExc_ValueError,
                        "frombuffer: expected 'buffer' to have the buffer "
                        "protocol, got %s",
                        Py_TYPE(object)->tp_name);
  }
  auto bytes = static_cast<Py_ssize_t>(element_size(type));
  Py_ssize_t length = view->len;
  const char* problem = nullptr;
  if (length == 0) {
    problem = "frombuffer: expected 'buffer' to hold bytes, got none";
  } else if (offset < 0 || offset >= length) {
    problem = "frombuffer: expected 'offset' to be inside the buffer";
  } else if (count == 0 || count < -1) {
    problem = "frombuffer: expected 'count' to be above 0, or -1 for all";
  } else if (count > 0 && count > (length - offset) / bytes) {
    problem = "frombuffer: expected 'count' elements to fit in the buffer after 'offset'";
  } else if (count == -1 && (length - offset) % bytes != 0) {
    problem = "frombuffer: expected the bytes after 'offset' to be whole elements";
  }
  if (problem != nullptr) {
    release_view(view);
    PyErr_SetString(PyExc_ValueError, problem);
    return nullptr;
  }
  int64_t size = count > 0 ? count : (length - offset) / bytes;
  auto* data = static_cast<char*>(view->buf) + offset;
  bool aligned = is_aligned(data, type);
  lamella_tensor* made = nullptr;
  if (aligned && !read_only) {
    lamella_status status = lamella_tensor_from_blob(
        data, 1, &size, nullptr, static_cast<uint8_t>(type), 0, -1, release_view, view, &made);
    if (status != LAMELLA_OK) return raise_status(status);
    return finished(wrap(made), options);
  }
  lamella_status status = lamella_tensor_empty(1, &size, static_cast<uint8_t>(type), 0, -1, &made);
  if (status == LAMELLA_OK && size != 0)
    std::memcpy(made->data, data, static_cast<size_t>(size * bytes));
  release_view(view);
  if (status != LAMELLA_OK) return raise_status(status);
  Ref copy(wrap(made));
  if (!copy || PyErr_WarnFormat(PyExc_UserWarning, 1,
                                "frombuffer: the buffer %s; the tensor has a copy of it",
                                aligned ? "is read-only" : "has elements that are not aligned")) {
    return nullptr;
  }
  return finished(copy.release(), options);
}

PyObject* is_tensor_function(PyObject*, PyObject* object) {
  return PyBool_FromLong(is_tensor(object));
}

PyMethodDef functions[] = {
    {"tensor", method(tensor_function), METH_VARARGS | METH_KEYWORDS,
     "tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False)\n\nA new "
     "tensor with a copy of the data."},
    {"as_tensor", method(as_tensor), METH_VARARGS | METH_KEYWORDS,
     "as_tensor(data, dtype=None, device=None)\n\nA tensor that shares the data's memory where it "
     "can."},
    {"asarray", method(asarray), METH_VARARGS | METH_KEYWORDS,
     "asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=False)\n\nA tensor that "
     "shares the object's "
     "memory if copy is False, does not if it is True."},
    {"frombuffer", method(frombuffer), METH_VARARGS | METH_KEYWORDS,
     "frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False)\n\nA tensor of one "
     "dimension over the "
     "buffer's memory."},
    {"is_tensor", is_tensor_function, METH_O, "Whether the object is a Tensor."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

TensorBase tensor_from_data(PyObject* data, ScalarType dtype, bool copy) {
  return guarded(
      [&]() -> TensorBase {
        if (is_tensor(data)) {
          Ref same(converted(Ref::borrow(data).release(), dtype, Py_None, copy));
          return same ? tensor_ref(same.get()) : TensorBase();
        }
        TensorBase shared = tensor_from_buffer(data, true);
        if (PyErr_Occurred() != nullptr) return TensorBase();
        if (shared.defined()) {
          Ref result(converted(wrap(std::move(shared)), dtype, Py_None, copy));
          return result ? tensor_ref(result.get()) : TensorBase();
        }
        Survey survey;
        if (!look(data, 0, dtype == ScalarType::Undefined, &survey)) return TensorBase();
        ScalarType type = dtype != ScalarType::Undefined         ? dtype
                          : survey.type != ScalarType::Undefined ? survey.type
                                                                 : default_dtype();
        TensorBase tensor = empty(survey.sizes, type);
        LAMELLA_INTERNAL_ASSERT(tensor.numel() == static_cast<int64_t>(survey.leaves.size()));
        auto* to = static_cast<char*>(tensor.impl()->data);
        for (PyObject* leaf : survey.leaves) {
          if (!store(leaf, type, to)) return TensorBase();
          to += element_size(type);
        }
        return tensor;
      },
      TensorBase());
}

int add_build(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace lamella::python
