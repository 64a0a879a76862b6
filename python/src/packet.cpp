// The callable objects of operators.
#include "python/src/packet.h"

#include <structmember.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "lamella/dispatch/registry.h"
#include "python/src/errors.h"
#include "python/src/python_kernel.h"
#include "python/src/torch_function.h"

namespace lamella::python {
namespace {

PyPacket* as_packet(PyObject* object) { return reinterpret_cast<PyPacket*>(object); }

PyObject* packet_vectorcall(PyObject* self, PyObject* const* args, size_t nargsf,
                            PyObject* kwnames) {
  return call_packet(as_packet(self), args, PyVectorcall_NARGS(nargsf), kwnames);
}

void packet_dealloc(PyObject* self) {
  PyPacket* packet = as_packet(self);
  if (PyType_IS_GC(Py_TYPE(self))) PyObject_GC_UnTrack(self);
  PyMem_Free(packet->qualified);
  Py_CLEAR(packet->name);
  Py_CLEAR(packet->module);
  Py_CLEAR(packet->doc);
  Py_CLEAR(packet->dict);
  Py_TYPE(self)->tp_free(self);
}

int packet_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(as_packet(self)->dict);
  return 0;
}
int packet_clear(PyObject* self) {
  Py_CLEAR(as_packet(self)->dict);
  return 0;
}

// The schemas, one a line.
std::string schemas(PyPacket* packet) {
  std::string text;
  const ProgramTable* table = table_of(packet);
  if (table == nullptr) {
    PyErr_Clear();
    return text;
  }
  std::vector<std::string> seen;
  for (const Program* program : table->programs) {
    std::string line = program->schema;
    line = std::string(program->op->name).substr(0, strcspn(program->op->name, ":")) + "::" + line;
    if (std::find(seen.begin(), seen.end(), line) != seen.end()) continue;
    seen.push_back(line);
    if (!text.empty()) text += '\n';
    text += line;
  }
  return text;
}

PyObject* packet_repr(PyObject* self) {
  PyPacket* packet = as_packet(self);
  if (Py_TYPE(self) == &FunctionType_) {
    return PyUnicode_FromFormat("<function %U.%U>", packet->module, packet->name);
  }
  if (Py_TYPE(self) == &MethodType_) {
    return PyUnicode_FromFormat("<method '%U' of 'lamella.Tensor' objects>", packet->name);
  }
  return guarded([&] {
    std::string text = std::string("<operator ") + packet->qualified;
    if (packet->op != nullptr && packet->op->overload[0] != 0) {
      text += std::string(".") + packet->op->overload;
    }
    std::string lines = schemas(packet);
    for (size_t at = 0; (at = lines.find('\n', at)) != std::string::npos; at += 3) {
      lines.replace(at, 1, "\n  ");
    }
    if (!lines.empty()) text += "\n  " + lines;
    return PyUnicode_FromString((text + ">").c_str());
  });
}

PyObject* packet_doc(PyObject* self, void*) {
  if (as_packet(self)->doc != nullptr) {
    Py_INCREF(as_packet(self)->doc);
    return as_packet(self)->doc;
  }
  return guarded([&]() -> PyObject* {
    std::string text = schemas(as_packet(self));
    Ref module(PyImport_ImportModule("lamella._docs"));
    if (!module) return nullptr;
    return PyObject_CallMethod(module.get(), "_help", "ss", as_packet(self)->qualified,
                               text.c_str());
  });
}
// __signature__, which inspect.signature() reads.
PyObject* packet_signature(PyObject* self, void*) {
  Ref module(PyImport_ImportModule("lamella._docs"));
  if (!module) return nullptr;
  bool one = Py_TYPE(self) == &OverloadType && as_packet(self)->op != nullptr;
  return PyObject_CallMethod(module.get(), "_signature", "sz", as_packet(self)->qualified,
                             one ? as_packet(self)->op->overload : nullptr);
}
int packet_set_doc(PyObject* self, PyObject* doc, void*) {
  Py_XINCREF(doc);
  PyObject* old = std::exchange(as_packet(self)->doc, doc);
  Py_XDECREF(old);
  return 0;
}
PyObject* packet_name(PyObject* self, void*) {
  Py_INCREF(as_packet(self)->name);
  return as_packet(self)->name;
}
PyObject* packet_qualname(PyObject* self, void*) {
  if (Py_TYPE(self) == &MethodType_) {
    return PyUnicode_FromFormat("Tensor.%U", as_packet(self)->name);
  }
  return packet_name(self, nullptr);
}
PyObject* packet_module(PyObject* self, void*) {
  Py_INCREF(as_packet(self)->module);
  return as_packet(self)->module;
}
PyObject* packet_qualified(PyObject* self, void*) {
  return PyUnicode_FromString(as_packet(self)->qualified);
}
PyObject* packet_objclass(PyObject*, void*) {
  Py_INCREF(&TensorType);
  return reinterpret_cast<PyObject*>(&TensorType);
}
// Pickles by name, as functions do.
PyObject* packet_reduce(PyObject* self, PyObject*) {
  if (Py_TYPE(self) == &MethodType_) {
    PyObject* function = PyDict_GetItemString(PyEval_GetBuiltins(), "getattr");
    return Py_BuildValue("O(OO)", function, &TensorType, as_packet(self)->name);
  }
  if (Py_TYPE(self) == &FunctionType_) return packet_name(self, nullptr);
  Ref extension(PyImport_ImportModule("lamella._C"));
  if (!extension) return nullptr;
  Ref maker(PyObject_GetAttrString(extension.get(), "_operator"));
  if (!maker) return nullptr;
  if (as_packet(self)->op == nullptr) {
    return Py_BuildValue("O(s)", maker.get(), as_packet(self)->qualified);
  }
  return Py_BuildValue("O(ss)", maker.get(), as_packet(self)->qualified,
                       as_packet(self)->op->overload);
}

PyObject* method_get(PyObject* self, PyObject* object, PyObject*) {
  if (object == nullptr || object == Py_None) {
    Py_INCREF(self);
    return self;
  }
  return PyMethod_New(self, object);
}

std::vector<std::string> overload_names(PyPacket* packet) {
  std::vector<std::string> names;
  for (OperatorEntry* entry : Registry::get().overloads(packet->qualified)) {
    names.push_back(entry->overload_storage.empty() ? "default" : entry->overload_storage);
  }
  return names;
}

PyObject* packet_overloads(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    std::vector<std::string> names = overload_names(as_packet(self));
    Ref list(PyList_New(0));
    if (!list) return nullptr;
    for (const std::string& name : names) {
      Ref text(PyUnicode_FromString(name.c_str()));
      if (!text || PyList_Append(list.get(), text.get()) != 0) return nullptr;
    }
    return list.release();
  });
}

PyObject* make_overload(const char* qualified, const char* overload) {
  return guarded([&]() -> PyObject* {
    const lamella_operator* op = Registry::get().find(
        qualified, strcmp(overload, "default") == 0 ? std::string_view() : overload);
    OpFacts* facts = bare_facts_of(op);
    return facts != nullptr ? Ref::borrow(facts->overload).release() : nullptr;
  });
}

// lamella.ops.aten.add.Tensor: made at the first access, then an ordinary attribute.
PyObject* packet_getattro(PyObject* self, PyObject* name) {
  PyObject* found = PyObject_GenericGetAttr(self, name);
  if (found != nullptr || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
  const char* text = PyUnicode_AsUTF8(name);
  if (text == nullptr || strncmp(text, "__", 2) == 0) return nullptr;
  PyErr_Clear();
  bool known = guarded(
      [&] {
        std::vector<std::string> names = overload_names(as_packet(self));
        return std::find(names.begin(), names.end(), text) != names.end();
      },
      false);
  if (PyErr_Occurred() != nullptr) return nullptr;
  if (!known) {
    return PyErr_Format(PyExc_AttributeError, "operator '%s' has no overload '%s'",
                        as_packet(self)->qualified, text);
  }
  Ref made(make_overload(as_packet(self)->qualified, text));
  if (!made || PyObject_GenericSetAttr(self, name, made.get()) != 0) return nullptr;
  return made.release();
}

PyObject* packet_dir(PyObject* self, PyObject*) {
  Ref names(packet_overloads(self, nullptr));
  if (!names) return nullptr;
  for (const char* own : {"overloads", "__name__", "__doc__"}) {
    Ref text(PyUnicode_FromString(own));
    if (!text || PyList_Append(names.get(), text.get()) != 0) return nullptr;
  }
  return names.release();
}

PyGetSetDef function_getset[] = {{"__doc__", packet_doc, packet_set_doc, nullptr, nullptr},
                                 {"__signature__", packet_signature, nullptr, nullptr, nullptr},
                                 {"__name__", packet_name, nullptr, nullptr, nullptr},
                                 {"__qualname__", packet_qualname, nullptr, nullptr, nullptr},
                                 {"__module__", packet_module, nullptr, nullptr, nullptr},
                                 {"_operator_name", packet_qualified, nullptr,
                                  "The operator's name, with its namespace.", nullptr},
                                 {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyGetSetDef method_getset[] = {{"__doc__", packet_doc, packet_set_doc, nullptr, nullptr},
                               {"__signature__", packet_signature, nullptr, nullptr, nullptr},
                               {"__name__", packet_name, nullptr, nullptr, nullptr},
                               {"__qualname__", packet_qualname, nullptr, nullptr, nullptr},
                               {"__objclass__", packet_objclass, nullptr, nullptr, nullptr},
                               {"_operator_name", packet_qualified, nullptr,
                                "The operator's name, with its namespace.", nullptr},
                               {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyGetSetDef packet_getset[] = {{"__doc__", packet_doc, packet_set_doc, nullptr, nullptr},
                               {"__signature__", packet_signature, nullptr, nullptr, nullptr},
                               {"__name__", packet_name, nullptr, nullptr, nullptr},
                               {"__module__", packet_module, nullptr, nullptr, nullptr},
                               {"_operator_name", packet_qualified, nullptr,
                                "The operator's name, with its namespace.", nullptr},
                               {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMethodDef plain_methods[] = {{"__reduce__", packet_reduce, METH_NOARGS, nullptr},
                               {nullptr, nullptr, 0, nullptr}};
PyMethodDef packet_methods[] = {
    {"__reduce__", packet_reduce, METH_NOARGS, nullptr},
    {"overloads", packet_overloads, METH_NOARGS, "The names of all overloads."},
    {"__dir__", packet_dir, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

// Adds the attributes that both kinds of packets share to the base type.
int add_common(PyTypeObject* type) {
  static PyGetSetDef common[] = {{"__doc__", packet_doc, packet_set_doc, nullptr, nullptr},
                                 {"__signature__", packet_signature, nullptr, nullptr, nullptr},
                                 {"__module__", packet_module, nullptr, nullptr, nullptr},
                                 {nullptr, nullptr, nullptr, nullptr, nullptr}};
  for (PyGetSetDef* def = common; def->name != nullptr; ++def) {
    Ref made(PyDescr_NewGetSet(type, def));
    if (!made || PyDict_SetItemString(type->tp_dict, def->name, made.get()) != 0) return -1;
  }
  static PyMethodDef reduce = {"__reduce__", packet_reduce, METH_NOARGS, nullptr};
  Ref method(PyDescr_NewMethod(type, &reduce));
  return method ? PyDict_SetItemString(type->tp_dict, "__reduce__", method.get()) : -1;
}

int ready(PyTypeObject* type, const char* name, PyGetSetDef* getset, PyMethodDef* methods) {
  type->tp_name = name;
  type->tp_basicsize = sizeof(PyPacket);
  type->tp_dealloc = packet_dealloc;
  type->tp_vectorcall_offset = offsetof(PyPacket, vectorcall);
  type->tp_call = PyVectorcall_Call;
  type->tp_repr = packet_repr;
  type->tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL;
  type->tp_getset = getset;
  type->tp_methods = methods;
  if (type == &MethodType_) {
    type->tp_flags |= Py_TPFLAGS_METHOD_DESCRIPTOR;
    type->tp_descr_get = method_get;
  }
  if (type == &PacketType) {
    type->tp_getattro = packet_getattro;
    type->tp_dictoffset = offsetof(PyPacket, dict);
    type->tp_flags |= Py_TPFLAGS_HAVE_GC;
    type->tp_traverse = packet_traverse;
    type->tp_clear = packet_clear;
    type->tp_free = PyObject_GC_Del;
  }
  if (type == &PacketType || type == &OverloadType) type->tp_str = overload_str;
  if (PyType_Ready(type) != 0) return -1;
  return type == &OverloadType ? add_common(type) : 0;
}

// _operator("aten::add") or _operator("aten::add", "Tensor").
PyObject* operator_object(PyObject*, PyObject* args) {
  const char* qualified;
  const char* overload = nullptr;
  if (!PyArg_ParseTuple(args, "s|s", &qualified, &overload)) return nullptr;
  if (strstr(qualified, "::") == nullptr) {
    return PyErr_Format(PyExc_ValueError, "expected a name like 'aten::add', got '%s'", qualified);
  }
  if (overload != nullptr) return make_overload(qualified, overload[0] != 0 ? overload : "default");
  PyPacket* packet =
      make_packet(&PacketType, qualified, strstr(qualified, "::") + 2, "lamella.ops");
  if (packet != nullptr && table_of(packet) == nullptr) Py_CLEAR(packet);
  return reinterpret_cast<PyObject*>(packet);
}

// _operator_names(): every defined operator as (name, overload).
PyObject* operator_names(PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    Ref list(PyList_New(0));
    for (OperatorEntry* entry : Registry::get().entries()) {
      if (!entry->defined()) continue;
      Ref pair(Py_BuildValue("ss", entry->name_storage.c_str(), entry->overload_storage.c_str()));
      if (!pair || PyList_Append(list.get(), pair.get()) != 0) return nullptr;
    }
    return list.release();
  });
}

// _function("aten::add", "add", "lamella"): a plain function of an operator.
PyObject* function_object(PyObject*, PyObject* args) {
  const char *qualified, *name, *module;
  if (!PyArg_ParseTuple(args, "sss", &qualified, &name, &module)) return nullptr;
  return reinterpret_cast<PyObject*>(make_packet(&FunctionType_, qualified, name, module));
}

// Called for calls of functions and methods that raise TypeError, with (name, is_method, args,
// kwargs); returns None, or the arguments (args, kwargs) to call with instead.
PyObject* rewriter = nullptr;

// _rewrite_failed_calls(rewriter): None removes it.
PyObject* set_rewriter(PyObject*, PyObject* value) {
  PyObject* old =
      std::exchange(rewriter, value == Py_None ? nullptr : Ref::borrow(value).release());
  Py_XDECREF(old);
  Py_RETURN_NONE;
}

// Ends a call that raised TypeError: with the result of the call with the rewriter's arguments, or
// with the same error.
PyObject* rewritten_call(PyPacket* packet, PyObject* const* args, Py_ssize_t nargs,
                         PyObject* kwnames) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  Ref asked = Ref::borrow(rewriter), positional(PyTuple_New(nargs)), named(PyDict_New());
  bool made = positional && named;
  for (Py_ssize_t i = 0; made && i < nargs; ++i) {
    PyTuple_SET_ITEM(positional.get(), i, Ref::borrow(args[i]).release());
  }
  const Py_ssize_t keywords = kwnames != nullptr ? PyTuple_GET_SIZE(kwnames) : 0;
  for (Py_ssize_t k = 0; made && k < keywords; ++k) {
    made = PyDict_SetItem(named.get(), PyTuple_GET_ITEM(kwnames, k), args[nargs + k]) == 0;
  }
  Ref answer(made ? PyObject_CallFunction(asked.get(), "OOOO", packet->name,
                                          packet->is_method ? Py_True : Py_False, positional.get(),
                                          named.get())
                  : nullptr);
  if (answer && answer.get() == Py_None) {
    PyErr_Restore(type, value, traceback);
    return nullptr;
  }
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
  PyObject *new_args, *new_kwargs;
  if (!answer || !PyArg_ParseTuple(answer.get(), "O!O!", &PyTuple_Type, &new_args, &PyDict_Type,
                                   &new_kwargs)) {
    return nullptr;
  }
  return PyObject_Call(reinterpret_cast<PyObject*>(packet), new_args, new_kwargs);
}

PyMethodDef functions[] = {{"_operator", operator_object, METH_VARARGS, nullptr},
                           {"_operator_names", operator_names, METH_NOARGS, nullptr},
                           {"_function", function_object, METH_VARARGS, nullptr},
                           {"_rewrite_failed_calls", set_rewriter, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

PyTypeObject FunctionType_ = {PyVarObject_HEAD_INIT(nullptr, 0)};
PyTypeObject MethodType_ = {PyVarObject_HEAD_INIT(nullptr, 0)};
PyTypeObject PacketType = {PyVarObject_HEAD_INIT(nullptr, 0)};
PyTypeObject OverloadType = {PyVarObject_HEAD_INIT(nullptr, 0)};

PyPacket* make_packet(PyTypeObject* type, const char* qualified, const char* name,
                      const char* module) {
  PyObject* object = type->tp_alloc(type, 0);
  if (object == nullptr) return nullptr;
  PyPacket* packet = as_packet(object);
  packet->vectorcall = packet_vectorcall;
  new (&packet->table) std::atomic<const ProgramTable*>(nullptr);
  new (&packet->generation) std::atomic<uint64_t>(0);
  packet->op = nullptr;
  packet->doc = nullptr;
  packet->dict = nullptr;
  packet->is_method = type == &MethodType_;
  packet->module = nullptr;
  packet->qualified = static_cast<char*>(PyMem_Malloc(strlen(qualified) + 1));
  if (packet->qualified != nullptr) strcpy(packet->qualified, qualified);
  packet->name = PyUnicode_InternFromString(name);
  packet->module = PyUnicode_InternFromString(module);
  if (packet->qualified == nullptr || packet->name == nullptr || packet->module == nullptr) {
    Py_DECREF(object);
    return nullptr;
  }
  return packet;
}

const ProgramTable* refresh_table(PyPacket* packet) {
  return guarded(
      [&]() -> const ProgramTable* {
        const uint64_t generation = operators_generation();
        const ProgramTable* table =
            packet->op != nullptr ? make_table(packet->op) : make_table(packet->qualified);
        if (table == nullptr) {
          // Throws an error that lists similar names.
          Registry::get().find(packet->qualified, "");
          PyErr_Format(PyExc_RuntimeError, "%s: has no overload that Python can call",
                       packet->qualified);
          return nullptr;
        }
        packet->table.store(table, std::memory_order_release);
        packet->generation.store(generation, std::memory_order_relaxed);
        return table;
      },
      static_cast<const ProgramTable*>(nullptr));
}

PyObject* call_packet(PyPacket* packet, PyObject* const* args, Py_ssize_t nargs,
                      PyObject* kwnames) {
  const ProgramTable* table = table_of(packet);
  if (table == nullptr) [[unlikely]]
    return nullptr;
  if (table->facts != nullptr && table->facts->has_python_kernel.load(std::memory_order_relaxed))
      [[unlikely]] {
    PyObject* result;
    if (call_direct(*table->facts, args, nargs, kwnames, &result)) return result;
  }
  if (torch_function_on) [[unlikely]] {
    auto* self = reinterpret_cast<PyObject*>(packet);
    const bool named = Py_TYPE(self) == &FunctionType_ || packet->is_method;
    PyObject* result;
    if (named && ask_arguments(self, args, nargs, kwnames, &result)) return result;
  }
  if (packet->is_method && (nargs == 0 || !is_tensor(args[0]))) [[unlikely]] {
    return PyErr_Format(PyExc_TypeError, "Tensor.%U: expected a Tensor to call it on, got %s",
                        packet->name, nargs == 0 ? "nothing" : Py_TYPE(args[0])->tp_name);
  }
  // Points into the name, which is a compact string.
  PyObject* result = call_table(*table, static_cast<const char*>(PyUnicode_DATA(packet->name)),
                                packet->is_method, args, nargs, kwnames);
  if (result == nullptr && rewriter != nullptr && PyErr_ExceptionMatches(PyExc_TypeError) &&
      (Py_TYPE(packet) == &FunctionType_ || packet->is_method)) [[unlikely]] {
    return rewritten_call(packet, args, nargs, kwnames);
  }
  // Operators of lamella.ops accept subclasses; after a TypeError, objects that are not tensors may
  // handle the call.
  if (result == nullptr && torch_function_on && PyErr_ExceptionMatches(PyExc_TypeError) &&
      (Py_TYPE(packet) == &PacketType || Py_TYPE(packet) == &OverloadType)) [[unlikely]] {
    PyObject *type, *value, *traceback, *answer;
    PyErr_Fetch(&type, &value, &traceback);
    if (ask_arguments(reinterpret_cast<PyObject*>(packet), args, nargs, kwnames, &answer)) {
      Py_XDECREF(type);
      Py_XDECREF(value);
      Py_XDECREF(traceback);
      return answer;
    }
    PyErr_Restore(type, value, traceback);
  }
  // Functions and methods return tuples of tensors, as PyTorch's do; lamella.ops keeps the list.
  if (result != nullptr && PyList_CheckExact(result) && Py_TYPE(packet) != &PacketType &&
      Py_TYPE(packet) != &OverloadType) [[unlikely]] {
    PyObject* tuple = PyList_AsTuple(result);
    Py_DECREF(result);
    return tuple;
  }
  return result;
}

int add_packets(PyObject* module) {
  if (ready(&FunctionType_, "lamella._C.Function", function_getset, plain_methods) != 0 ||
      ready(&MethodType_, "lamella._C.Method", method_getset, plain_methods) != 0 ||
      ready(&PacketType, "lamella._C.OperatorPacket", packet_getset, packet_methods) != 0 ||
      ready(&OverloadType, "lamella._C.OperatorOverload", overload_getset, overload_methods) != 0 ||
      add_overloads(module) != 0) {
    return -1;
  }
  return PyModule_AddFunctions(module, functions);
}

}  // namespace lamella::python
