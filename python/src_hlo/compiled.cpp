// Compiled functions: finds the program for a call, and runs it.
//
// Note [Calls of compiled functions]
//   A compiled function has an entry for each kind of call it has seen: the pattern of its
//   arguments (tensors and fixed values), the properties of its tensors, what it read from outside
//   (Note [Guards on reads] in compiled_outside.cpp), the places of the tensors among that (entries
//   of dictionaries and lists, cells of closures), and the layers and modes of the thread. The
//   entries are tried in order, the newest first, without making a Python object. A call that fits
//   none goes to the owner, the object in lamella/_compile.py, which calls the function or makes a
//   program, and returns an entry for it. compiled_program.h runs the program, and may still find
//   that it does not fit the call.
#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "lamella/graph/runtime/executable.h"
#include "lamella/graph/runtime/tensor_value.h"
#include "python/src/object.h"
#include "python/src_hlo/compiled_outside.h"
#include "python/src_hlo/compiled_program.h"

#include <structmember.h>

namespace lamella::python {
namespace {

// ---- Entries ------------------------------------------------------------------------------------

// The shape of a program's parameter, and whether tensors that fit the guard can be passed without
// a copy.
struct Parameter {
  const hlo::Shape* shape;
  size_t bytes;
  bool is_plain;
};
Parameter parameter_for(const hlo::Shape* shape, const TensorGuard& guard) {
  bool is_plain = hlo::element_bits(shape->element_type()) >= 8;
  int64_t expected = 1;
  for (int32_t d = guard.ndim; d-- > 0;) {
    int64_t size = guard.dims[static_cast<size_t>(d)];
    is_plain =
        is_plain && (size == 1 || guard.dims[static_cast<size_t>(guard.ndim + d)] == expected);
    expected *= size;
  }
  return {shape, static_cast<size_t>(shape->bytes()), is_plain};
}
hlo::Value value_of(const Parameter& parameter, PyObject* object) {
  constexpr uintptr_t kAlignment = 16;
  lamella_tensor* tensor = tensor_of(object);
  if (!parameter.is_plain || reinterpret_cast<uintptr_t>(tensor->data) % kAlignment != 0) {
    return hlo::value_of_tensor(parameter.shape, TensorBase::borrow(tensor));
  }
  return hlo::Value::of_tensor(parameter.shape, TensorBase::borrow(tensor).unsafe_release(),
                               parameter.bytes);
}

struct Entry {
  CallState state;
  std::vector<Pattern> positional;
  std::vector<Pattern> keywords;
  Ref names;  // of the keywords, a tuple
  std::vector<TensorGuard> guards;
  std::vector<OutsidePlace> tensors;
  Ref outside;  // a _Guards object
  // A _Program object, and the _nest.Nest of its results; empty: calls run the original function.
  Ref object, nest;
  const CompiledProgram* program = nullptr;  // that of the object
  std::optional<Pattern> results;            // of `nest`, if it needs no Python
  Ref again;                                 // see run_with_gradient()
  // The executable of a plain program, which is run directly; null for other programs.
  const hlo::Executable* executable = nullptr;
  bool without_gil = false;
  std::vector<Parameter> parameters;
  Entry* older = nullptr;  // see CompiledObject
};

bool fits(const Entry& entry, const CallState& state, PyObject* const* args, size_t count,
          PyObject* names, Leaves* leaves) {
  size_t named = names == nullptr ? 0 : static_cast<size_t>(PyTuple_GET_SIZE(names));
  if (count != entry.positional.size() || named != entry.keywords.size()) return false;
  if (!(state == entry.state)) return false;
  for (size_t i = 0; i < count; ++i) {
    if (!take(entry.positional[i], args[i], entry.guards, leaves)) return false;
  }
  for (size_t i = 0; i < named; ++i) {
    auto at = static_cast<Py_ssize_t>(i);
    if (!is_same(PyTuple_GET_ITEM(names, at), PyTuple_GET_ITEM(entry.names.get(), at)) ||
        !take(entry.keywords[i], args[count + i], entry.guards, leaves)) {
      return false;
    }
  }
  if (outside_guards_of(entry.outside.get()).first_changed() >= 0) return false;
  for (const OutsidePlace& place : entry.tensors) {
    PyObject* now = place.get();
    if (now == nullptr || !entry.guards[leaves->size()].fits(now)) return false;
    leaves->push_back(now);
  }
  return true;
}

LAMELLA_ALWAYS_INLINE PyObject* nested(const Entry& entry, std::vector<TensorBase>& made) {
  if (!entry.results) {
    Ref list(list_of(std::move(made)));
    return required(PyObject_CallMethod(entry.nest.get(), "unpack", "O", list.get()));
  }
  SmallList<Ref> tensors(made.size());
  for (TensorBase& tensor : made) {
    tensors.push_back(Ref(required(bridge->wrap(tensor.unsafe_release()))));
  }
  return build(*entry.results, tensors);
}
PyObject* run_plain(const Entry& entry, Leaves& leaves) {
  return guarded([&] {
    std::vector<TensorBase> made;
    {
      SmallList<hlo::Value> values(leaves.size());
      for (size_t i = 0; i < leaves.size(); ++i) {
        values.push_back(value_of(entry.parameters[i], leaves[i]));
      }
      WithoutGil others(entry.without_gil);
      made = hlo::tensors_of_value(entry.executable->run(values.all()));
    }
    return nested(entry, made);
  });
}
// Runs an entry's program. The result is NULL, with a Python error set, if it fails, and NULL
// unless the outcome is Done.
LAMELLA_NOINLINE RunOutcome run(const Entry& entry, Leaves& leaves, PyObject** result) {
  RunOutcome outcome = RunOutcome::Done;
  *result = guarded([&]() -> PyObject* {
    std::vector<TensorBase> made;
    outcome = run_program(*entry.program, entry.again.get(), leaves.all(), &made);
    return outcome == RunOutcome::Done ? nested(entry, made) : nullptr;
  });
  return outcome;
}

// ---- The type -----------------------------------------------------------------------------------

struct CompiledObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* owner;
  PyObject* function;
  // The newest entry; the others follow. Entries are added at the front while other threads read,
  // and are only freed all at once.
  std::atomic<Entry*> entries;
};
void push(CompiledObject* self, std::unique_ptr<Entry> entry) {
  entry->older = self->entries.load(std::memory_order_relaxed);
  while (
      !self->entries.compare_exchange_weak(entry->older, entry.get(), std::memory_order_release)) {
  }
  entry.release();
}
PyTypeObject* compiled_type = nullptr;

// The entry that the owner returned: (state, form of the arguments, tensors, places of tensors,
// guards on reads[, Nest of the results, program, again]).
std::unique_ptr<Entry> entry_from(PyObject* given) {
  PyObject *state, *form, *leaves, *tensors, *outside;
  PyObject *nest = nullptr, *program = nullptr, *again = nullptr;
  if (!PyArg_ParseTuple(given, "O!O!OOO|OOO", &PyTuple_Type, &state, &PyTuple_Type, &form, &leaves,
                        &tensors, &outside, &nest, &program, &again)) {
    throw PythonError();
  }
  auto entry = std::make_unique<Entry>();
  entry->state = state_now();
  PyObject* both = PyTuple_GetItem(form, 1);
  std::optional<Pattern> positional = pattern_of(PyTuple_GetItem(both, 0));
  std::optional<Pattern> keywords = pattern_of(PyTuple_GetItem(both, 1));
  if (!positional || !keywords) return nullptr;
  entry->positional = std::move(positional->items);
  entry->keywords = std::move(keywords->items);
  entry->names = std::move(keywords->value);
  Ref list(required(PySequence_Fast(leaves, "leaves")));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list.get()); ++i) {
    entry->guards.emplace_back(PySequence_Fast_GET_ITEM(list.get(), i));
  }
  Ref places(required(PySequence_Fast(tensors, "places")));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(places.get()); ++i) {
    entry->tensors.push_back(place_from(PySequence_Fast_GET_ITEM(places.get(), i)));
  }
  outside_guards_of(outside);
  entry->outside = Ref::borrow(outside);
  if (program == nullptr) return entry;
  entry->object = Ref::borrow(program);
  entry->program = &compiled_program_of(program);
  entry->nest = Ref::borrow(nest);
  entry->again = Ref::borrow(again);
  Ref nested(required(PyObject_GetAttrString(nest, "form")));
  entry->results = pattern_of(nested.get());
  const bool on_device =
      std::ranges::any_of(entry->guards, [](const TensorGuard& one) { return one.is_cuda(); });
  if (!entry->program->is_plain() || on_device) return entry;
  entry->executable = entry->program->executable.get();
  entry->without_gil = entry->program->without_gil;
  const auto& parameters = entry->executable->module().entry->parameters;
  for (size_t i = 0; i < parameters.size(); ++i) {
    entry->parameters.push_back(parameter_for(parameters[i]->shape, entry->guards[i]));
  }
  return entry;
}

PyObject* call_owner(CompiledObject* self, PyObject* const* args, size_t count, PyObject* names) {
  return guarded([&]() -> PyObject* {
    Ref tuple(required(PyTuple_New(static_cast<Py_ssize_t>(count))));
    for (size_t i = 0; i < count; ++i) {
      PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), Ref::borrow(args[i]).release());
    }
    Ref keywords(required(PyDict_New()));
    Py_ssize_t named = names == nullptr ? 0 : PyTuple_GET_SIZE(names);
    for (Py_ssize_t i = 0; i < named; ++i) {
      if (PyDict_SetItem(keywords.get(), PyTuple_GET_ITEM(names, i), args[count + i]) != 0) {
        throw PythonError();
      }
    }
    Ref given(
        required(PyObject_CallMethod(self->owner, "_call", "OO", tuple.get(), keywords.get())));
    // (result, entry or None).
    PyObject* entry = PyTuple_GetItem(given.get(), 1);
    if (entry == nullptr) throw PythonError();
    if (entry != Py_None) {
      if (std::unique_ptr<Entry> made = entry_from(entry)) push(self, std::move(made));
    }
    return Ref::borrow(PyTuple_GetItem(given.get(), 0)).release();
  });
}

PyObject* call(PyObject* object, PyObject* const* args, size_t flagged, PyObject* names) {
  auto* self = reinterpret_cast<CompiledObject*>(object);
  auto count = static_cast<size_t>(PyVectorcall_NARGS(flagged));
  CallState state = state_now();
  for (const Entry* each = self->entries.load(std::memory_order_acquire); each != nullptr;
       each = each->older) {
    const Entry& entry = *each;
    Leaves leaves(entry.guards.size());
    if (!fits(entry, state, args, count, names, &leaves)) continue;
    if (entry.executable != nullptr) return run_plain(entry, leaves);
    PyObject* made = nullptr;
    RunOutcome outcome =
        entry.program != nullptr ? run(entry, leaves, &made) : RunOutcome::SharedMemory;
    if (outcome == RunOutcome::Done) return made;
    if (outcome == RunOutcome::SharedMemory) {
      return PyObject_Vectorcall(self->function, args, flagged, names);
    }
  }
  return call_owner(self, args, count, names);
}

PyObject* make_compiled(PyObject*, PyObject* args) {
  PyObject *owner, *function;
  if (!PyArg_ParseTuple(args, "OO:_compiled", &owner, &function)) return nullptr;
  PyObject* object = compiled_type->tp_alloc(compiled_type, 0);
  if (object == nullptr) return nullptr;
  auto* self = reinterpret_cast<CompiledObject*>(object);
  self->vectorcall = call;
  self->owner = Ref::borrow(owner).release();
  self->function = Ref::borrow(function).release();
  new (&self->entries) std::atomic<Entry*>(nullptr);
  return object;
}

int traverse(PyObject* object, visitproc visit, void* arg) {
  auto* self = reinterpret_cast<CompiledObject*>(object);
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(self->owner);
  Py_VISIT(self->function);
  for (const Entry* entry = self->entries.load(); entry != nullptr; entry = entry->older) {
    Py_VISIT(entry->object.get());
    Py_VISIT(entry->again.get());
    Py_VISIT(entry->outside.get());
    for (const OutsidePlace& place : entry->tensors) Py_VISIT(place.container.get());
  }
  return 0;
}
int clear(PyObject* object) {
  auto* self = reinterpret_cast<CompiledObject*>(object);
  for (Entry* entry = self->entries.exchange(nullptr); entry != nullptr;) {
    std::unique_ptr<Entry> gone(entry);
    entry = entry->older;
  }
  Py_CLEAR(self->owner);
  Py_CLEAR(self->function);
  return 0;
}
void destroy(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  PyObject_GC_UnTrack(object);
  clear(object);
  type->tp_free(object);
  Py_DECREF(type);
}
// Attributes are those of the owner, which falls back to those of the function or module.
PyObject* get_attribute(PyObject* object, PyObject* name) {
  return PyObject_GetAttr(reinterpret_cast<CompiledObject*>(object)->owner, name);
}
int set_attribute(PyObject* object, PyObject* name, PyObject* value) {
  return PyObject_SetAttr(reinterpret_cast<CompiledObject*>(object)->owner, name, value);
}
PyObject* represent(PyObject* object) {
  return PyObject_Repr(reinterpret_cast<CompiledObject*>(object)->owner);
}
// Binds like a method if it is an attribute of a class.
PyObject* bind(PyObject* object, PyObject* instance, PyObject*) {
  if (instance == nullptr || instance == Py_None) return Ref::borrow(object).release();
  return PyMethod_New(object, instance);
}

PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(CompiledObject, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};
PyType_Slot slots[] = {{Py_tp_doc, const_cast<char*>("A function as compiled programs.")},
                       {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
                       {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                       {Py_tp_clear, reinterpret_cast<void*>(clear)},
                       {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                       {Py_tp_getattro, reinterpret_cast<void*>(get_attribute)},
                       {Py_tp_setattro, reinterpret_cast<void*>(set_attribute)},
                       {Py_tp_repr, reinterpret_cast<void*>(represent)},
                       {Py_tp_descr_get, reinterpret_cast<void*>(bind)},
                       {Py_tp_members, members},
                       {0, nullptr}};
PyType_Spec spec = {"lamella._hlo.Compiled", sizeof(CompiledObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, slots};

// ---- Facts for Python ---------------------------------------------------------------------------

// (layers included, layers excluded, modes, dtypes of autocast, default dtype).
PyObject* call_state(PyObject*, PyObject*) {
  CallState state = state_now();
  return Py_BuildValue("KKIii", static_cast<unsigned long long>(state.included),
                       static_cast<unsigned long long>(state.excluded), state.modes, state.cast,
                       state.default_dtype);
}
// The properties of a tensor that a guard compares.
PyObject* tensor_facts(PyObject*, PyObject* object) {
  if (!PyObject_TypeCheck(object, bridge->tensor_type)) {
    PyErr_SetString(PyExc_TypeError, "expected a Tensor");
    return nullptr;
  }
  return guarded([&] {
    TensorGuard guard(object);
    auto ndim = static_cast<size_t>(guard.ndim);
    Ref sizes(numbers_object({guard.dims.data(), ndim}));
    Ref strides(numbers_object({guard.dims.data() + ndim, ndim}));
    return required(Py_BuildValue(
        "KiiIOOO", static_cast<unsigned long long>(guard.key_set),
        static_cast<int>(guard.scalar_type), static_cast<int>(tensor_of(object)->device_type),
        guard.flags, sizes.get(), strides.get(), reinterpret_cast<PyObject*>(guard.type)));
  });
}

PyObject* has_hooks(PyObject*, PyObject* object) {
  if (!PyObject_TypeCheck(object, bridge->tensor_type)) Py_RETURN_FALSE;
  return PyBool_FromLong(static_cast<long>(autograd::has_hooks(tensor_of(object))));
}

PyMethodDef functions[] = {{"_call_state", call_state, METH_NOARGS, nullptr},
                           {"_tensor_facts", tensor_facts, METH_O, nullptr},
                           {"_has_hooks", has_hooks, METH_O, nullptr},
                           {"_compiled", make_compiled, METH_VARARGS, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

int add_compiled(PyObject* module) {
  compiled_type = add_type(module, &spec);
  if (compiled_type == nullptr || add_programs(module) != 0 || add_gradients(module) != 0 ||
      add_outside_guards(module) != 0 || add_reads(module) != 0) {
    return -1;
  }
  return PyModule_AddFunctions(module, functions);
}

}  // namespace lamella::python
