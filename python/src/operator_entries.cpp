// The contents of the table of operators, for the command `lamella` and for lamella.testing; and
// the switches of guarded memory.
#include <mutex>

#include "lamella/abi/autograd.h"
#include "lamella/abi/policy.h"
#include "lamella/dispatch/registry.h"
#include "lamella/layers/compliance/guarded_memory.h"
#include "python/src/errors.h"

namespace lamella::python {
namespace {

struct KernelFacts {
  std::string key;
  std::string file;
  uint32_t line;
  bool fallthrough;
  bool typed;
};
struct ArgumentFacts {
  std::string name;
  std::string type;
  std::string default_text;
  std::vector<std::string> before;  // alias sets
  std::vector<std::string> after;
  bool has_default = false;
  bool kwarg_only = false;
  bool write = false;
};
// Copied under the registry's lock, under which no Python code may run.
struct Facts {
  std::string schema, file;
  uint32_t line = 0;
  std::vector<std::string> tags;
  std::string doc;
  std::vector<ArgumentFacts> arguments, returns;
  std::vector<KernelFacts> kernels;
  std::vector<std::string> backends;  // those of CPU, CUDA and Meta that have a kernel
  std::vector<std::pair<const char*, std::string>> policies;
  bool has_derivative = false;
  bool differentiable = false;
  std::vector<int> differentiable_returns;
  std::string derivative_file;
  uint32_t derivative_line = 0;
};

std::string key_name(DispatchKey key) {
  return lamella_dispatch_key_name(static_cast<uint16_t>(key));
}

ArgumentFacts facts_of(const Argument& argument) {
  ArgumentFacts facts;
  facts.name = argument.name;
  facts.type = argument.type.str();
  facts.has_default = argument.default_value.has_value();
  if (facts.has_default) facts.default_text = argument.default_value->str();
  facts.kwarg_only = argument.kwarg_only;
  facts.write = argument.is_write();
  if (const AliasInfo* alias = argument.alias()) {
    facts.before = alias->before;
    facts.after = alias->after;
  }
  return facts;
}

Facts facts_of(OperatorEntry* op) {
  Registry& registry = Registry::get();
  std::lock_guard lock(registry.mutex());
  Facts facts;
  const FunctionSchema& schema = registry.schema(op);
  facts.schema = schema.str();
  facts.file = op->file;
  facts.line = op->line;
  facts.tags = op->tags;
  if (op->doc != nullptr) facts.doc = *op->doc;
  for (const Argument& argument : schema.arguments) facts.arguments.push_back(facts_of(argument));
  for (const Argument& result : schema.returns) facts.returns.push_back(facts_of(result));
  for (const auto& [key, list] : op->kernels) {
    for (const auto& kernel : list) {
      facts.kernels.push_back({key_name(key), kernel->file, kernel->line, kernel->fallthrough,
                               kernel->typed != nullptr});
    }
  }
  for (DispatchKey key : {DispatchKey::CPU, DispatchKey::CUDA, DispatchKey::Meta}) {
    SlotOrigin origin = registry.slot(op, key).origin;
    if (origin != SlotOrigin::kMissing && origin != SlotOrigin::kFallthrough) {
      facts.backends.push_back(key_name(key));
    }
  }
  for (const char* policy : {"autocast", "batching", "hlo"}) {
    const char* word = lamella_operator_policy(op, policy);
    if (word != nullptr) facts.policies.emplace_back(policy, word);
  }
  if (op->derivative != nullptr) {
    facts.has_derivative = true;
    facts.differentiable = (op->derivative->flags & LAMELLA_NOT_DIFFERENTIABLE) == 0;
    for (size_t i = 0; i < schema.returns.size() && i < 64; ++i) {
      if ((op->derivative->differentiable_returns >> i & 1) != 0) {
        facts.differentiable_returns.push_back(static_cast<int>(i));
      }
    }
    facts.derivative_file = op->derivative_file;
    facts.derivative_line = op->derivative_line;
  }
  return facts;
}

// Sets entries of a new dictionary; remembers whether one failed.
class Dict {
 public:
  Dict() : dict_(PyDict_New()) {}
  void set(const char* name, Ref value) {
    if (!dict_ || !value || PyDict_SetItemString(dict_.get(), name, value.get()) != 0) {
      dict_ = Ref();
    }
  }
  void set(const char* name, const std::string& text) {
    set(name, Ref(PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()))));
  }
  void set(const char* name, bool value) { set(name, Ref(PyBool_FromLong(value))); }
  void set(const char* name, uint32_t value) { set(name, Ref(PyLong_FromUnsignedLong(value))); }
  Ref take() { return std::move(dict_); }

 private:
  Ref dict_;
};

template <class T, class Make>
Ref list_of(const std::vector<T>& items, Make make) {
  Ref list(PyList_New(0));
  for (const T& item : items) {
    Ref made = make(item);
    if (!list || !made || PyList_Append(list.get(), made.get()) != 0) return Ref();
  }
  return list;
}
Ref texts(const std::vector<std::string>& items) {
  return list_of(items, [](const std::string& text) {
    return Ref(PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size())));
  });
}

Ref argument_dict(const ArgumentFacts& facts) {
  Dict dict;
  dict.set("name", facts.name);
  dict.set("type", facts.type);
  dict.set("default", facts.has_default ? Ref(PyUnicode_FromString(facts.default_text.c_str()))
                                        : Ref::borrow(Py_None));
  dict.set("kwarg_only", facts.kwarg_only);
  dict.set("write", facts.write);
  dict.set("before", texts(facts.before));
  dict.set("after", texts(facts.after));
  return dict.take();
}

// _operator_entry("aten::add", "Tensor"): a dictionary of all that is known about the operator.
PyObject* operator_entry(PyObject*, PyObject* args) {
  const char *qualified, *overload;
  if (!PyArg_ParseTuple(args, "ss:_operator_entry", &qualified, &overload)) return nullptr;
  return guarded([&]() -> PyObject* {
    OperatorEntry* op = Registry::get().find(qualified, overload);
    Registry::get().resolve(op);
    Facts facts = facts_of(op);
    Dict dict;
    dict.set("name", std::string(qualified));
    dict.set("overload", std::string(overload));
    dict.set("schema", facts.schema);
    dict.set("file", facts.file);
    dict.set("line", facts.line);
    dict.set("tags", texts(facts.tags));
    dict.set("doc", facts.doc);
    dict.set("arguments", list_of(facts.arguments, argument_dict));
    dict.set("returns", list_of(facts.returns, argument_dict));
    dict.set("kernels", list_of(facts.kernels, [](const KernelFacts& kernel) {
               Dict entry;
               entry.set("key", kernel.key);
               entry.set("file", kernel.file);
               entry.set("line", kernel.line);
               entry.set("fallthrough", kernel.fallthrough);
               entry.set("typed", kernel.typed);
               return entry.take();
             }));
    dict.set("backends", texts(facts.backends));
    Dict policies;
    for (const auto& [policy, word] : facts.policies) policies.set(policy, word);
    dict.set("policies", policies.take());
    if (facts.has_derivative) {
      Dict derivative;
      derivative.set("differentiable", facts.differentiable);
      derivative.set("returns", list_of(facts.differentiable_returns,
                                        [](int i) { return Ref(PyLong_FromLong(i)); }));
      derivative.set("file", facts.derivative_file);
      derivative.set("line", facts.derivative_line);
      dict.set("derivative", derivative.take());
    } else {
      dict.set("derivative", Ref::borrow(Py_None));
    }
    return dict.take().release();
  });
}

// _set_guarded_memory(on, fresh, margin, placement): the bytes that fill new memory and the margins
// around it, and where new memory is: 0 aligned, 1 right after a guard page, 2 right before one.
PyObject* set_guarded(PyObject*, PyObject* args) {
  int on;
  unsigned char fresh = 0, margin = 0, placement = 0;
  if (!PyArg_ParseTuple(args, "p|bbb:_set_guarded_memory", &on, &fresh, &margin, &placement)) {
    return nullptr;
  }
  return guarded([&]() -> PyObject* {
    LAMELLA_CHECK_VALUE(placement <= 2,
                        "_set_guarded_memory: expected 'placement' to be 0, 1 or 2, got ",
                        static_cast<int>(placement));
    compliance::set_guarded_memory(on != 0, fresh, margin,
                                   static_cast<compliance::GuardPlacement>(placement));
    Py_RETURN_NONE;
  });
}

// _guarded_memory(): blocks alive, their bytes, and how many blocks were damaged so far.
PyObject* look_at_guarded(PyObject*, PyObject*) {
  return guarded([&] {
    compliance::GuardedMemory memory = compliance::guarded_memory();
    return Py_BuildValue("LLL", static_cast<long long>(memory.blocks),
                         static_cast<long long>(memory.bytes),
                         static_cast<long long>(memory.damaged));
  });
}

PyObject* report_faults(PyObject*, PyObject* file_descriptor) {
  long number = PyLong_AsLong(file_descriptor);
  if (number == -1 && PyErr_Occurred() != nullptr) return nullptr;
  compliance::report_guard_faults(static_cast<int>(number));
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {{"_operator_entry", operator_entry, METH_VARARGS, nullptr},
                           {"_set_guarded_memory", set_guarded, METH_VARARGS, nullptr},
                           {"_guarded_memory", look_at_guarded, METH_NOARGS, nullptr},
                           {"_report_guard_faults", report_faults, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

int add_entries(PyObject* module) {
  PyObject* status = PyLong_FromLong(compliance::kGuardFaultStatus);
  if (PyModule_AddObject(module, "_GUARD_FAULT_STATUS", status) != 0) {
    Py_XDECREF(status);
    return -1;
  }
  return PyModule_AddFunctions(module, functions);
}

}  // namespace lamella::python
