// Kernels that are functions in Python: the boxed form, direct calls, and their checks.
#include "python/src/python_kernel.h"

#include "lamella/dispatch/boxed_tensors.h"
#include "lamella/dispatch/guards.h"
#include "python/src/autograd.h"
#include "python/src/errors.h"
#include "python/src/gil.h"

namespace lamella::python {
namespace {

// ---- Checks of custom operators ----

PyObject* raise_shared(const lamella_operator* op, const char* with) {
  return PyErr_Format(PyExc_RuntimeError,
                      "%s: expected its Python kernel to return new tensors, got one that shares "
                      "memory with %s; return a clone",
                      op->name, with);
}

// Compares storages of returned tensors with those of arguments and of each other.
class Memory {
 public:
  explicit Memory(const lamella_operator* op) : op_(op) {}
  void argument(lamella_tensor* tensor) {
    if (tensor != nullptr && tensor->storage != nullptr) arguments_.push_back(tensor->storage);
  }
  // False with a Python error set if the result shares its memory.
  bool result(lamella_tensor* tensor) {
    if (tensor == nullptr || tensor->storage == nullptr) return true;
    for (lamella_storage* storage : arguments_) {
      if (storage == tensor->storage) return raise_shared(op_, "an argument") != nullptr;
    }
    for (lamella_storage* storage : results_) {
      if (storage == tensor->storage) return raise_shared(op_, "another result") != nullptr;
    }
    results_.push_back(tensor->storage);
    return true;
  }

 private:
  const lamella_operator* op_;
  std::vector<lamella_storage*> arguments_, results_;
};

bool check_custom(const OpFacts& facts, const lamella_value* arguments,
                  const lamella_value* returns) {
  Memory memory(facts.op);
  for (uint32_t i = 0; i < facts.op->argument_count; ++i) {
    bool writes = ((facts.writes >> i) & 1) != 0;
    each_tensor(arguments[i], [&](lamella_tensor* t) {
      memory.argument(t);
      if (writes && t != nullptr) lamella_tensor_bump_version(t);
    });
  }
  bool fits = true;
  for (uint32_t i = 0; i < facts.op->return_count; ++i) {
    each_tensor(returns[i], [&](lamella_tensor* t) { fits = fits && memory.result(t); });
  }
  return fits;
}

PyObject* keyset_object(uint64_t keys) {
  Ref module(PyImport_ImportModule("lamella._dispatch"));
  return module ? PyObject_CallMethod(module.get(), "DispatchKeySet", "K",
                                      static_cast<unsigned long long>(keys))
                : nullptr;
}

// ---- Direct calls ----

// Whether the boxed call would pass an equal object; adds the keys of its tensors to `keys`.
bool is_plain(const Param& param, PyObject* object, uint64_t* keys) {
  switch (param.kind) {
    case Kind::kTensor:
      if (is_tensor(object)) [[likely]] {
        *keys |= tensor_of(object)->key_set;
        return true;
      }
      break;
    case Kind::kInt:
      if (PyLong_CheckExact(object)) return true;
      break;
    case Kind::kFloat:
      if (PyFloat_CheckExact(object)) return true;
      break;
    case Kind::kBool:
      if (PyBool_Check(object)) return true;
      break;
    case Kind::kString:
      if (PyUnicode_CheckExact(object)) return true;
      break;
    case Kind::kScalar:
      if (PyFloat_CheckExact(object) || PyLong_CheckExact(object) || PyBool_Check(object)) {
        return true;
      }
      break;
    case Kind::kScalarType:
      if (Py_TYPE(object) == &DtypeType) return true;
      break;
    case Kind::kTensorList:
    case Kind::kOptionalTensorList:
      if (PyList_CheckExact(object)) {
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(object); ++i) {
          PyObject* item = PyList_GET_ITEM(object, i);
          if (is_tensor(item)) {
            *keys |= tensor_of(item)->key_set;
          } else if (item != Py_None || param.kind == Kind::kTensorList) {
            return false;
          }
        }
        return true;
      }
      break;
    case Kind::kIntList:
      if (PyList_CheckExact(object)) {
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(object); ++i) {
          if (!PyLong_CheckExact(PyList_GET_ITEM(object, i))) return false;
        }
        return param.fixed_size == 0 || PyList_GET_SIZE(object) == param.fixed_size;
      }
      break;
    default:
      break;
  }
  return object == Py_None && param.optional;
}

bool is_plain_return(Kind kind, PyObject* object) {
  switch (kind) {
    case Kind::kTensor:
      return is_tensor(object);
    case Kind::kInt:
      return PyLong_CheckExact(object);
    case Kind::kFloat:
      return PyFloat_CheckExact(object);
    case Kind::kBool:
      return PyBool_Check(object);
    case Kind::kString:
      return PyUnicode_CheckExact(object);
    default:
      return false;
  }
}

// Converts the function's result to the operator's result; takes over the reference `returned`.
PyObject* finish_direct(OpFacts& facts, const Program& program, PyObject* returned) {
  Ref result(returned);
  if (!result) return nullptr;
  size_t wanted = program.return_kinds.size();
  if (wanted == 0) Py_RETURN_NONE;
  if (wanted == 1 && is_plain_return(program.return_kinds[0], returned)) [[likely]]
    return result.release();
  if (wanted > 1 && PyTuple_CheckExact(returned) && program.return_names.empty() &&
      PyTuple_GET_SIZE(returned) == static_cast<Py_ssize_t>(wanted)) {
    bool plain = true;
    for (size_t i = 0; i < wanted; ++i) {
      plain = plain && is_plain_return(program.return_kinds[i],
                                       PyTuple_GET_ITEM(returned, static_cast<Py_ssize_t>(i)));
    }
    if (plain) return result.release();
  }
  std::vector<lamella_value> values(wanted);
  lamella_status status =
      store_returns(facts, nullptr, result.get(), "Python kernel", values.data());
  return status == LAMELLA_OK ? wrap_returns(program, values.data()) : raise_status(status);
}

// The same check as check_custom(), on objects.
bool check_custom_objects(const OpFacts& facts, PyObject* const* args, Py_ssize_t count,
                          PyObject* result) {
  auto each = [](PyObject* object, auto&& see) {
    if (is_tensor(object)) {
      see(tensor_of(object));
    } else if (PyList_CheckExact(object) || PyTuple_CheckExact(object)) {
      for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i) {
        PyObject* item = PySequence_Fast_GET_ITEM(object, i);
        if (is_tensor(item)) see(tensor_of(item));
        // One of several results may be a list.
        if (PyList_CheckExact(item)) {
          for (Py_ssize_t k = 0; k < PyList_GET_SIZE(item); ++k) {
            PyObject* inner = PyList_GET_ITEM(item, k);
            if (is_tensor(inner)) see(tensor_of(inner));
          }
        }
      }
    }
  };
  if (facts.writes != 0) {
    for (Py_ssize_t i = 0; i < count; ++i) {
      if (((facts.writes >> i) & 1) == 0) continue;
      each(args[i], [](lamella_tensor* t) { lamella_tensor_bump_version(t); });
    }
  }
  if (is_tensor(result)) [[likely]] {
    lamella_storage* storage = tensor_of(result)->storage;
    bool shared = false;
    for (Py_ssize_t i = 0; i < count; ++i) {
      each(args[i], [&](lamella_tensor* t) {
        shared = shared || (t->storage == storage && storage != nullptr);
      });
    }
    return !shared || raise_shared(facts.op, "an argument") != nullptr;
  }
  Memory memory(facts.op);
  for (Py_ssize_t i = 0; i < count; ++i) {
    each(args[i], [&](lamella_tensor* t) { memory.argument(t); });
  }
  bool fits = true;
  each(result, [&](lamella_tensor* t) { fits = fits && memory.result(t); });
  return fits;
}

PyObject* run_direct(const PythonKernel& kernel, OpFacts& facts, const Program& program,
                     PyObject* const* args, Py_ssize_t count) {
  PyObject* result = call_vector(kernel.function, args, static_cast<size_t>(count), nullptr);
  if (result == nullptr) [[unlikely]]
    return nullptr;
  if (kernel.is_custom && !check_custom_objects(facts, args, count, result)) [[unlikely]] {
    Py_DECREF(result);
    return nullptr;
  }
  return finish_direct(facts, program, result);
}

const PythonKernel* direct_kernel(const lamella_kernel* kernel) {
  if (kernel->boxed != python_kernel) return nullptr;
  auto* own = static_cast<const PythonKernel*>(kernel->context);
  return own->with_keyset || own->is_fallback ? nullptr : own;
}

// Between enter_call and leave_call. False: not a direct call.
bool call_inside(OpFacts& facts, const Program& program, uint64_t keys, PyObject* const* args,
                 Py_ssize_t count, PyObject** result) {
  const PythonKernel* kernel = direct_kernel(abi::kernel_of(facts.op, keys));
  if (kernel == nullptr) return false;
  if (kernel->gradient == nullptr) {
    *result = run_direct(*kernel, facts, program, args, count);
    return true;
  }
  if (!facts.simple) return false;
  bool needed = false;
  bool forward = false;
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (!is_tensor(args[i])) continue;
    needed = needed || lamella_tensor_requires_grad(tensor_of(args[i])) != 0;
    forward = forward || (tensor_of(args[i])->flags & LAMELLA_TENSOR_TANGENT) != 0;
  }
  AutoDispatchBelowAutograd below;
  // A call with tangents is recorded too and raises an error there, as the class has no jvp.
  if ((needed && (lamella_thread.modes & LAMELLA_MODE_NO_GRAD) == 0) ||
      (forward && (lamella_thread.modes & LAMELLA_MODE_NO_FORWARD) == 0)) {
    *result = record_custom(kernel->gradient, kernel->setup_context, facts.overload, args, count);
    return true;
  }
  keys = abi::masked(facts.op, keys & ~autograd_dispatch_keyset.raw_repr());
  kernel = direct_kernel(abi::kernel_of(facts.op, keys));
  if (kernel == nullptr || kernel->gradient != nullptr) return false;
  *result = run_direct(*kernel, facts, program, args, count);
  return true;
}

// fallback([keyset,] operator, *args, **kwargs), without arguments that are the defaults.
PyObject* call_fallback(const PythonKernel& kernel, const OpFacts& facts, const Program& program,
                        uint64_t key_set, const lamella_value* arguments) {
  Ref args, kwargs, first(PyList_New(0));
  Ref keys(kernel.with_keyset ? keyset_object(key_set) : Ref::borrow(Py_None).release());
  if (!first || !keys || !pack_arguments(program, arguments, &args, &kwargs)) return nullptr;
  if (kernel.with_keyset && PyList_Append(first.get(), keys.get()) != 0) return nullptr;
  if (PyList_Append(first.get(), facts.overload) != 0) return nullptr;
  Ref all(PySequence_InPlaceConcat(first.get(), args.get()));
  Ref tuple(all ? PySequence_Tuple(all.get()) : nullptr);
  return tuple ? PyObject_Call(kernel.function, tuple.get(), kwargs.get()) : nullptr;
}

}  // namespace

bool call_direct(OpFacts& facts, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames,
                 PyObject** result) {
  const Program& program = *facts.program.load(std::memory_order_acquire);
  Py_ssize_t count = program.positional;
  if (!facts.direct || kwnames != nullptr || nargs > count || nargs < program.needed) return false;
  uint64_t keys = 0;
  const Param* params = program.params.data();
  for (Py_ssize_t i = 0; i < nargs; ++i) {
    if (!is_plain(params[i], args[i], &keys)) return false;
  }
  if (keys == 0) return false;
  constexpr Py_ssize_t kMaxDirectArguments = 16;
  PyObject* all[kMaxDirectArguments];
  if (nargs < count) {
    if (count > kMaxDirectArguments) return false;
    for (Py_ssize_t i = 0; i < count; ++i) {
      all[i] = i < nargs ? args[i] : params[i].default_object;
      if (all[i] == nullptr) return false;
    }
    args = all;
  }
  keys = abi::with_thread(keys, facts.op, lamella_thread);
  uint32_t before = abi::enter_call();
  bool done = call_inside(facts, program, keys, args, count, result);
  abi::leave_call(before);
  return done;
}

lamella_status python_kernel(const lamella_kernel* kernel, const lamella_operator* op,
                             uint64_t key_set, const lamella_value* arguments,
                             lamella_value* returns) {
  GilScope gil;
  auto* own = static_cast<const PythonKernel*>(kernel->context);
  try {
    OpFacts* facts = facts_of(op);
    if (facts == nullptr) return keep_python_error();
    const Program& program = *facts->program.load(std::memory_order_acquire);
    if (own->is_fallback) {
      Ref result(call_fallback(*own, *facts, program, key_set, arguments));
      if (!result) return keep_python_error();
      return store_returns(*facts, arguments, result.get(), "Python kernel", returns);
    }
    // All positional arguments, then the keyword-only ones by name.
    uint32_t extra = own->with_keyset ? 1 : 0;
    auto positional = static_cast<uint32_t>(program.positional);
    auto count = static_cast<uint32_t>(program.params.size());
    std::vector<PyObject*> stack(extra + count + 1);
    size_t filled = 1;
    bool failed = false;
    auto add = [&](PyObject* owned) {
      failed = owned == nullptr;
      if (!failed) stack[filled++] = owned;
    };
    if (own->with_keyset) add(keyset_object(key_set));
    Ref names(count > positional ? PyTuple_New(count - positional) : nullptr);
    failed = failed || (count > positional && !names);
    for (uint32_t i = 0; i < count && !failed; ++i) {
      const Param& param = program.params[i];
      add(to_python(arguments[param.index], param.type, false));
      if (i >= positional) {
        Py_INCREF(param.name);
        PyTuple_SET_ITEM(names.get(), i - positional, param.name);
      }
    }
    Ref result;
    if (!failed) {
      result = Ref(call_vector(own->function, stack.data() + 1,
                               (extra + positional) | PY_VECTORCALL_ARGUMENTS_OFFSET, names.get()));
    }
    for (size_t i = 1; i < filled; ++i) Py_DECREF(stack[i]);
    if (!result) return keep_python_error();
    lamella_status status =
        store_returns(*facts, arguments, result.get(), "Python kernel", returns);
    if (status == LAMELLA_OK && own->is_custom && !check_custom(*facts, arguments, returns)) {
      for (uint32_t i = 0; i < op->return_count; ++i) lamella_value_release(&returns[i]);
      return keep_python_error();
    }
    return status;
  } catch (...) {
    return lamella::detail::status_of_current_exception();
  }
}

}  // namespace lamella::python
