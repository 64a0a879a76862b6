// Hooks written in Python: on tensors, on nodes, on saved tensors; and anomaly mode's record of
// where a node was made.
//
// Note [What the collector sees]
//   A Python function that a tensor or its graph holds, as a hook or as a context, may hold the
//   tensor: a cycle through C++. Python's collector sees such cycles because a tensor object visits
//   what only its C++ side holds: the tensor's single reference is the object's, and the single
//   reference of each node on the way is that of the node before. While any thread works on tensors
//   without the GIL, these counts may change during a collection, so nothing is visited: an object
//   that is not visited stays alive.
#include <mutex>

#include "lamella/core/tensor_impl.h"
#include "lamella/layers/autograd/anomaly.h"
#include "lamella/layers/autograd/engine.h"
#include "lamella/layers/autograd/saved.h"
#include "python/src/autograd.h"
#include "python/src/autograd_where.h"
#include "python/src/errors.h"
#include "python/src/gil.h"

namespace lamella::python {
namespace {

// ---- Handles ----

struct PyHandle {
  PyObject_HEAD uint64_t id;
  WeakTensorRef tensor;  // empty: of a node's hook
  void (*remove)(lamella_tensor*, uint64_t);
  PyObject* cell;  // holds the function until it is removed
};
PyTypeObject HandleType = {PyVarObject_HEAD_INIT(nullptr, 0)};
PyHandle* as_handle(PyObject* object) { return reinterpret_cast<PyHandle*>(object); }

PyObject* handle_remove(PyObject* object, PyObject*) {
  PyHandle* self = as_handle(object);
  return guarded([&]() -> PyObject* {
    TensorBase tensor = std::exchange(self->tensor, WeakTensorRef()).lock();
    Ref cell(std::exchange(self->cell, nullptr));
    if (tensor.defined()) {
      self->remove(tensor.impl(), self->id);
    } else if (cell && PyCell_Set(cell.get(), nullptr) != 0) {
      return nullptr;  // the node may outlive the tensor
    }
    Py_RETURN_NONE;
  });
}
PyObject* handle_enter(PyObject* self, PyObject*) {
  Py_INCREF(self);
  return self;
}
PyObject* handle_exit(PyObject* self, PyObject*) { return handle_remove(self, nullptr); }
PyObject* handle_id(PyObject* self, void*) {
  return PyLong_FromUnsignedLongLong(as_handle(self)->id);
}
int handle_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(as_handle(self)->cell);
  return 0;
}
int handle_clear(PyObject* self) {
  Py_CLEAR(as_handle(self)->cell);
  return 0;
}
void handle_dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  as_handle(self)->tensor.~WeakTensorRef();
  Py_CLEAR(as_handle(self)->cell);
  Py_TYPE(self)->tp_free(self);
}
PyHandle* new_handle(uint64_t id) {
  PyHandle* self = as_handle(HandleType.tp_alloc(&HandleType, 0));
  if (self == nullptr) return nullptr;
  new (&self->tensor) WeakTensorRef();
  self->id = id;
  return self;
}
PyMethodDef handle_methods[] = {
    {"remove", handle_remove, METH_NOARGS, "Removes the hook; again is harmless."},
    {"__enter__", handle_enter, METH_NOARGS, nullptr},
    {"__exit__", handle_exit, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef handle_getset[] = {{"id", handle_id, nullptr, nullptr, nullptr},
                               {nullptr, nullptr, nullptr, nullptr, nullptr}};

// ---- Hooks of nodes ----

// A tuple of tensors, None for NULL.
PyObject* tuple_of(lamella_tensor* const* tensors, uint32_t count) {
  PyObject* tuple = PyTuple_New(count);
  for (uint32_t i = 0; tuple != nullptr && i < count; ++i) {
    PyObject* item = wrap(TensorBase::borrow(tensors[i]));
    if (item == nullptr) {
      Py_CLEAR(tuple);
    } else {
      PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), item);
    }
  }
  return tuple;
}

// The function is stored in a cell, which the handle empties.
class CellHook : public autograd::NodeHook {
 public:
  explicit CellHook(PyObject* cell) : cell_(Ref::borrow(cell).release()) {}
  ~CellHook() override { release_object(cell_); }
  PyObject* cell() const { return cell_; }

 protected:
  PyObject* cell_;
};

class PythonNodeHook final : public CellHook {
 public:
  PythonNodeHook(PyObject* cell, bool before) : CellHook(cell), before_(before) {}

  lamella_status run(lamella_tensor** values, uint32_t count, lamella_tensor* const* grads,
                     uint32_t grad_count) override {
    GilScope gil;
    Ref function(PyCell_Get(cell_));
    if (!function) return LAMELLA_OK;  // removed
    Ref given(tuple_of(values, count));
    Ref outer(given && !before_ ? tuple_of(grads, grad_count) : nullptr);
    if (!given || (!before_ && !outer)) return keep_python_error();
    PyObject* stack[] = {given.get(), outer.get()};
    Ref result(call_vector(function.get(), stack, before_ ? 1 : 2, nullptr));
    if (!result) return keep_python_error();
    if (result.get() == Py_None) return LAMELLA_OK;
    return take(result.get(), values, count);
  }

 private:
  lamella_status take(PyObject* result, lamella_tensor** values, uint32_t count) {
    PyObject** items = &result;
    Py_ssize_t size = 1;
    if (PyTuple_Check(result)) {
      items = &PyTuple_GET_ITEM(result, 0);
      size = PyTuple_GET_SIZE(result);
    }
    const char* what = before_ ? "register_prehook" : "register_hook";
    if (size != static_cast<Py_ssize_t>(count)) {
      PyErr_Format(PyExc_RuntimeError, "%s: expected the hook to return %u gradients, got %zd",
                   what, count, size);
      return keep_python_error();
    }
    for (Py_ssize_t i = 0; i < size; ++i) {
      if (items[i] == Py_None || is_tensor(items[i])) continue;
      PyErr_Format(PyExc_TypeError,
                   "%s: expected the hook to return Tensors or None, got %s at %zd", what,
                   Py_TYPE(items[i])->tp_name, i);
      return keep_python_error();
    }
    for (Py_ssize_t i = 0; i < size; ++i) {
      lamella_tensor* fresh = items[i] != Py_None ? tensor_of(items[i]) : nullptr;
      if (fresh != nullptr) detail::retain(fresh);
      TensorBase::adopt(std::exchange(values[i], fresh));
    }
    return LAMELLA_OK;
  }

  bool before_;
};

class PythonAccumulateHook final : public CellHook {
 public:
  PythonAccumulateHook(PyObject* cell, const TensorBase& tensor)
      : CellHook(cell), tensor_(tensor) {}

  lamella_status run(lamella_tensor**, uint32_t, lamella_tensor* const*, uint32_t) override {
    GilScope gil;
    Ref function(PyCell_Get(cell_));
    TensorBase tensor = tensor_.lock();
    if (!function || !tensor.defined()) return LAMELLA_OK;
    Ref argument(wrap(std::move(tensor)));
    if (!argument) return keep_python_error();
    PyObject* given = argument.get();
    Ref result(call_vector(function.get(), &given, 1, nullptr));
    if (!result) return keep_python_error();
    if (result.get() != Py_None) {
      PyErr_Format(PyExc_RuntimeError,
                   "register_post_accumulate_grad_hook: expected the hook to return None, got %s",
                   Py_TYPE(result.get())->tp_name);
      return keep_python_error();
    }
    return LAMELLA_OK;
  }

 private:
  WeakTensorRef tensor_;
};

// ---- Hooks for what is saved ----

void destroy_held(lamella_object* object) {
  auto* held = static_cast<HeldObject*>(object);
  release_object(held->object);
  delete held;
}

class PythonSavedHooks final : public autograd::SavedHooks {
 public:
  PythonSavedHooks(PyObject* pack, PyObject* unpack)
      : pack_(Ref::borrow(pack).release()), unpack_(Ref::borrow(unpack).release()) {}
  ~PythonSavedHooks() override {
    release_object(pack_);
    release_object(unpack_);
  }

  lamella_status pack(lamella_tensor* tensor, lamella_tensor* alias,
                      lamella_object** packed) override {
    GilScope gil;
    Ref argument(wrap(TensorBase::borrow(tensor)));
    if (!argument) return keep_python_error();
    PyObject* given = argument.get();
    Ref result(call_vector(pack_, &given, 1, nullptr));
    if (result && result.get() == given) result = Ref(wrap(TensorBase::borrow(alias)));
    if (!result) return keep_python_error();
    *packed = hold_object(result.release());
    return LAMELLA_OK;
  }
  lamella_status unpack(lamella_object* packed, lamella_tensor** tensor) override {
    GilScope gil;
    PyObject* given = held_object(packed);
    Ref result(call_vector(unpack_, &given, 1, nullptr));
    if (!result) return keep_python_error();
    if (!is_tensor(result.get())) {
      PyErr_Format(PyExc_TypeError,
                   "saved_tensors_hooks: expected 'unpack_hook' to return a Tensor, got %s",
                   Py_TYPE(result.get())->tp_name);
      return keep_python_error();
    }
    *tensor = tensor_of(result.get());
    detail::retain(*tensor);
    return LAMELLA_OK;
  }

 private:
  PyObject* pack_;
  PyObject* unpack_;
};

}  // namespace

std::shared_ptr<autograd::SavedHooks> make_saved_hooks(PyObject* pack, PyObject* unpack) {
  return std::make_shared<PythonSavedHooks>(pack, unpack);
}

namespace {

PyObject* push_hooks(PyObject*, PyObject* args) {
  PyObject *pack, *unpack;
  if (!PyArg_ParseTuple(args, "OO:saved_tensors_hooks", &pack, &unpack)) return nullptr;
  return guarded([&]() -> PyObject* {
    autograd::push_saved_hooks(make_saved_hooks(pack, unpack));
    Py_RETURN_NONE;
  });
}
PyObject* pop_hooks(PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    autograd::pop_saved_hooks();
    Py_RETURN_NONE;
  });
}
// _disable_saved_tensors_hooks(text) -> the text before
PyObject* disable_hooks(PyObject*, PyObject* text) {
  const char* message = PyUnicode_AsUTF8(text);
  if (message == nullptr) return nullptr;
  return guarded([&] {
    std::string before = autograd::saved_hooks_disabled();
    autograd::disable_saved_hooks(message);
    return PyUnicode_FromString(before.c_str());
  });
}

// ---- The collector ----

int visit_hook(const autograd::NodeHook* hook, visitproc visit, void* arg) {
  if (auto* known = dynamic_cast<const CellHook*>(hook)) Py_VISIT(known->cell());
  return 0;
}

// Visits the objects that a node owns, except through its edges.
int visit_node(autograd::Node* node, visitproc visit, void* arg) {
  Py_VISIT(static_cast<PyObject*>(node->python_object()));
  autograd::NodeExtras* extras = node->extras_or_null();
  if (extras == nullptr) return 0;
  for (const auto& [id, hook] : extras->tensor_hooks.all()) {
    if (hook->tensor.call == call_tensor_hook) {
      Py_VISIT(static_cast<PyObject*>(hook->tensor.context));
    }
  }
  for (const auto* hooks : {&extras->pre_hooks, &extras->post_hooks}) {
    for (const auto& entry : hooks->all()) {
      if (int stop = visit_hook(entry.second.get(), visit, arg); stop != 0) return stop;
    }
  }
  if (extras->anomaly != nullptr && extras->anomaly->references == 1) {
    Py_VISIT(held_object(extras->anomaly));
  }
  return 0;
}

int visit_graph(autograd::Node* first, visitproc visit, void* arg) {
  // Enough for usual graphs; a longer walk would slow down each collection.
  constexpr int kMaxVisited = 32;
  autograd::Node* waiting[kMaxVisited];
  int count = 0, seen = 0;
  waiting[count++] = first;
  while (seen < count) {
    autograd::Node* node = waiting[seen++];
    if (int stop = visit_node(node, visit, arg); stop != 0) return stop;
    for (uint32_t i = 0; i < node->edge_count() && count < kMaxVisited; ++i) {
      autograd::Node* next = node->edge(i).node.get();
      if (next != nullptr && next->use_count() == 1) waiting[count++] = next;
    }
  }
  return 0;
}

// ---- Callbacks ----

void call_back(void* function) {
  GilScope gil;
  Ref result(PyObject_CallNoArgs(static_cast<PyObject*>(function)));
  if (!result) detail::throw_status(keep_python_error());
}

// _queue_callback(function): called without arguments when the backward that runs has ended.
PyObject* queue_callback(PyObject*, PyObject* function) {
  if (!PyCallable_Check(function)) {
    return PyErr_Format(PyExc_TypeError, "queue_callback: expected a function, got %s",
                        Py_TYPE(function)->tp_name);
  }
  return guarded([&]() -> PyObject* {
    // Called before the reference is taken, as it throws if no backward runs.
    autograd::queue_callback(call_back, release_object, function);
    Py_INCREF(function);
    Py_RETURN_NONE;
  });
}

PyMethodDef functions[] = {{"_queue_callback", queue_callback, METH_O, nullptr},
                           {"_push_saved_tensors_hooks", push_hooks, METH_VARARGS, nullptr},
                           {"_pop_saved_tensors_hooks", pop_hooks, METH_NOARGS, nullptr},
                           {"_disable_saved_tensors_hooks", disable_hooks, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

// ---- Anomaly mode ----

namespace {
constexpr char kTraceback[] = "traceback_";
}  // namespace

// The stack is an entry of a metadata dict.
lamella_object* capture_calls() {
  if (!Py_IsInitialized()) return nullptr;
  GilScope gil;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  Ref module(PyImport_ImportModule("traceback"));
  Ref lines(module ? PyObject_CallMethod(module.get(), "format_stack", nullptr) : nullptr);
  Ref dict(lines ? PyDict_New() : nullptr);
  if (dict && PyDict_SetItemString(dict.get(), kTraceback, lines.get()) != 0) dict = Ref();
  PyErr_Clear();
  PyErr_Restore(type, value, traceback);
  return dict ? hold_object(dict.release()) : nullptr;
}
void describe_calls(lamella_object* where, std::string* text) {
  GilScope gil;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyObject* dict = held_object(where);
  PyObject* lines = dict != nullptr ? PyDict_GetItemString(dict, kTraceback) : nullptr;
  if (lines != nullptr && PyList_Check(lines)) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(lines); ++i) {
      PyObject* line = PyList_GET_ITEM(lines, i);
      const char* utf8 = PyUnicode_Check(line) ? PyUnicode_AsUTF8(line) : nullptr;
      if (utf8 != nullptr) *text += utf8;
    }
  }
  PyErr_Clear();
  PyErr_Restore(type, value, traceback);
}

namespace {
struct Waiting {
  void (*end)(void*);
  void* what;
};
std::mutex waiting_mutex;
std::vector<Waiting>& waiting_list() {
  static auto* list = new std::vector<Waiting>();
  return *list;
}
int end_waiting_call(void*) {
  end_waiting();
  return 0;
}
}  // namespace

void end_with_gil(void (*end)(void*), void* what) {
  if (!Py_IsInitialized()) return;
  if (PyGILState_Check()) {
    end(what);
    return;
  }
  {
    std::lock_guard lock(waiting_mutex);
    waiting_list().push_back({end, what});
  }
  // If the queue of pending calls is full, the next thread that takes the GIL back does it.
  Py_AddPendingCall(end_waiting_call, nullptr);
}

void end_waiting() {
  std::vector<Waiting> taken;
  {
    std::lock_guard lock(waiting_mutex);
    taken.swap(waiting_list());
  }
  for (const Waiting& entry : taken) entry.end(entry.what);
}

void release_object(void* object) {
  end_with_gil([](void* what) { Py_DECREF(static_cast<PyObject*>(what)); }, object);
}

lamella_object* hold_object(PyObject* owned) {
  auto* held = new HeldObject();
  held->references = 1;
  held->destroy = destroy_held;
  held->object = owned;
  return held;
}
PyObject* held_object(lamella_object* object) {
  return object != nullptr && object->destroy == destroy_held
             ? static_cast<HeldObject*>(object)->object
             : nullptr;
}

PyObject* metadata_of(autograd::Node* node) {
  lamella_object*& place = node->extras().anomaly;
  PyObject* dict = held_object(place);
  if (dict == nullptr) {
    Ref made(PyDict_New());
    if (!made || place != nullptr) return made.release();
    dict = made.get();
    place = hold_object(made.release());
  }
  Py_INCREF(dict);
  return dict;
}

PyObject* make_handle(WeakTensorRef tensor, uint64_t id, void (*remove)(lamella_tensor*, uint64_t),
                      PyObject* cell) {
  PyHandle* self = new_handle(id);
  if (self == nullptr) return nullptr;
  self->remove = remove;
  self->tensor = std::move(tensor);
  self->cell = Ref::borrow(cell).release();
  return reinterpret_cast<PyObject*>(self);
}

PyObject* add_node_hook(autograd::Node* node, PyObject* hook, bool before) {
  Ref cell(PyCell_New(hook));
  if (!cell) return nullptr;
  uint64_t id = autograd::next_hook_id();
  autograd::NodeExtras& extras = node->extras();
  (before ? extras.pre_hooks : extras.post_hooks)
      .add(id, std::make_shared<PythonNodeHook>(cell.get(), before));
  return make_handle(WeakTensorRef(), id, nullptr, cell.get());
}
PyObject* add_accumulate_hook(PyObject* tensor, PyObject* hook) {
  Ref cell(PyCell_New(hook));
  if (!cell) return nullptr;
  auto made = std::make_unique<PythonAccumulateHook>(cell.get(), tensor_ref(tensor));
  uint64_t id = autograd::add_post_accumulate_hook(tensor_of(tensor), std::move(made));
  track(tensor);
  return make_handle(WeakTensorRef(tensor_ref(tensor)), id, autograd::remove_post_accumulate_hook,
                     cell.get());
}

lamella_status call_tensor_hook(void* context, lamella_tensor* grad, lamella_tensor** replacement) {
  GilScope gil;
  Ref argument(wrap(TensorBase::borrow(grad)));
  if (!argument) return keep_python_error();
  PyObject* given = argument.get();
  Ref hook(PyCell_Get(static_cast<PyObject*>(context)));
  if (!hook) return LAMELLA_OK;  // removed
  Ref result(call_vector(hook.get(), &given, 1, nullptr));
  if (!result) return keep_python_error();
  if (result.get() == Py_None) return LAMELLA_OK;
  if (!is_tensor(result.get())) {
    PyErr_Format(PyExc_TypeError,
                 "register_hook: expected the hook to return a Tensor or None, "
                 "got %s",
                 Py_TYPE(result.get())->tp_name);
    return keep_python_error();
  }
  *replacement = tensor_of(result.get());
  detail::retain(*replacement);
  return LAMELLA_OK;
}

int visit_owned(autograd::Node* node, visitproc visit, void* arg) {
  if (node == nullptr || others_may_run() || node->use_count() != 1) return 0;
  return visit_graph(node, visit, arg);
}

int visit_tensor(lamella_tensor* tensor, visitproc visit, void* arg) {
  if (others_may_run() || __atomic_load_n(&tensor->references, __ATOMIC_RELAXED) != 1) return 0;
  // The tensor, and bases that only this view keeps alive.
  for (auto* t = static_cast<TensorImpl*>(tensor); t != nullptr; t = t->base) {
    if (t != tensor && (t->references != 1 || t->python_object != nullptr)) break;
    autograd::AutogradMeta* meta = autograd::meta_of(t);
    autograd::Node* made_by = autograd::bare_node(t);
    if (meta != nullptr) made_by = meta->grad_fn.get();
    if (made_by != nullptr && made_by->use_count() == 1) {
      if (int stop = visit_graph(made_by, visit, arg); stop != 0) return stop;
    }
    if (meta == nullptr) continue;
    if (meta->leaf != nullptr && meta->leaf->use_count() == 1) {
      if (int stop = visit_node(meta->leaf, visit, arg); stop != 0) return stop;
    }
    if (meta->post_accumulate == nullptr) continue;
    for (const auto& entry : meta->post_accumulate->all()) {
      if (int stop = visit_hook(entry.second.get(), visit, arg); stop != 0) return stop;
    }
  }
  return 0;
}

int add_hooks(PyObject* module) {
  HandleType.tp_name = "lamella.utils.hooks.RemovableHandle";
  HandleType.tp_doc = "Removes a hook.";
  HandleType.tp_basicsize = sizeof(PyHandle);
  HandleType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC;
  HandleType.tp_traverse = handle_traverse;
  HandleType.tp_clear = handle_clear;
  HandleType.tp_dealloc = handle_dealloc;
  HandleType.tp_methods = handle_methods;
  HandleType.tp_getset = handle_getset;
  if (PyType_Ready(&HandleType) != 0) return -1;
  Py_INCREF(&HandleType);
  if (PyModule_AddObject(module, "_RemovableHandle", reinterpret_cast<PyObject*>(&HandleType)) !=
      0) {
    return -1;
  }
  autograd::set_anomaly_hooks({capture_calls, describe_calls});
  return PyModule_AddFunctions(module, functions);
}

}  // namespace lamella::python
