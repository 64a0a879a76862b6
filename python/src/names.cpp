// The public names of operators: functions of `lamella` and its modules, methods of Tensor, from
// the generated table. And the class of modules that looks them up quickly.
//
// Note [Names of packages]
//   Python caches the lookup of a module's name at the code that reads it, unless the module has a
//   __getattr__. Modules that load their parts lazily have one, and each lookup of `lamella.add`
//   then begins with the attributes of the module's class. A _Package looks into its own dictionary
//   first, and does what modules do if the name is not there.
#include <cstring>
#include <string>
#include <utility>

#include "lamella/python_names.h"
#include "python/src/errors.h"
#include "python/src/packet.h"

namespace lamella::python {
namespace {

// lamella.nn's operators are functions of lamella.nn.functional.
std::string module_name(const char* module) {
  if (*module == 0) return "lamella";
  return strcmp(module, "nn") == 0 ? "lamella.nn.functional" : std::string("lamella.") + module;
}

// Adds a packet for each name that has a row of its kind. Rows of one name are adjacent.
template <class Chosen>
int add_packets_to(PyObject* members, PyTypeObject* type, const char* module, Chosen chosen) {
  std::string in = module_name(module);
  for (size_t i = 0; i < kPythonNameCount; ++i) {
    const PythonName& row = kPythonNames[i];
    if (!chosen(row)) continue;
    Ref name(PyUnicode_InternFromString(row.name));
    if (!name) return -1;
    int known = PyDict_Contains(members, name.get());
    if (known < 0) return -1;
    if (known == 1) continue;
    Ref packet(reinterpret_cast<PyObject*>(make_packet(type, row.op, row.name, in.c_str())));
    if (!packet || PyDict_SetItem(members, name.get(), packet.get()) != 0) return -1;
  }
  return 0;
}

// _functions("linalg"): name -> function; "" for the package itself.
PyObject* functions_of(PyObject*, PyObject* args) {
  const char* module;
  if (!PyArg_ParseTuple(args, "s:_functions", &module)) return nullptr;
  Ref result(PyDict_New());
  if (!result || add_packets_to(result.get(), &FunctionType_, module, [&](const PythonName& row) {
                   return row.is_function && strcmp(row.module, module) == 0;
                 }) != 0) {
    return nullptr;
  }
  return result.release();
}

// _modules(): the modules that have functions.
PyObject* modules(PyObject*, PyObject*) {
  Ref result(PySet_New(nullptr));
  for (size_t i = 0; result && i < kPythonNameCount; ++i) {
    if (!kPythonNames[i].is_function) continue;
    Ref name(PyUnicode_FromString(kPythonNames[i].module));
    if (!name || PySet_Add(result.get(), name.get()) != 0) return nullptr;
  }
  return result.release();
}

PyTypeObject PackageType = {PyVarObject_HEAD_INIT(nullptr, 0)};

#if PY_VERSION_HEX < 0x030C0000
// What names of packages were found last. Every change of any dictionary gives it a version that no
// dictionary had before, so an entry of the same version is true, and its value alive.
struct FoundName {
  PyObject* name;  // interned, and owned, so that no other name gets its address
  uint64_t version;
  PyObject* value;  // borrowed
};
constexpr size_t kFoundNames = 256;
FoundName found_names[kFoundNames];  // guarded by the GIL

FoundName& found_name(PyObject* name) {
  return found_names[reinterpret_cast<uintptr_t>(name) / 16 % kFoundNames];
}
#endif

PyObject* package_attribute(PyObject* self, PyObject* name) {
  // PyModule_GetDict() would ask first whether this is a module.
  PyObject* names =
      *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(self) + PackageType.tp_dictoffset);
  PyObject* found = nullptr;
#if PY_VERSION_HEX < 0x030C0000
  const uint64_t version = reinterpret_cast<PyDictObject*>(names)->ma_version_tag;
  FoundName& last = found_name(name);
  if (last.name == name && last.version == version) return Ref::borrow(last.value).release();
  found = PyDict_GetItemWithError(names, name);
  if (found != nullptr && PyUnicode_CHECK_INTERNED(name)) {
    Py_INCREF(name);
    Py_XDECREF(std::exchange(last.name, name));
    last.version = version;
    last.value = found;
  }
  Py_XINCREF(found);
  if (found == nullptr && PyErr_Occurred() != nullptr) return nullptr;
#elif PY_VERSION_HEX >= 0x030D0000
  if (PyDict_GetItemRef(names, name, &found) < 0) return nullptr;
#else
  found = PyDict_GetItemWithError(names, name);
  Py_XINCREF(found);
  if (found == nullptr && PyErr_Occurred() != nullptr) return nullptr;
#endif
  return found != nullptr ? found : PyModule_Type.tp_getattro(self, name);
}

int add_package(PyObject* module) {
  PyTypeObject* type = &PackageType;
  type->tp_name = "lamella._C._Package";
  type->tp_doc = "A module whose own names are found before its class is asked.";
  type->tp_base = &PyModule_Type;
  type->tp_flags = Py_TPFLAGS_DEFAULT;
  type->tp_getattro = package_attribute;
  if (PyType_Ready(type) != 0) return -1;
  Py_INCREF(type);
  return PyModule_AddObject(module, "_Package", reinterpret_cast<PyObject*>(type));
}

PyMethodDef functions[] = {{"_functions", functions_of, METH_VARARGS, nullptr},
                           {"_modules", modules, METH_NOARGS, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

int add_names(PyObject* module) {
  if (add_packets_to(TensorType.tp_dict, &MethodType_, "",
                     [](const PythonName& row) { return row.is_method; }) != 0) {
    return -1;
  }
  PyType_Modified(&TensorType);
  if (add_package(module) != 0) return -1;
  return PyModule_AddFunctions(module, functions);
}

}  // namespace lamella::python
