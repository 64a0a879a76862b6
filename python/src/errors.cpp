// Converts statuses to Python exceptions, and Python exceptions to statuses.
#include "python/src/errors.h"

#include <frameobject.h>  // after Python.h

#include <new>

#include "lamella/core/wrapper.h"
#include "lamella/dispatch/error_names.h"

namespace lamella::python {
namespace {

PyObject* linalg_error = nullptr;
PyObject* memory_error = nullptr;

// The Python error that is passing through C++ on this thread; a newer one replaces it.
struct KeptError {
  PyObject* type = nullptr;
  PyObject* value = nullptr;
  PyObject* traceback = nullptr;
};
thread_local KeptError kept;

PyObject* exception_of(lamella_status status) {
  switch (status) {
    case LAMELLA_INDEX_ERROR:
      return PyExc_IndexError;
    case LAMELLA_VALUE_ERROR:
      return PyExc_ValueError;
    case LAMELLA_TYPE_ERROR:
      return PyExc_TypeError;
    case LAMELLA_NOT_IMPLEMENTED:
      return PyExc_NotImplementedError;
    case LAMELLA_OUT_OF_MEMORY:
      return memory_error;
    case LAMELLA_LINALG_ERROR:
      return linalg_error;
    default:
      return PyExc_RuntimeError;
  }
}

}  // namespace

PyObject* raise_status(lamella_status status) {
  if (status == LAMELLA_FOREIGN_ERROR && kept.type != nullptr) {
    PyErr_Restore(kept.type, kept.value, kept.traceback);
    kept = KeptError();
    return nullptr;
  }
  return raise_text(exception_of(status), lamella_error_text());
}

PyObject* raise_text(PyObject* type, std::string_view text) {
  Ref message(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
  if (message) PyErr_SetObject(type, message.get());
  return nullptr;
}

std::string text_of(PyObject* text) {
  if (text == nullptr || !PyUnicode_Check(text)) return {};
  Ref bytes(PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace"));
  if (!bytes) {
    PyErr_Clear();
    return {};
  }
  return std::string(PyBytes_AS_STRING(bytes.get()),
                     static_cast<size_t>(PyBytes_GET_SIZE(bytes.get())));
}

PyObject* name_conversion_error(const char* op) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  if (type == PyExc_OverflowError || type == PyExc_ValueError) {
    Ref printed(value != nullptr ? PyObject_Str(value) : nullptr);
    PyErr_Clear();
    std::string text = text_of(printed.get());
    if (text.rfind("expected ", 0) == 0) {
      Py_XDECREF(value);
      Py_XDECREF(traceback);
      Ref held(type);
      return raise_text(type, std::string(op) + ": " + text);
    }
  }
  PyErr_Restore(type, value, traceback);
  return nullptr;
}

namespace {
// The function of lamella.nn.functional that called an operator: of the frames of Lamella's own
// package that are on top, the outermost one that is public.
std::string calling_function() {
  std::string found;
  Ref frame(reinterpret_cast<PyObject*>(PyThreadState_GetFrame(PyThreadState_Get())));
  while (frame) {
    Ref globals(PyObject_GetAttrString(frame.get(), "f_globals"));
    PyObject* module = globals ? PyDict_GetItemString(globals.get(), "__name__") : nullptr;
    const std::string place = text_of(module);
    if (!place.starts_with("lamella.")) break;
    auto* current = reinterpret_cast<PyFrameObject*>(frame.get());
    if (place.starts_with("lamella.nn.functional")) {
      Ref code(reinterpret_cast<PyObject*>(PyFrame_GetCode(current)));
      Ref name(PyObject_GetAttrString(code.get(), "co_name"));
      const std::string function = text_of(name.get());
      // Functions that a function of the module makes have its names inside, not their own.
      const bool is_public = PyDict_GetItemString(globals.get(), function.c_str()) != nullptr;
      if (is_public && !function.starts_with('_')) found = function;
    }
    frame = Ref(reinterpret_cast<PyObject*>(PyFrame_GetBack(current)));
  }
  PyErr_Clear();
  return found;
}
// How kernels read elements: what they refuse is an error of the operator that was called.
bool is_accessor(std::string_view name) {
  return name.ends_with("data_ptr: ") || name == "accessor: " || name == "packed_accessor: ";
}
}  // namespace

std::string named_by_caller(std::string_view text) {
  const std::string function = calling_function();
  if (function.empty()) return std::string(text);
  text.remove_prefix(length_of_names(text));
  return str(function, ": ", text);
}

PyObject* raise_status(lamella_status status, const char* op) {
  if (status != LAMELLA_FOREIGN_ERROR && status != LAMELLA_INTERNAL_ERROR) {
    name_error(status, op);
    std::string_view text = lamella_error_text();
    if (std::string named = named_by_caller(text); named != text) {
      return raise_status(lamella_fail(status, named.data(), named.size()));
    }
    const size_t names = length_of_names(text);
    const bool report = text.substr(text.find(' ') + 1).starts_with('(');  // aten::add (float32 ...
    if ((names == 0 && !report) || is_accessor(text.substr(0, names))) {
      std::string_view base = op;
      if (size_t at = base.rfind(':'); at != std::string_view::npos) base.remove_prefix(at + 1);
      std::string with_name = str(base, ": ", text);
      status = lamella_fail(status, with_name.data(), with_name.size());
    }
  }
  return raise_status(status);
}

lamella_status keep_python_error() {
  KeptError old = kept;
  PyErr_Fetch(&kept.type, &kept.value, &kept.traceback);
  PyErr_NormalizeException(&kept.type, &kept.value, &kept.traceback);
  std::string text = "Python error";
  if (Ref printed{kept.value != nullptr ? PyObject_Str(kept.value) : nullptr}) {
    text = text_of(printed.get());
  }
  PyErr_Clear();
  Py_XDECREF(old.type);
  Py_XDECREF(old.value);
  Py_XDECREF(old.traceback);
  return lamella_fail(LAMELLA_FOREIGN_ERROR, text.data(), text.size());
}

bool has_memory(const lamella_tensor* tensor, const char* what) {
  if ((tensor->flags & LAMELLA_TENSOR_WRAPPER) == 0) return true;
  if (is_batched(tensor)) {
    PyErr_Format(
        PyExc_RuntimeError,
        "%s: expected a tensor with memory of its own, got one of vmap, where each of %lld "
        "examples has values of its own and Python code runs once for all",
        what, static_cast<long long>(wrapped(tensor)->sizes[0]));
    return false;
  }
  auto* object = static_cast<PyObject*>(tensor->python_object);
  PyErr_Format(PyExc_RuntimeError, "%s: expected a tensor with memory, got a wrapper (%s)", what,
               object != nullptr ? Py_TYPE(object)->tp_name : "Tensor");
  return false;
}

int add_errors(PyObject* module) {
  linalg_error = PyErr_NewExceptionWithDoc("lamella.linalg.LinAlgError",
                                           "A numerical failure of a linear-algebra operator.",
                                           PyExc_RuntimeError, nullptr);
  // Programs for PyTorch expect a RuntimeError.
  Ref bases(PyTuple_Pack(2, PyExc_MemoryError, PyExc_RuntimeError));
  if (!bases || linalg_error == nullptr) return -1;
  memory_error = PyErr_NewExceptionWithDoc(
      "lamella.OutOfMemoryError", "A device, or the host, has no memory left for a tensor.",
      bases.get(), nullptr);
  if (memory_error == nullptr) return -1;
  Py_INCREF(linalg_error);
  Py_INCREF(memory_error);
  if (PyModule_AddObject(module, "_LinAlgError", linalg_error) != 0) return -1;
  return PyModule_AddObject(module, "OutOfMemoryError", memory_error);
}

}  // namespace lamella::python
