// The table of one operator, as lamella.PythonDispatcher shows it.
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

OperatorEntry* read_overload(PyObject* object) {
  if (Py_TYPE(object) != &OverloadType) {
    PyErr_Format(PyExc_TypeError, "expected an overload of lamella.ops, got %R", object);
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

// _dispatch_registrations(overload): (key, whether it is an alias, function's name, where), the
// newest of each key, by key.
PyObject* dispatch_registrations(PyObject*, PyObject* object) {
  OperatorEntry* op = read_overload(object);
  if (op == nullptr) return nullptr;
  return guarded([&]() -> PyObject* {
    std::vector<std::shared_ptr<KernelEntry>> kernels;
    {
      std::lock_guard lock(Registry::get().mutex());
      for (const auto& [key, all] : op->kernels) {
        if (!all.empty()) kernels.push_back(all.front());
      }
    }
    Ref list(PyList_New(0));
    for (const auto& kernel : kernels) {
      auto key = static_cast<uint16_t>(kernel->key);
      PyObject* parts = Py_BuildValue("sONs", lamella_dispatch_key_name(key),
                                      key >= LAMELLA_SLOTS ? Py_True : Py_False,
                                      name_of(kernel.get()), kernel->where().c_str());
      if (!list || !append(list.get(), parts)) return nullptr;
    }
    return list.release();
  });
}

PyMethodDef functions[] = {{"_dispatch_slots", dispatch_slots, METH_O, nullptr},
                           {"_dispatch_registrations", dispatch_registrations, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

int add_dispatch_table(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace lamella::python
