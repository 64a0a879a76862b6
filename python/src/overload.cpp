// The attributes of an operator's object in lamella.ops: names, schema, tags.
#include "lamella/abi/policy.h"
#include "lamella/dispatch/guards.h"
#include "lamella/dispatch/registry.h"
#include "lamella/layers/autograd/grad_mode.h"
#include "lamella/schema/parser.h"
#include "python/src/errors.h"
#include "python/src/op_facts.h"

namespace lamella::python {
namespace {

PyPacket* as_packet(PyObject* object) { return reinterpret_cast<PyPacket*>(object); }
OperatorEntry* entry_of(PyObject* self) {
  return const_cast<OperatorEntry*>(static_cast<const OperatorEntry*>(as_packet(self)->op));
}
const char* overload_of(PyObject* self) {
  const char* overload = as_packet(self)->op->overload;
  return overload[0] != 0 ? overload : "default";
}

PyObject* overload_name(PyObject* self, void*) { return PyUnicode_FromString(overload_of(self)); }
PyObject* dotted_name(PyObject* self, void*) {
  return PyUnicode_FromFormat("%U.%s", as_packet(self)->name, overload_of(self));
}
PyObject* operator_name(PyObject* self, void*) {
  return PyUnicode_FromString(as_packet(self)->qualified);
}
PyObject* short_name(PyObject* self, void*) { return Ref::borrow(as_packet(self)->name).release(); }
PyObject* name_space(PyObject* self, void*) {
  const char* name = as_packet(self)->qualified;
  return PyUnicode_FromStringAndSize(name, strstr(name, "::") - name);
}
PyObject* full_name(PyObject* self, PyObject*) {
  return guarded([&] { return PyUnicode_FromString(entry_of(self)->full_name().c_str()); });
}

// The packet that the overload belongs to.
PyObject* overload_packet(PyObject* self, void*) {
  Ref module(PyImport_ImportModule("lamella._ops"));
  Ref ops(module ? PyObject_GetAttrString(module.get(), "ops") : nullptr);
  Ref space(ops ? name_space(self, nullptr) : nullptr);
  Ref names(space ? PyObject_GetAttr(ops.get(), space.get()) : nullptr);
  return names ? PyObject_GetAttr(names.get(), as_packet(self)->name) : nullptr;
}

PyObject* overload_schema(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    OperatorEntry* entry = entry_of(self);
    std::string text;
    {
      std::lock_guard lock(Registry::get().mutex());
      Registry::get().schema(entry);
      text = entry->current->canonical;
    }
    Ref module(PyImport_ImportModule("lamella._schema"));
    return module ? PyObject_CallMethod(module.get(), "FunctionSchema", "s", text.c_str())
                  : nullptr;
  });
}

PyObject* overload_tags(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    std::vector<std::string> tags;
    {
      std::lock_guard lock(Registry::get().mutex());
      tags = entry_of(self)->tags;
    }
    Ref list(PyList_New(0));
    for (const std::string& tag : tags) {
      Ref text(PyUnicode_FromString(tag.c_str()));
      if (!list || !text || PyList_Append(list.get(), text.get()) != 0) return nullptr;
    }
    return list.release();
  });
}

PyObject* overload_policy(PyObject* self, PyObject* name) {
  const char* text = PyUnicode_AsUTF8(name);
  if (text == nullptr) return nullptr;
  const char* word = lamella_operator_policy(as_packet(self)->op, text);
  if (word == nullptr) Py_RETURN_NONE;
  return PyUnicode_FromString(word);
}

PyObject* is_view(PyObject* self, void*) {
  return guarded([&] { return PyBool_FromLong(Registry::get().schema(entry_of(self)).is_view()); });
}

PyObject* has_kernel(PyObject* self, PyObject* name) {
  const char* text = PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : nullptr;
  uint16_t key = 0;
  if (text == nullptr) {
    return PyErr_Format(PyExc_TypeError,
                        "has_kernel_for_dispatch_key: expected the name of a dispatch key, got %R",
                        name);
  }
  lamella_status status = lamella_dispatch_key_from_name(text, &key);
  if (status != LAMELLA_OK) return raise_status(status);
  return PyBool_FromLong(lamella_operator_has_kernel(entry_of(self), key));
}

// redispatch(keys, *args, **kwargs): the call with a given key set.
PyObject* redispatch(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  if (nargs < 1 || !PyLong_Check(args[0])) {
    PyErr_SetString(PyExc_TypeError, "redispatch: expected a DispatchKeySet as the first argument");
    return nullptr;
  }
  uint64_t keys = PyLong_AsUnsignedLongLong(args[0]);
  if (PyErr_Occurred() != nullptr) return nullptr;
  const ProgramTable* table = table_of(as_packet(self));
  if (table == nullptr) return nullptr;
  const Program& program = *table->programs[0];
  lamella_value values[64];
  for (bool numbers : {false, true}) {
    Frame frame;
    Match m = match(program, args + 1, nargs - 1, kwnames, numbers, frame, values);
    if (m == Match::kError) return nullptr;
    if (m == Match::kNo) continue;
    return invoke_with(program, values, frame, abi::masked(program.op, keys));
  }
  return raise_mismatch(*table, as_packet(self)->qualified, false, args + 1, nargs - 1, kwnames);
}

// ---- Dispatch keys ----

bool read_key(PyObject* name, DispatchKey* key) {
  const char* text = PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : nullptr;
  if (text == nullptr) {
    PyErr_Format(PyExc_TypeError, "expected the name of a dispatch key, got %R", name);
    return false;
  }
  uint16_t number = 0;
  lamella_status status = lamella_dispatch_key_from_name(text, &number);
  if (status != LAMELLA_OK) raise_status(status);
  *key = static_cast<DispatchKey>(number);
  return status == LAMELLA_OK;
}
PyObject* key_bits(PyObject*, PyObject* name) {
  DispatchKey key;
  if (!read_key(name, &key)) return nullptr;
  return PyLong_FromUnsignedLongLong(DispatchKeySet(key).raw_repr());
}
PyObject* functionality_bits(PyObject*, PyObject* name) {
  DispatchKey key;
  if (!read_key(name, &key)) return nullptr;
  return PyLong_FromUnsignedLongLong(DispatchKeySet(key).raw_repr() &
                                     ~lamella::detail::kBackendMask);
}
PyObject* after_autograd_keys(PyObject*, PyObject*) {
  return PyLong_FromUnsignedLongLong(after_autograd_keyset.raw_repr());
}
PyObject* key_set_text(PyObject*, PyObject* number) {
  uint64_t bits = PyLong_AsUnsignedLongLong(number);
  if (PyErr_Occurred() != nullptr) return nullptr;
  return guarded([&] {
    std::string text;
    // Names one key for each functionality, on its highest backend.
    for (uint64_t left = bits; (left & ~lamella::detail::kBackendMask) != 0;) {
      auto key = static_cast<DispatchKey>(lamella::detail::slot_of(left));
      std::string name = toString(key);
      if (text.find(name) == std::string::npos) text += (text.empty() ? "" : ", ") + name;
      left &= ~(uint64_t{1} << (63 - __builtin_clzll(left)));
    }
    return PyUnicode_FromString(text.c_str());
  });
}
PyObject* device_dispatch_key(PyObject*, PyObject* object) {
  Device device(kCPU);
  int known = device_from_object(object, &device);
  if (known < 0) return nullptr;
  uint64_t keys = known > 0 ? default_key_set(device.type(), true) : 0;
  if (keys == 0) return PyErr_Format(PyExc_RuntimeError, "expected a device, got %R", object);
  return PyUnicode_FromString(toString(static_cast<DispatchKey>(lamella::detail::slot_of(keys))));
}
// _has_computed_kernel(overload, key)
PyObject* has_computed_kernel(PyObject*, PyObject* args) {
  PyObject *self, *name;
  DispatchKey key;
  if (!PyArg_ParseTuple(args, "O!O", &OverloadType, &self, &name) || !read_key(name, &key)) {
    return nullptr;
  }
  return guarded([&] {
    SlotOrigin origin = Registry::get().slot(entry_of(self), key).origin;
    return PyBool_FromLong(origin == SlotOrigin::kKernel || origin == SlotOrigin::kAlias ||
                           origin == SlotOrigin::kFallback);
  });
}

// ---- Callers of operators ----

// The base of CustomOpDef: calls go to the operator without running Python code.
struct PyCaller {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyPacket* target;
};
PyTypeObject CallerType = {PyVarObject_HEAD_INIT(nullptr, 0)};
PyCaller* as_caller(PyObject* object) { return reinterpret_cast<PyCaller*>(object); }

PyObject* caller_call(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  PyPacket* target = as_caller(self)->target;
  if (target == nullptr) {
    PyErr_SetString(PyExc_RuntimeError, "expected an operator that is defined");
    return nullptr;
  }
  return call_packet(target, args, PyVectorcall_NARGS(nargsf), kwnames);
}
PyObject* caller_new(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* self = type->tp_alloc(type, 0);
  if (self != nullptr) as_caller(self)->vectorcall = caller_call;
  return self;
}
void caller_dealloc(PyObject* self) {
  Py_CLEAR(as_caller(self)->target);
  Py_TYPE(self)->tp_free(self);
}
PyObject* set_target(PyObject* self, PyObject* target) {
  if (Py_TYPE(target) != &OverloadType) {
    return PyErr_Format(PyExc_TypeError, "_set_target: expected an overload, got %R", target);
  }
  Py_INCREF(target);
  auto* old =
      reinterpret_cast<PyObject*>(std::exchange(as_caller(self)->target, as_packet(target)));
  Py_XDECREF(old);
  Py_RETURN_NONE;
}
PyMethodDef caller_methods[] = {{"_set_target", set_target, METH_O, nullptr},
                                {nullptr, nullptr, 0, nullptr}};

// _let_call(cls): lets a class written in Python inherit the vectorcall of its base.
PyObject* let_call(PyObject*, PyObject* object) {
  auto* type = reinterpret_cast<PyTypeObject*>(object);
  if (!PyType_Check(object) || !PyType_IsSubtype(type, &CallerType)) {
    return PyErr_Format(PyExc_TypeError, "_let_call: expected a subclass of _CallsOperator, got %R",
                        object);
  }
  type->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL;
  Py_RETURN_NONE;
}

// ---- Schemas in parts ----

struct ToObject {
  PyObject* operator()(std::monostate) { Py_RETURN_NONE; }
  PyObject* operator()(bool flag) { return PyBool_FromLong(flag); }
  PyObject* operator()(int64_t number) { return PyLong_FromLongLong(number); }
  PyObject* operator()(double number) { return PyFloat_FromDouble(number); }
  PyObject* operator()(const std::complex<double>& number) {
    return PyComplex_FromDoubles(number.real(), number.imag());
  }
  PyObject* operator()(const std::string& text) { return PyUnicode_FromString(text.c_str()); }
  template <class T>
  PyObject* operator()(const std::vector<T>& list) {
    Ref result(PyList_New(0));
    for (const auto& element : list) {
      Ref item((*this)(static_cast<T>(element)));
      if (!result || !item || PyList_Append(result.get(), item.get()) != 0) return nullptr;
    }
    return result.release();
  }
};

PyObject* alias_set(const std::vector<std::string>& names) { return ToObject()(names); }

// (name, type, has default, default, keyword-only, out, alias), alias: None or (before, after,
// written)
PyObject* argument_parts(const Argument& argument) {
  Ref alias(Ref::borrow(Py_None));
  if (const AliasInfo* info = argument.alias()) {
    alias = Ref(Py_BuildValue("NNO", alias_set(info->before), alias_set(info->after),
                              info->is_write ? Py_True : Py_False));
    if (!alias) return nullptr;
  }
  Ref value(Ref::borrow(Py_None));
  if (argument.default_value) value = Ref(std::visit(ToObject(), argument.default_value->value));
  if (!value) return nullptr;
  return Py_BuildValue("ssOOOOO", argument.name.c_str(), argument.type.str().c_str(),
                       argument.default_value ? Py_True : Py_False, value.get(),
                       argument.kwarg_only ? Py_True : Py_False,
                       argument.is_out() ? Py_True : Py_False, alias.get());
}
PyObject* list_parts(const std::vector<Argument>& arguments) {
  Ref list(PyList_New(0));
  for (const Argument& argument : arguments) {
    Ref parts(argument_parts(argument));
    if (!list || !parts || PyList_Append(list.get(), parts.get()) != 0) return nullptr;
  }
  return list.release();
}

// _schema_parts(text): (name, overload, arguments, returns, whether it writes)
PyObject* schema_parts(PyObject*, PyObject* object) {
  const char* text = PyUnicode_Check(object) ? PyUnicode_AsUTF8(object) : nullptr;
  if (text == nullptr) {
    return PyErr_Format(PyExc_TypeError, "_schema_parts: expected the text of a schema, got %R",
                        object);
  }
  return guarded([&] {
    FunctionSchema schema = parse_schema(text);
    return Py_BuildValue("ssNNO", schema.name.qualified_name().c_str(),
                         schema.name.overload_name.c_str(), list_parts(schema.arguments),
                         list_parts(schema.returns), schema.is_mutable() ? Py_True : Py_False);
  });
}

PyObject* has_tangent(PyObject*, PyObject* object) {
  return PyBool_FromLong(is_tensor(object) &&
                         (tensor_of(object)->flags & LAMELLA_TENSOR_TANGENT) != 0);
}

// _exclude_keys(bits, on): excludes functionalities on this thread; returns those that were not
// excluded before, to be passed to the call with False that includes them again.
PyObject* exclude_keys(PyObject*, PyObject* args) {
  unsigned long long bits = 0;
  int on = 0;
  if (!PyArg_ParseTuple(args, "Kp:_exclude_keys", &bits, &on)) return nullptr;
  bits &= ~uint64_t{lamella::detail::kBackendMask};
  if (on != 0) bits &= ~lamella_thread.excluded;
  lamella_thread.excluded =
      on != 0 ? lamella_thread.excluded | bits : lamella_thread.excluded & ~bits;
  return PyLong_FromUnsignedLongLong(bits);
}

// Calls the function that is the callable's `self` below autograd and without recording, so that
// only the backward of an operator's own derivative counts.
PyObject* call_below_autograd(PyObject* function, PyObject* const* args, Py_ssize_t count,
                              PyObject* names) {
  AutoDispatchBelowAutograd below;
  NoGradGuard no_grad;
  return PyObject_Vectorcall(function, args, static_cast<size_t>(count), names);
}
// _below_autograd(function): a callable that does so.
PyObject* below_autograd(PyObject*, PyObject* function) {
  static PyMethodDef call = {
      "kernel", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call_below_autograd)),
      METH_FASTCALL | METH_KEYWORDS, nullptr};
  return PyCFunction_New(&call, function);
}

// _thread_keys(): the key sets that guards of this thread include and exclude.
PyObject* thread_keys(PyObject*, PyObject*) {
  return Py_BuildValue("KK", static_cast<unsigned long long>(lamella_thread.included),
                       static_cast<unsigned long long>(lamella_thread.excluded));
}
// _set_thread_keys(included, excluded)
PyObject* set_thread_keys(PyObject*, PyObject* args) {
  unsigned long long included = 0, excluded = 0;
  if (!PyArg_ParseTuple(args, "KK:_set_thread_keys", &included, &excluded)) return nullptr;
  lamella_thread.included = included;
  lamella_thread.excluded = excluded & ~uint64_t{lamella::detail::kBackendMask};
  Py_RETURN_NONE;
}
// _add_keys(tensor, key set)
PyObject* add_keys(PyObject*, PyObject* args) {
  PyObject* tensor;
  unsigned long long keys = 0;
  if (!PyArg_ParseTuple(args, "O!K:_add_keys", &TensorType, &tensor, &keys)) return nullptr;
  tensor_of(tensor)->key_set |= keys;
  Py_RETURN_NONE;
}
// _tensor_keys(tensor): its key set.
PyObject* tensor_keys(PyObject*, PyObject* object) {
  if (!is_tensor(object)) {
    return PyErr_Format(PyExc_TypeError, "_tensor_keys: expected a tensor, got %R", object);
  }
  return PyLong_FromUnsignedLongLong(tensor_of(object)->key_set);
}
// _add_to_operator({name: member}): members of overloads written in Python.
PyObject* add_to_operator(PyObject*, PyObject* members) {
  if (PyDict_Update(OverloadType.tp_dict, members) != 0) return nullptr;
  PyType_Modified(&OverloadType);
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {{"_has_tangent", has_tangent, METH_O, nullptr},
                           {"_schema_parts", schema_parts, METH_O, nullptr},
                           {"_dispatch_key_bits", key_bits, METH_O, nullptr},
                           {"_dispatch_functionality_bits", functionality_bits, METH_O, nullptr},
                           {"_after_autograd_keys", after_autograd_keys, METH_NOARGS, nullptr},
                           {"_exclude_keys", exclude_keys, METH_VARARGS, nullptr},
                           {"_below_autograd", below_autograd, METH_O, nullptr},
                           {"_thread_keys", thread_keys, METH_NOARGS, nullptr},
                           {"_set_thread_keys", set_thread_keys, METH_VARARGS, nullptr},
                           {"_tensor_keys", tensor_keys, METH_O, nullptr},
                           {"_add_keys", add_keys, METH_VARARGS, nullptr},
                           {"_add_to_operator", add_to_operator, METH_O, nullptr},
                           {"_key_set_text", key_set_text, METH_O, nullptr},
                           {"_device_dispatch_key", device_dispatch_key, METH_O, nullptr},
                           {"_has_computed_kernel", has_computed_kernel, METH_VARARGS, nullptr},
                           {"_let_call", let_call, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

PyObject* overload_str(PyObject* self) {
  Ref space(name_space(self, nullptr));
  if (!space) return nullptr;
  if (as_packet(self)->op == nullptr) {
    return PyUnicode_FromFormat("%U.%U", space.get(), as_packet(self)->name);
  }
  return PyUnicode_FromFormat("%U.%U.%s", space.get(), as_packet(self)->name, overload_of(self));
}

PyGetSetDef overload_getset[] = {
    {"__name__", dotted_name, nullptr, nullptr, nullptr},
    {"__qualname__", dotted_name, nullptr, nullptr, nullptr},
    {"_operator_name", operator_name, nullptr, "The operator's name, with its namespace.", nullptr},
    {"_opname", short_name, nullptr, "The operator's name, without its namespace.", nullptr},
    {"_overloadname", overload_name, nullptr, "The overload's name, or 'default'.", nullptr},
    {"namespace", name_space, nullptr, "The operator's namespace.", nullptr},
    {"overloadpacket", overload_packet, nullptr, "The object of all overloads.", nullptr},
    {"_overloadpacket", overload_packet, nullptr, nullptr, nullptr},
    {"_schema", overload_schema, nullptr, "The schema: text with its parts.", nullptr},
    {"tags", overload_tags, nullptr, "Tags and policies, as they were defined.", nullptr},
    {"is_view", is_view, nullptr, "Whether a result shares memory with an argument.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMethodDef overload_methods[] = {
    {"redispatch", method(redispatch), METH_FASTCALL | METH_KEYWORDS,
     "redispatch(keys, *args, **kwargs): calls it with a key set."},
    {"name", full_name, METH_NOARGS, "The full name, such as aten::add.Tensor."},
    {"policy", overload_policy, METH_O,
     "The operator's value of a policy, or None: 'autocast', 'autocast.cuda', 'batching', "
     "'hlo'."},
    {"has_kernel_for_dispatch_key", has_kernel, METH_O,
     "Whether a kernel was registered for the dispatch key of that name."},
    {nullptr, nullptr, 0, nullptr}};

int add_overloads(PyObject* module) {
  PyTypeObject* type = &CallerType;
  type->tp_name = "lamella._C._CallsOperator";
  type->tp_basicsize = sizeof(PyCaller);
  type->tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_VECTORCALL;
  type->tp_vectorcall_offset = offsetof(PyCaller, vectorcall);
  type->tp_call = PyVectorcall_Call;
  type->tp_new = caller_new;
  type->tp_dealloc = caller_dealloc;
  type->tp_methods = caller_methods;
  if (PyType_Ready(type) != 0) return -1;
  Py_INCREF(type);
  if (PyModule_AddObject(module, "_CallsOperator", reinterpret_cast<PyObject*>(type)) != 0) {
    return -1;
  }
  if (add_dispatch_table(module) != 0) return -1;
  return PyModule_AddFunctions(module, functions);
}

}  // namespace lamella::python
