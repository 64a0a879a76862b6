// Operators and kernels from Python, libraries loaded at run time, and questions about operators.
#include <cstring>
#include <mutex>

#include "lamella/abi/policy.h"
#include "lamella/core/fork.h"
#include "lamella/dispatch/explain.h"
#include "lamella/dispatch/loading.h"
#include "lamella/layers/autocast/cast.h"
#include "lamella/schema/parser.h"
#include "python/src/errors.h"
#include "python/src/python_kernel.h"

namespace lamella::python {
namespace {

// ---- Kernels in Python -------------------------------------------------------------------------

// Functions whose kernels are gone. They are released later, by a thread that holds the GIL and
// none of Lamella's locks, as kernels are disposed of under the registry's lock.
fork::Held<std::mutex> unused_mutex{fork::Level::kPython};
std::vector<PythonKernel*> unused;

int release_unused(void*) {
  std::vector<PythonKernel*> taken;
  {
    std::lock_guard lock(unused_mutex);
    taken.swap(unused);
  }
  for (PythonKernel* kernel : taken) {
    Py_XDECREF(kernel->function);
    Py_XDECREF(kernel->gradient);
    Py_XDECREF(kernel->setup_context);
    delete kernel;
  }
  return 0;
}

void dispose_python(void* context) {
  if (!Py_IsInitialized()) return;
  {
    std::lock_guard lock(unused_mutex);
    unused.push_back(static_cast<PythonKernel*>(context));
  }
  // If the queue of pending calls is full, closing the next library releases them.
  Py_AddPendingCall(release_unused, nullptr);
}

struct PyLibrary {
  PyObject_HEAD lamella_library* library;
};
PyTypeObject LibraryType = {PyVarObject_HEAD_INIT(nullptr, 0)};

bool key_from_text(const char* text, uint16_t* key) {
  *key = 0xffff;
  if (text == nullptr || *text == 0) return true;
  lamella_status status = lamella_dispatch_key_from_name(text, key);
  if (status != LAMELLA_OK) raise_status(status);
  return status == LAMELLA_OK;
}

// The source location of the Python code that registers, for messages.
struct Where {
  std::string file = "<python>";
  uint32_t line = 0;
};
Where here() {
  Where where;
  Ref warnings(PyImport_ImportModule("sys"));
  Ref frame(warnings ? PyObject_CallMethod(warnings.get(), "_getframe", "i", 1) : nullptr);
  // The code that calls the module lamella.library.
  Ref code(frame ? PyObject_GetAttrString(frame.get(), "f_code") : nullptr);
  Ref file(code ? PyObject_GetAttrString(code.get(), "co_filename") : nullptr);
  Ref line(frame ? PyObject_GetAttrString(frame.get(), "f_lineno") : nullptr);
  if (file && line) {
    if (const char* text = PyUnicode_AsUTF8(file.get())) where.file = text;
    where.line = static_cast<uint32_t>(PyLong_AsUnsignedLong(line.get()));
  }
  PyErr_Clear();
  return where;
}

PyObject* library_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"ns", "kind", "dispatch_key", nullptr};
  const char *name_space, *kind, *key_text = "";
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "ss|s:Library", const_cast<char**>(names),
                                   &name_space, &kind, &key_text)) {
    return nullptr;
  }
  int32_t number = strcmp(kind, "DEF") == 0        ? LAMELLA_LIBRARY_DEF
                   : strcmp(kind, "IMPL") == 0     ? LAMELLA_LIBRARY_IMPL
                   : strcmp(kind, "FRAGMENT") == 0 ? LAMELLA_LIBRARY_FRAGMENT
                                                   : -1;
  if (number < 0) {
    return PyErr_Format(PyExc_ValueError,
                        "Library: expected 'kind' to be DEF, IMPL or FRAGMENT, got '%s'", kind);
  }
  uint16_t key;
  if (!key_from_text(key_text, &key)) return nullptr;
  PyObject* self = type->tp_alloc(type, 0);
  if (self == nullptr) return nullptr;
  Where where = here();
  lamella_library** library = &reinterpret_cast<PyLibrary*>(self)->library;
  lamella_status status =
      lamella_library_open(number, name_space, key, where.file.c_str(), where.line, library);
  if (status != LAMELLA_OK) {
    *library = nullptr;
    Py_DECREF(self);
    return raise_status(status);
  }
  return self;
}

void close_library(PyLibrary* self) {
  lamella_library* library = std::exchange(self->library, nullptr);
  if (library == nullptr) return;
  // Waits for calls in other threads, which may need the GIL to finish.
  Py_BEGIN_ALLOW_THREADS lamella_library_close(library);
  Py_END_ALLOW_THREADS release_unused(nullptr);
}

void library_dealloc(PyObject* self) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  close_library(reinterpret_cast<PyLibrary*>(self));
  PyErr_Restore(type, value, traceback);
  Py_TYPE(self)->tp_free(self);
}

lamella_library* open_library(PyObject* self) {
  lamella_library* library = reinterpret_cast<PyLibrary*>(self)->library;
  if (library == nullptr) {
    PyErr_SetString(PyExc_RuntimeError, "Library: expected an open library, got a closed one");
  }
  return library;
}

PyObject* library_define(PyObject* self, PyObject* args) {
  const char *schema, *tags = "", *doc = nullptr;
  if (!PyArg_ParseTuple(args, "s|sz:define", &schema, &tags, &doc)) return nullptr;
  lamella_library* library = open_library(self);
  if (library == nullptr) return nullptr;
  Where where = here();
  lamella_status status = lamella_library_define(
      library, schema, nullptr, *tags != 0 ? tags : nullptr, where.file.c_str(), where.line);
  if (status == LAMELLA_OK && doc != nullptr) {
    std::string name(schema, strcspn(schema, "("));
    name.resize(name.find_last_not_of(' ') + 1);
    status = lamella_library_document(library, name.c_str(), doc);
  }
  if (status != LAMELLA_OK) return raise_status(status);
  Py_RETURN_NONE;
}

PyObject* take(PyObject* object) {
  return object == Py_None ? nullptr : Ref::borrow(object).release();
}

// Fills in a description, which owns what it points to. None makes a fallthrough.
bool describe_kernel(PyObject* function, int with_keyset, const char* what, const Where& where,
                     lamella_kernel_description* description) {
  description->file = where.file.c_str();
  description->line = where.line;
  if (function == Py_None) return true;
  if (!PyCallable_Check(function)) {
    PyErr_Format(PyExc_TypeError, "%s: expected 'fn' to be a function, got %s", what,
                 Py_TYPE(function)->tp_name);
    return false;
  }
  auto* kernel = new PythonKernel;
  kernel->function = Ref::borrow(function).release();
  kernel->with_keyset = with_keyset != 0;
  description->boxed = python_kernel;
  description->context = kernel;
  description->dispose = dispose_python;
  return true;
}

// impl(name, function, key="", with_keyset=False, is_custom=False, gradient=None,
// setup_context=None)
PyObject* library_impl(PyObject* self, PyObject* args) {
  const char *name, *key_text = "";
  PyObject *function, *gradient = Py_None, *setup = Py_None;
  int with_keyset = 0, is_custom = 0;
  if (!PyArg_ParseTuple(args, "sO|sppOO:impl", &name, &function, &key_text, &with_keyset,
                        &is_custom, &gradient, &setup)) {
    return nullptr;
  }
  lamella_library* library = open_library(self);
  uint16_t key;
  if (library == nullptr || !key_from_text(key_text, &key)) return nullptr;
  Where where = here();
  lamella_kernel_description description{};
  if (!describe_kernel(function, with_keyset, "impl", where, &description)) return nullptr;
  if (auto* kernel = static_cast<PythonKernel*>(description.context)) {
    kernel->is_custom = is_custom != 0;
    kernel->gradient = take(gradient);
    kernel->setup_context = take(setup);
  }
  lamella_status status = lamella_library_implement(library, name, key, &description);
  if (status != LAMELLA_OK) return raise_status(status);
  return guarded([&]() -> PyObject* {
    const char* dot = strchr(strstr(name, "::") != nullptr ? strstr(name, "::") : name, '.');
    std::string qualified = dot != nullptr ? std::string(name, dot) : std::string(name);
    OperatorEntry* op = Registry::get().lookup(qualified, dot != nullptr ? dot + 1 : "");
    OpFacts* facts = op != nullptr ? bare_facts_of(op) : nullptr;
    if (facts != nullptr) facts->has_python_kernel.store(true, std::memory_order_relaxed);
    if (PyErr_Occurred() != nullptr) return nullptr;
    Py_RETURN_NONE;
  });
}

// fallback(function, key="", with_keyset=False)
PyObject* library_fallback(PyObject* self, PyObject* args) {
  const char* key_text = "";
  PyObject* function;
  int with_keyset = 0;
  if (!PyArg_ParseTuple(args, "O|sp:fallback", &function, &key_text, &with_keyset)) return nullptr;
  lamella_library* library = open_library(self);
  uint16_t key;
  if (library == nullptr || !key_from_text(key_text, &key)) return nullptr;
  Where where = here();
  lamella_kernel_description description{};
  if (!describe_kernel(function, with_keyset, "fallback", where, &description)) return nullptr;
  if (auto* kernel = static_cast<PythonKernel*>(description.context)) kernel->is_fallback = true;
  lamella_status status = lamella_library_fallback(library, key, &description);
  if (status != LAMELLA_OK) return raise_status(status);
  Py_RETURN_NONE;
}

// impl_cast(name, dispatch_key, dtype): a kernel that casts to the dtype, then redispatches.
PyObject* library_impl_cast(PyObject* self, PyObject* args) {
  const char *name, *key_text;
  PyObject* object;
  if (!PyArg_ParseTuple(args, "ssO:impl_cast", &name, &key_text, &object)) return nullptr;
  lamella_library* library = open_library(self);
  uint16_t key;
  ScalarType dtype;
  if (library == nullptr || !key_from_text(key_text, &key)) return nullptr;
  if (!dtype_from_object(object, &dtype)) {
    if (PyErr_Occurred() != nullptr) return nullptr;
    return PyErr_Format(PyExc_TypeError,
                        "register_autocast: expected 'cast_inputs' to be a dtype, got %s",
                        Py_TYPE(object)->tp_name);
  }
  Where where = here();
  lamella_kernel_description description{};
  description.boxed = autocast::cast_to_context;
  description.context = reinterpret_cast<void*>(static_cast<uintptr_t>(dtype));
  description.file = where.file.c_str();
  description.line = where.line;
  lamella_status status = lamella_library_implement(library, name, key, &description);
  if (status != LAMELLA_OK) return raise_status(status);
  Py_RETURN_NONE;
}

PyObject* library_close(PyObject* self, PyObject*) {
  close_library(reinterpret_cast<PyLibrary*>(self));
  Py_RETURN_NONE;
}

PyMethodDef library_methods[] = {
    {"impl_cast", library_impl_cast, METH_VARARGS, "Registers a kernel that casts to a dtype."},
    {"define", library_define, METH_VARARGS, "Defines an operator by its schema."},
    {"impl", library_impl, METH_VARARGS, "Registers a Python function as a kernel."},
    {"fallback", library_fallback, METH_VARARGS,
     "Registers a Python function for all operators that have no kernel for a key."},
    {"close", library_close, METH_NOARGS, "Undoes all registrations of this library."},
    {nullptr, nullptr, 0, nullptr}};

// ---- Shared libraries --------------------------------------------------------------------------

PyObject* load_library(PyObject*, PyObject* args) {
  PyObject* path;
  if (!PyArg_ParseTuple(args, "O&:load_library", PyUnicode_FSConverter, &path)) return nullptr;
  Ref owned(path);
  const char* text = PyBytes_AS_STRING(path);
  return guarded([&]() -> PyObject* {
    Loaded loaded;
    {
      WithoutGil gone;
      loaded = load_shared(text);
    }
    if (!loaded.problem.empty()) {
      return PyErr_Format(PyExc_OSError, "load_library: %s", loaded.problem.c_str());
    }
    if (!loaded.failures.empty()) {
      std::string problem =
          std::string("load_library: ") + text + " could not register its operators";
      for (const std::string& failure : loaded.failures) problem += "\n  " + failure;
      PyErr_SetString(PyExc_RuntimeError, problem.c_str());
      return nullptr;
    }
    for (const std::string& warning : loaded.warnings) {
      if (PyErr_WarnEx(PyExc_UserWarning, warning.c_str(), 2) == 0) continue;
      unload_shared(loaded.handle);
      return nullptr;
    }
    return PyLong_FromVoidPtr(loaded.handle);
  });
}

PyObject* unload_library(PyObject*, PyObject* number) {
  void* handle = PyLong_AsVoidPtr(number);
  if (handle == nullptr) return nullptr;
  return guarded([&]() -> PyObject* {
    {
      WithoutGil gone;
      unload_shared(handle);
    }
    release_unused(nullptr);
    Py_RETURN_NONE;
  });
}

PyObject* deferred_failures(PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    Ref list(PyList_New(0));
    for (const std::string& failure : take_load_failures()) {
      Ref text(PyUnicode_FromString(failure.c_str()));
      if (!list || !text || PyList_Append(list.get(), text.get()) != 0) return nullptr;
    }
    return list.release();
  });
}

// ---- Questions ---------------------------------------------------------------------------------

// _explain(packet, *args, **kwargs): what a call would do, as text.
PyObject* explain_call(PyObject*, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  PyTypeObject* type = nargs > 0 ? Py_TYPE(args[0]) : nullptr;
  if (type != &FunctionType_ && type != &MethodType_ && type != &PacketType &&
      type != &OverloadType) {
    PyErr_SetString(PyExc_TypeError, "explain: expected 'op' to be an operator of Lamella");
    return nullptr;
  }
  auto* packet = reinterpret_cast<PyPacket*>(args[0]);
  return guarded([&]() -> PyObject* {
    const ProgramTable* table = table_of(packet);
    if (table == nullptr) return nullptr;
    ++args;
    --nargs;
    lamella_value values[64];
    for (int numbers = 0; numbers < 2; ++numbers) {
      for (const Program* program : table->programs) {
        Frame frame;
        Match m = match(*program, args, nargs, kwnames, numbers == 1, frame, values);
        if (m == Match::kError) return nullptr;
        if (m == Match::kNo) continue;
        std::string text = explain(program->op, values).str();
        return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
      }
      if (!table->numbers) break;
    }
    return raise_mismatch(*table, PyUnicode_AsUTF8(packet->name), packet->is_method, args, nargs,
                          kwnames);
  });
}

// _parse_schema(text): the schema printed back.
PyObject* parse_schema_text(PyObject*, PyObject* args) {
  const char* text;
  int resolved = 0;
  if (!PyArg_ParseTuple(args, "s|p:_parse_schema", &text, &resolved)) return nullptr;
  try {
    FunctionSchema schema = parse_schema(text);
    std::string printed = resolved ? schema.resolved_str() : schema.str();
    return PyUnicode_FromString(printed.c_str());
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_ValueError, e.what());
    return nullptr;
  }
}

PyObject* dispatch_trace(PyObject*, PyObject* on) {
  int flag = PyObject_IsTrue(on);
  if (flag < 0) return nullptr;
  return guarded([&] {
    bool before = Registry::get().trace();
    Registry::get().set_trace(flag == 1);
    return PyBool_FromLong(before);
  });
}

PyMethodDef functions[] = {
    {"_load_library", load_library, METH_VARARGS, nullptr},
    {"_unload_library", unload_library, METH_O, nullptr},
    {"_deferred_failures", deferred_failures, METH_NOARGS, nullptr},
    {"_explain", method<PyObject*, PyObject* const*, Py_ssize_t, PyObject*>(explain_call),
     METH_FASTCALL | METH_KEYWORDS, nullptr},
    {"_parse_schema", parse_schema_text, METH_VARARGS, nullptr},
    {"_set_dispatch_trace", dispatch_trace, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

int add_library(PyObject* module) {
  LibraryType.tp_name = "lamella._C.Library";
  LibraryType.tp_basicsize = sizeof(PyLibrary);
  LibraryType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE;
  LibraryType.tp_new = library_new;
  LibraryType.tp_dealloc = library_dealloc;
  LibraryType.tp_methods = library_methods;
  if (PyType_Ready(&LibraryType) != 0) return -1;
  Py_INCREF(&LibraryType);
  if (PyModule_AddObject(module, "_Library", reinterpret_cast<PyObject*>(&LibraryType)) != 0) {
    return -1;
  }
  return PyModule_AddFunctions(module, functions);
}

}  // namespace lamella::python
