// The key Python: modes and tensor subclasses with __torch_dispatch__.
// Note [The key Python] in lamella/layers/python_key/python_key.h.
#include "lamella/layers/python_key/python_key.h"

#include <cstdlib>

#include "lamella/core/detach_hook.h"
#include "lamella/core/tensor_impl.h"
#include "lamella/core/version_counter.h"
#include "lamella/dispatch/boxed_tensors.h"
#include "lamella/dispatch/guards.h"
#include "python/src/autograd.h"
#include "python/src/errors.h"
#include "python/src/gil.h"
#include "python/src/op_facts.h"

namespace lamella::python {
namespace {

using python_key::kAbove;
using python_key::kBit;

PyObject* name_dispatch = nullptr;   // "__torch_dispatch__", interned
PyObject* plain_dispatch = nullptr;  // Tensor's own attribute of that name
PyObject* no_types = nullptr;        // ()
// Overload -> function of (args, kwargs) that gives the call which handlers see instead. Or NULL.
PyObject* shown_forms = nullptr;

// ---- Modes ----

// The modes of a thread, the newest last; owned. Freed with the last mode, as destructors of
// thread-local objects would run after the interpreter's end.
struct Modes {
  PyObject** items;
  Py_ssize_t count;
  Py_ssize_t capacity;
  Py_ssize_t disabled;  // number of guards that disable all handlers
};
thread_local Modes modes = {};

void renew_thread_keys() {
  bool on = modes.count > 0 && modes.disabled == 0;
  lamella_thread.included = on ? lamella_thread.included | kBit : lamella_thread.included & ~kBit;
}

bool push_mode(PyObject* mode) {
  if (modes.count == modes.capacity) {
    Py_ssize_t capacity = modes.capacity * 2 + 4;
    auto** more = static_cast<PyObject**>(
        realloc(modes.items, static_cast<size_t>(capacity) * sizeof(PyObject*)));
    if (more == nullptr) {
      PyErr_NoMemory();
      return false;
    }
    modes.items = more;
    modes.capacity = capacity;
  }
  Py_INCREF(mode);
  modes.items[modes.count++] = mode;
  renew_thread_keys();
  return true;
}
// A new reference; there must be one.
PyObject* pop_mode() {
  PyObject* mode = modes.items[--modes.count];
  renew_thread_keys();
  return mode;
}

// Removes the newest mode while its own handler runs.
class WithoutNewest {
 public:
  WithoutNewest() : mode_(pop_mode()) {}
  ~WithoutNewest() {
    // The array has room for it, so that this cannot fail.
    if (!push_mode(mode_)) PyErr_Clear();
    Py_DECREF(mode_);
  }
  WithoutNewest(const WithoutNewest&) = delete;
  WithoutNewest& operator=(const WithoutNewest&) = delete;
  PyObject* mode() const { return mode_; }

 private:
  PyObject* mode_;
};

PyObject* push_mode_function(PyObject*, PyObject* mode) {
  if (!ensure_python_key()) return nullptr;
  if (!push_mode(mode)) return nullptr;
  Py_RETURN_NONE;
}
PyObject* pop_mode_function(PyObject*, PyObject*) {
  if (modes.count == 0) {
    PyErr_SetString(PyExc_RuntimeError, "_pop_mode: expected a mode to be on, got none");
    return nullptr;
  }
  return pop_mode();
}
PyObject* mode_count(PyObject*, PyObject*) { return PyLong_FromSsize_t(modes.count); }
PyObject* mode_at(PyObject*, PyObject* number) {
  Py_ssize_t i = PyLong_AsSsize_t(number);
  if (i == -1 && PyErr_Occurred() != nullptr) return nullptr;
  if (i < 0 || i >= modes.count) {
    return PyErr_Format(PyExc_IndexError, "_mode_at: expected an index below %zd, got %zd",
                        modes.count, i);
  }
  return Ref::borrow(modes.items[i]).release();
}
PyObject* disable_handlers(PyObject*, PyObject* change) {
  long by = PyLong_AsLong(change);
  if (by == -1 && PyErr_Occurred() != nullptr) return nullptr;
  modes.disabled += by;
  renew_thread_keys();
  Py_RETURN_NONE;
}

// ---- Calls ----

// Objects whose classes have handlers, in the order in which they are asked: a class before those
// it derives from, otherwise from left to right. Borrowed.
class Handlers {
 public:
  void see(lamella_tensor* tensor) {
    if (tensor == nullptr || (tensor->key_set & kBit) == 0) return;
    auto* object = static_cast<PyObject*>(tensor->python_object);
    if (object == nullptr || is_exact_tensor(object)) return;
    PyTypeObject* type = Py_TYPE(object);
    size_t at = objects_.size();
    for (size_t i = objects_.size(); i-- > 0;) {
      if (Py_TYPE(objects_[i]) == type) return;
      if (PyType_IsSubtype(type, Py_TYPE(objects_[i]))) at = i;
    }
    if (has_dispatch(type)) objects_.insert(objects_.begin() + static_cast<Py_ssize_t>(at), object);
  }
  void see(const lamella_value& value) {
    if (value.tag == LAMELLA_TENSOR) {
      see(value.as.tensor);
    } else if (value.tag == LAMELLA_TENSOR_LIST) {
      auto* list = static_cast<lamella_tensor* const*>(value.as.pointer);
      for (uint32_t i = 0; i < value.size; ++i) see(list[i]);
    }
  }
  bool empty() const { return objects_.empty(); }
  const std::vector<PyObject*>& objects() const { return objects_; }
  // A new tuple of their types.
  Ref types() const {
    if (objects_.empty()) return Ref::borrow(no_types);
    Ref tuple(PyTuple_New(static_cast<Py_ssize_t>(objects_.size())));
    for (size_t i = 0; tuple && i < objects_.size(); ++i) {
      auto* type = reinterpret_cast<PyObject*>(Py_TYPE(objects_[i]));
      Py_INCREF(type);
      PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), type);
    }
    return tuple;
  }

 private:
  std::vector<PyObject*> objects_;
};

bool lacks_memory(const lamella_tensor* t) {
  return t != nullptr && (t->flags & LAMELLA_TENSOR_WRAPPER) != 0;
}
lamella_status fail_wrapper(const lamella_operator* op, lamella_tensor* tensor) {
  auto* object = static_cast<PyObject*>(tensor->python_object);
  std::string text = std::string(op->name) + ": expected tensors with memory, got a " +
                     (object != nullptr ? Py_TYPE(object)->tp_name : "wrapper") +
                     ", which only its __torch_dispatch__ can serve, and that is off";
  return lamella_fail(LAMELLA_ERROR, text.data(), text.size());
}
lamella_tensor* find_wrapper(const lamella_operator* op, const lamella_value* arguments) {
  lamella_tensor* found = nullptr;
  for (uint32_t i = 0; i < op->argument_count; ++i) {
    each_tensor(arguments[i], [&](lamella_tensor* t) {
      if (found == nullptr && lacks_memory(t) && (t->key_set & kBit) != 0) found = t;
    });
  }
  return found;
}

// The rule of an operator for a class; borrowed, or NULL. Derived classes do not inherit rules.
PyObject* rule_for(const OpFacts& facts, PyObject* type) {
  return facts.rules != nullptr ? PyDict_GetItem(facts.rules, type) : nullptr;
}

// `first`: the argument that a rule gets as `self` or `cls`.
PyObject* ask_rule(PyObject* rule, PyObject* first, PyObject* func, PyObject* types, PyObject* args,
                   PyObject* kwargs) {
  PyObject* stack[] = {first, func, types, args, kwargs};
  return call_vector(rule, stack, 5, nullptr);
}

PyObject* ask(PyObject* handler, PyObject* func, PyObject* types, PyObject* args,
              PyObject* kwargs) {
  PyObject* stack[] = {handler, func, types, args, kwargs};
  return call_vector_method(name_dispatch, stack, 5 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr);
}

// The call that handlers see: of the operator itself, or the one that shown_forms has for it, a
// tuple of another overload and arguments, for handlers that know only that overload.
bool show(Ref* func, Ref* args, Ref* kwargs) {
  bool has_forms = shown_forms != nullptr && shown_forms != Py_None;
  PyObject* form = has_forms ? PyDict_GetItem(shown_forms, func->get()) : nullptr;
  if (form == nullptr) return true;
  PyObject* stack[] = {args->get(), kwargs->get()};
  Ref shown(call_vector(form, stack, 2, nullptr));
  if (!shown || shown.get() == Py_None) return static_cast<bool>(shown);
  PyObject *other, *its_args, *its_kwargs;
  if (!PyArg_ParseTuple(shown.get(), "OO!O!", &other, &PyTuple_Type, &its_args, &PyDict_Type,
                        &its_kwargs)) {
    return false;
  }
  *func = Ref::borrow(other);
  *args = Ref::borrow(its_args);
  *kwargs = Ref::borrow(its_kwargs);
  return true;
}

// The error of a call for which all handlers returned NotImplemented.
lamella_status fail_unknown(PyObject* func, PyObject* mode, const Handlers& handlers) {
  Ref name(PyObject_Str(func));
  Ref asked(PyList_New(0));
  if (!name || !asked) return keep_python_error();
  if (mode != nullptr &&
      PyList_Append(asked.get(), reinterpret_cast<PyObject*>(Py_TYPE(mode))) != 0) {
    return keep_python_error();
  }
  for (PyObject* object : handlers.objects()) {
    if (PyList_Append(asked.get(), reinterpret_cast<PyObject*>(Py_TYPE(object))) != 0) {
      return keep_python_error();
    }
  }
  PyErr_Format(PyExc_TypeError,
               "%U: expected some __torch_dispatch__ to know it, got NotImplemented from all of %R",
               name.get(), asked.get());
  return keep_python_error();
}

KnownOperator detach{"aten::detach", ""};

// The kernel of the key.
lamella_status run(const lamella_kernel*, const lamella_operator* op, uint64_t key_set,
                   const lamella_value* arguments, lamella_value* returns) {
  GilScope gil;
  try {
    uint64_t below = abi::masked(op, key_set & (kBit - 1));
    Handlers handlers;
    bool off = modes.disabled != 0;
    for (uint32_t i = 0; !off && i < op->argument_count; ++i) handlers.see(arguments[i]);
    bool has_mode = !off && modes.count > 0;
    if (!has_mode && handlers.empty()) {
      if (lamella_tensor* wrapper = find_wrapper(op, arguments)) return fail_wrapper(op, wrapper);
      ExcludeDispatchKeyGuard without{DispatchKey::Python};
      return abi::call_boxed(op, below, arguments, returns);
    }
    OpFacts* facts = facts_of(op);
    if (facts == nullptr) return keep_python_error();
    // The operators that a composite kernel calls reach this kernel one by one.
    if (facts->rules == nullptr && facts->is_composite(below))
      return abi::call_boxed(op, below, arguments, returns);

    Ref args, kwargs, types = handlers.types();
    if (!types || !pack_arguments(*facts->program.load(std::memory_order_acquire), arguments, &args,
                                  &kwargs)) {
      return keep_python_error();
    }
    Ref func = Ref::borrow(facts->overload);
    if (!show(&func, &args, &kwargs)) return keep_python_error();
    Ref result;
    Ref mode;
    {
      ExcludeDispatchKeyGuard above{DispatchKeySet::from_raw_repr(kAbove)};
      if (has_mode) {
        WithoutNewest without;
        mode = Ref::borrow(without.mode());
        PyObject* rule = rule_for(*facts, reinterpret_cast<PyObject*>(Py_TYPE(mode.get())));
        result =
            Ref(rule != nullptr
                    ? ask_rule(rule, mode.get(), func.get(), types.get(), args.get(), kwargs.get())
                    : ask(mode.get(), func.get(), types.get(), args.get(), kwargs.get()));
        if (!result) return keep_python_error();
      }
      for (PyObject* object : handlers.objects()) {
        if (result && result.get() != Py_NotImplemented) break;
        auto* type = reinterpret_cast<PyObject*>(Py_TYPE(object));
        PyObject* rule = rule_for(*facts, type);
        result = Ref(rule != nullptr
                         ? ask_rule(rule, type, func.get(), types.get(), args.get(), kwargs.get())
                         : ask(object, func.get(), types.get(), args.get(), kwargs.get()));
        if (!result) return keep_python_error();
      }
    }
    if (result.get() == Py_NotImplemented) return fail_unknown(func.get(), mode.get(), handlers);
    lamella_status status =
        store_returns(*facts, arguments, result.get(), "__torch_dispatch__", returns);
    if (status != LAMELLA_OK) return status;
    for (uint16_t i : facts->shared->written) {
      each_tensor(arguments[i], [&](lamella_tensor* t) {
        if (lacks_memory(t)) bump_version(t);
      });
    }
    if (op == detach.get()) {
      // A wrapper and its detached aliases count their writes together.
      lamella_tensor *made = returns[0].as.tensor, *source = arguments[0].as.tensor;
      if (lacks_memory(made) && lacks_memory(source))
        python_key::share_storage(made, source, false);
    }
    for (uint32_t i = 0; facts->makes_views && i < op->return_count; ++i) {
      each_tensor(returns[i], [](lamella_tensor* t) {
        if (t != nullptr) python_key::mark_view(t);
      });
    }
    return status;
  } catch (...) {
    return lamella::detail::status_of_current_exception();
  }
}

// An alias of an instance of a subclass, by a call of aten::detach that its handler sees.
TensorBase detach_subclass(const TensorBase& source) {
  if ((lamella_thread.excluded & kBit) != 0) return TensorBase();
  GilScope gil;
  if (modes.disabled != 0) return TensorBase();
  const lamella_operator* op = detach.get();
  if (op == nullptr) lamella::detail::throw_status(keep_python_error());
  AutoDispatchBelowAutograd below;
  lamella_value argument = tensor_value(source.impl()), result = none_value();
  lamella::detail::check(lamella_call_boxed(op, &argument, 1, &result, 1));
  return TensorBase::adopt(result.as.tensor);
}

// ---- Tensors of subclasses ----

bool read_ints(PyObject* object, const char* what, std::vector<int64_t>* list) {
  Ref items(PySequence_Tuple(object));
  if (!items) {
    PyErr_Format(PyExc_TypeError,
                 "_make_wrapper_subclass: expected '%s' to be a list of int, got %s", what,
                 Py_TYPE(object)->tp_name);
    return false;
  }
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); ++i) {
    list->push_back(PyLong_AsLongLong(PyTuple_GET_ITEM(items.get(), i)));
    if (PyErr_Occurred() != nullptr) return false;
  }
  return true;
}

// _make_wrapper_subclass(cls, size, *, strides, storage_offset, memory_format, dtype, layout,
// device, pin_memory, requires_grad, dispatch_sizes_strides_policy, dispatch_device,
// dispatch_layout, extra_keys)
PyObject* make_wrapper_subclass(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"cls",
                                "size",
                                "strides",
                                "storage_offset",
                                "memory_format",
                                "dtype",
                                "layout",
                                "device",
                                "pin_memory",
                                "requires_grad",
                                "dispatch_sizes_strides_policy",
                                "dispatch_device",
                                "dispatch_layout",
                                "extra_keys",
                                nullptr};
  PyObject *type, *size, *strides = Py_None, *format = Py_None, *dtype = Py_None;
  PyObject *layout = Py_None, *device = Py_None, *policy = Py_None, *offset = Py_None;
  int pin_memory = 0, requires_grad = 0, own_device = 0, own_layout = 0;
  unsigned long long extra_keys = 0;
  if (!PyArg_ParseTupleAndKeywords(
          args, kwargs, "O!O|$OOOOOOppOppK:_make_wrapper_subclass", const_cast<char**>(names),
          &PyType_Type, &type, &size, &strides, &offset, &format, &dtype, &layout, &device,
          &pin_memory, &requires_grad, &policy, &own_device, &own_layout, &extra_keys)) {
    return nullptr;
  }
  auto* cls = reinterpret_cast<PyTypeObject*>(type);
  if (!PyType_IsSubtype(cls, &TensorType)) {
    return PyErr_Format(PyExc_TypeError,
                        "_make_wrapper_subclass: expected 'cls' to be a subclass of Tensor, got %R",
                        type);
  }
  if (!has_dispatch(cls)) {
    return PyErr_Format(PyExc_RuntimeError,
                        "_make_wrapper_subclass: expected 'cls' to have a __torch_dispatch__, got "
                        "%R, which has none",
                        type);
  }
  if (policy != Py_None || own_device != 0 || own_layout != 0) {
    PyErr_SetString(PyExc_NotImplementedError,
                    "_make_wrapper_subclass: sizes, strides, devices and layouts are those given "
                    "here; a class cannot answer for them");
    return nullptr;
  }
  if (!ensure_python_key()) return nullptr;
  return guarded([&]() -> PyObject* {
    std::vector<int64_t> sizes, steps;
    if (!read_ints(size, "size", &sizes)) return nullptr;
    if (strides != Py_None) {
      if (!read_ints(strides, "strides", &steps)) return nullptr;
    } else {
      MemoryFormat wanted = MemoryFormat::Contiguous;
      if (format != Py_None) {
        if (Py_TYPE(format) != &MemoryFormatType) {
          return PyErr_Format(PyExc_TypeError,
                              "_make_wrapper_subclass: expected 'memory_format' to be a "
                              "memory_format, got %R",
                              format);
        }
        wanted = reinterpret_cast<PyMemoryFormat*>(format)->format;
      }
      steps.resize(sizes.size());
      strides_of_format(sizes, wanted, steps.data());
    }
    ScalarType type_of_elements = default_dtype();
    if (dtype != Py_None && !dtype_from_object(dtype, &type_of_elements)) {
      return PyErr_Format(PyExc_TypeError,
                          "_make_wrapper_subclass: expected 'dtype' to be a dtype, got %R", dtype);
    }
    Device where(kCPU);
    if (device != Py_None) {
      int known = device_from_object(device, &where);
      if (known < 0) return nullptr;
      if (known == 0) {
        return PyErr_Format(PyExc_TypeError,
                            "_make_wrapper_subclass: expected 'device' to be a device, got %R",
                            device);
      }
    }
    long long start = offset == Py_None ? 0 : PyLong_AsLongLong(offset);
    if (PyErr_Occurred() != nullptr) return nullptr;
    if (layout != Py_None && Py_TYPE(layout) != &LayoutType) {
      return PyErr_Format(PyExc_TypeError,
                          "_make_wrapper_subclass: expected 'layout' to be a layout, got %R",
                          layout);
    }
    TensorBase made = python_key::make_wrapper(sizes, steps, start, type_of_elements, where);
    if (layout != Py_None) {
      made.impl()->layout = static_cast<uint8_t>(reinterpret_cast<PyLayout*>(layout)->layout);
    }
    made.impl()->key_set |= extra_keys;
    if (requires_grad != 0)
      lamella::detail::check(lamella_tensor_set_requires_grad(made.impl(), 1));
    return wrap_as(cls, made.unsafe_release());
  });
}

// _disabled_torch_dispatch_impl(func, types, args=(), kwargs=None): makes the call without
// handlers. A class with this as its __torch_dispatch__ has no handler.
PyObject* call_without_handlers(PyObject*, PyObject* args) {
  PyObject *func, *types, *positional = no_types, *keywords = Py_None;
  if (!PyArg_ParseTuple(args, "OO|OO:_disabled_torch_dispatch_impl", &func, &types, &positional,
                        &keywords)) {
    return nullptr;
  }
  Ref tuple(PySequence_Tuple(positional));
  if (!tuple) return nullptr;
  ++modes.disabled;
  renew_thread_keys();
  PyObject* result = call_object(func, tuple.get(), keywords == Py_None ? nullptr : keywords);
  --modes.disabled;
  renew_thread_keys();
  return result;
}

PyObject* is_wrapper(PyObject*, PyObject* object) {
  return PyBool_FromLong(is_tensor(object) && lacks_memory(tensor_of(object)));
}

// _storage_address(tensor): what tells storages apart, also those of wrappers; 0: there is none.
PyObject* storage_address(PyObject*, PyObject* object) {
  if (!is_tensor(object)) {
    return PyErr_Format(PyExc_TypeError, "_storage_address: expected a tensor, got %R", object);
  }
  return PyLong_FromVoidPtr(tensor_of(object)->storage);
}

// _share_storage(tensor, of, is_view)
PyObject* share_storage(PyObject*, PyObject* args) {
  PyObject *tensor, *of;
  int is_view = 0;
  if (!PyArg_ParseTuple(args, "O!O!|p:_share_storage", &TensorType, &tensor, &TensorType, &of,
                        &is_view)) {
    return nullptr;
  }
  return guarded([&]() -> PyObject* {
    if ((tensor_of(tensor)->flags & tensor_of(of)->flags & LAMELLA_TENSOR_WRAPPER) != 0) {
      python_key::share_storage(tensor_of(tensor), tensor_of(of), is_view != 0);
    }
    Py_RETURN_NONE;
  });
}

// _set_dispatch_rule(overload, cls, function or None)
PyObject* set_dispatch_rule(PyObject*, PyObject* args) {
  PyObject *overload, *type, *function;
  if (!PyArg_ParseTuple(args, "O!O!O:_set_dispatch_rule", &OverloadType, &overload, &PyType_Type,
                        &type, &function)) {
    return nullptr;
  }
  OpFacts* facts = bare_facts_of(reinterpret_cast<PyPacket*>(overload)->op);
  if (facts == nullptr) return nullptr;
  if (facts->rules == nullptr) facts->rules = PyDict_New();
  if (facts->rules == nullptr) return nullptr;
  if (function == Py_None) {
    if (PyDict_DelItem(facts->rules, type) != 0) PyErr_Clear();
  } else if (PyDict_SetItem(facts->rules, type, function) != 0) {
    return nullptr;
  }
  Py_RETURN_NONE;
}

PyObject* set_shown_forms(PyObject*, PyObject* forms) {
  if (forms != Py_None && !PyDict_Check(forms)) {
    PyErr_SetString(PyExc_TypeError, "_set_shown_forms: expected a dictionary or None");
    return nullptr;
  }
  PyObject* before = shown_forms;
  Py_INCREF(forms);
  shown_forms = forms;
  Py_XDECREF(before);
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    {"_set_shown_forms", set_shown_forms, METH_O,
     "The calls that handlers see: overload -> function of (args, kwargs); None: the operators."},
    {"_set_dispatch_rule", set_dispatch_rule, METH_VARARGS, nullptr},
    {"_push_mode", push_mode_function, METH_O, "Adds a mode, the newest one."},
    {"_pop_mode", pop_mode_function, METH_NOARGS, "Removes the newest mode and returns it."},
    {"_mode_count", mode_count, METH_NOARGS, "The number of modes on this thread."},
    {"_mode_at", mode_at, METH_O, "A mode of this thread by its index; 0 is the oldest."},
    {"_disable_handlers", disable_handlers, METH_O,
     "Adds (1) or removes (-1) a guard that disables all handlers on this thread."},
    {"_disabled_torch_dispatch_impl", call_without_handlers, METH_VARARGS,
     "Calls an operator without handlers."},
    {"_make_wrapper_subclass", method(make_wrapper_subclass), METH_VARARGS | METH_KEYWORDS,
     "A tensor without memory as an instance of a subclass with __torch_dispatch__."},
    {"_is_wrapper", is_wrapper, METH_O, "Whether a tensor has no memory of its own."},
    {"_storage_address", storage_address, METH_O, nullptr},
    {"_share_storage", share_storage, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool has_dispatch(PyTypeObject* type) {
  PyObject* found = _PyType_Lookup(type, name_dispatch);
  if (found == nullptr || found == plain_dispatch) return false;
  // `__torch_dispatch__ = _disabled_torch_dispatch_impl` in a class.
  return !PyCFunction_Check(found) || PyCFunction_GET_FUNCTION(found) != call_without_handlers;
}

bool ensure_python_key() {
  static std::atomic<bool> done{false};
  if (done.load(std::memory_order_acquire)) return true;
  return guarded(
      [] {
        if (!done.exchange(true)) {
          python_key::register_kernel(run);
          detach_by_class = detach_subclass;
        }
        return true;
      },
      false);
}

int add_python_key(PyObject* module) {
  name_dispatch = PyUnicode_InternFromString("__torch_dispatch__");
  no_types = PyTuple_New(0);
  if (name_dispatch == nullptr || no_types == nullptr ||
      PyModule_AddFunctions(module, functions) != 0) {
    return -1;
  }
  Ref disabled(PyObject_GetAttrString(module, "_disabled_torch_dispatch_impl"));
  plain_dispatch = disabled ? PyStaticMethod_New(disabled.get()) : nullptr;
  if (plain_dispatch == nullptr ||
      PyDict_SetItem(TensorType.tp_dict, name_dispatch, plain_dispatch) != 0) {
    return -1;
  }
  Ref maker(PyObject_GetAttrString(module, "_make_wrapper_subclass"));
  Ref method(maker ? PyStaticMethod_New(maker.get()) : nullptr);
  if (!method ||
      PyDict_SetItemString(TensorType.tp_dict, "_make_wrapper_subclass", method.get()) != 0) {
    return -1;
  }
  PyType_Modified(&TensorType);
  return 0;
}

}  // namespace lamella::python
