// The table of one operator, as lamella.PythonDispatcher shows it.
#include <algorithm>
#include <iterator>

#include "lamella/dispatch/registry.h"
#include "python/src/errors.h"
#include "python/src/python_kernel.h"

namespace lamella::python {
namespace {

// PyTorch's names of the ways in which a slot gets its kernel.
const char* way_of(const Slot& slot) {
  switch (slot.origin) {
    case SlotOrigin::kKernel:
      return "kernel";
    case SlotOrigin::kAlias:
      switch (slot.entry->key) {
        case DispatchKey::CompositeImplicitAutograd:
        case DispatchKey::CompositeImplicitAutogradNestedTensor:
          return "math kernel";
        case DispatchKey::CompositeExplicitAutograd:
        case DispatchKey::CompositeExplicitAutogradNonFunctional:
          return "default backend kernel";
        case DispatchKey::Autograd:
          return "autograd kernel";
        default:
          return "alias kernel";
      }
    case SlotOrigin::kMissing:
      return "missing";
    case SlotOrigin::kAmbiguous:
      return "ambiguous autogradother";
    case SlotOrigin::kFallback:
    case SlotOrigin::kFallthrough:
    case SlotOrigin::kDerivative:
    case SlotOrigin::kLayer:
      return "backend fallback";
  }
  return "missing";
}

// The name of the function of a kernel: a new reference; "" if it is not a Python function.
PyObject* name_of(const KernelEntry* entry) {
  if (entry == nullptr || entry->boxed != python_kernel) return PyUnicode_FromString("");
  auto* kernel = static_cast<const PythonKernel*>(entry->context);
  PyObject* name = PyObject_GetAttrString(kernel->function, "__name__");
  if (name != nullptr) return name;
  PyErr_Clear();
  return PyUnicode_FromString("");
}

// The operator of an overload, or of a name such as "mine::add.Tensor", for which kernels may be
// registered before it is declared.
OperatorEntry* read_overload(PyObject* object) {
  if (const char* text = PyUnicode_Check(object) ? PyUnicode_AsUTF8(object) : nullptr) {
    std::string_view name(text);
    size_t dot = std::min(name.find('.', name.find("::")), name.size());
    std::string_view overload = name.substr(std::min(dot + 1, name.size()));
    OperatorEntry* op = Registry::get().lookup(name.substr(0, dot), overload);
    if (op != nullptr) return op;
    PyErr_Format(PyExc_KeyError, "expected a name that something is registered for, got %R",
                 object);
    return nullptr;
  }
  if (Py_TYPE(object) != &OverloadType) {
    if (PyErr_Occurred() == nullptr) {
      PyErr_Format(PyExc_TypeError, "expected an overload of lamella.ops, got %R", object);
    }
    return nullptr;
  }
  const lamella_operator* op = reinterpret_cast<PyPacket*>(object)->op;
  return entry_of(op);
}

bool append(PyObject* list, PyObject* owned) {
  Ref item(owned);
  return item && PyList_Append(list, item.get()) == 0;
}

// _dispatch_slots(overload): (key, function's name, way, where) of every run-time key.
PyObject* dispatch_slots(PyObject*, PyObject* object) {
  OperatorEntry* op = read_overload(object);
  if (op == nullptr) return nullptr;
  return guarded([&]() -> PyObject* {
    Ref list(PyList_New(0));
    for (uint16_t i = 0; list && i < LAMELLA_SLOTS; ++i) {
      auto key = static_cast<DispatchKey>(i);
      const char* name = lamella_dispatch_key_name(i);
      if (*name == 0) continue;
      Slot slot = Registry::get().slot(op, key);
      std::string where = slot.entry != nullptr ? slot.entry->where() : "";
      if (!append(list.get(),
                  Py_BuildValue("sNss", name, name_of(slot.entry), way_of(slot), where.c_str()))) {
        return nullptr;
      }
    }
    return list.release();
  });
}

// _dispatch_registrations(overload, all=False): (key, whether it is an alias, function's name,
// where, signature), the newest of each key, or all from the newest to the oldest, by key. The
// signature is that of a typed function of C++, else empty.
PyObject* dispatch_registrations(PyObject*, PyObject* args) {
  PyObject* object;
  int older = 0;
  if (!PyArg_ParseTuple(args, "O|p:_dispatch_registrations", &object, &older)) return nullptr;
  OperatorEntry* op = read_overload(object);
  if (op == nullptr) return nullptr;
  return guarded([&]() -> PyObject* {
    std::vector<std::shared_ptr<KernelEntry>> kernels;
    {
      std::lock_guard lock(Registry::get().mutex());
      for (const auto& [key, all] : op->kernels) {
        if (all.empty()) continue;
        kernels.insert(kernels.end(), all.begin(), older != 0 ? all.end() : std::next(all.begin()));
      }
    }
    Ref list(PyList_New(0));
    for (const auto& kernel : kernels) {
      auto key = static_cast<uint16_t>(kernel->key);
      PyObject* parts = Py_BuildValue(
          "sONss", lamella_dispatch_key_name(key), key >= LAMELLA_SLOTS ? Py_True : Py_False,
          name_of(kernel.get()), kernel->where().c_str(), kernel->signature.c_str());
      if (!list || !append(list.get(), parts)) return nullptr;
    }
    return list.release();
  });
}

// _dispatch_declared(name): whether a library declares it.
PyObject* dispatch_declared(PyObject*, PyObject* name) {
  OperatorEntry* op = PyUnicode_Check(name) ? read_overload(name) : nullptr;
  if (op == nullptr && PyErr_Occurred() != nullptr) PyErr_Clear();
  return PyBool_FromLong(op != nullptr && op->defined());
}

// _dispatch_undeclared(): the names that kernels are registered for and that no library declares.
PyObject* dispatch_undeclared(PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    std::lock_guard lock(Registry::get().mutex());
    Ref list(PyList_New(0));
    for (const OperatorEntry* op : Registry::get().entries()) {
      bool any = false;
      for (const auto& [key, all] : op->kernels) any = any || !all.empty();
      if (op->defined() || !any) continue;
      PyObject* name = PyUnicode_FromString(op->full_name().c_str());
      if (!list || !append(list.get(), name)) return nullptr;
    }
    return list.release();
  });
}

PyMethodDef functions[] = {
    {"_dispatch_slots", dispatch_slots, METH_O, nullptr},
    {"_dispatch_registrations", dispatch_registrations, METH_VARARGS, nullptr},
    {"_dispatch_declared", dispatch_declared, METH_O, nullptr},
    {"_dispatch_undeclared", dispatch_undeclared, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

int add_dispatch_table(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace lamella::python
