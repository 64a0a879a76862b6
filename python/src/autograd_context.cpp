// Contexts of Python functions: their attributes, and the call of backward.
#include "python/src/autograd_context.h"

#include <cstring>

#include "python/src/autograd_where.h"
#include "python/src/errors.h"
#include "python/src/gil.h"

namespace lamella::python {

PyTypeObject ContextType = {PyVarObject_HEAD_INIT(nullptr, 0)};

namespace {

PyObject* new_or_none(PyObject* object) {
  if (object == nullptr) Py_RETURN_NONE;
  Py_INCREF(object);
  return object;
}

void set_slot(PyObject** slot, PyObject* value) {
  Py_XINCREF(value);
  PyObject* old = std::exchange(*slot, value);
  Py_XDECREF(old);
}

void drop_saved(PyContext* self) {
  if (self->readers != 0) return;
  self->saved_count = 0;
  delete[] std::exchange(self->saved, nullptr);
  delete[] std::exchange(self->saved_levels, nullptr);
}

// ---- Methods for forward ----

// Tensors or None only; `what` names the method.
bool only_tensors(PyObject* tuple, const char* what, bool none_too) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i) {
    PyObject* item = PyTuple_GET_ITEM(tuple, i);
    if (is_tensor(item) || (none_too && item == Py_None)) continue;
    PyErr_Format(PyExc_TypeError, "%s: expected argument %zd to be a Tensor%s, got %s", what, i,
                 none_too ? " or None" : "", Py_TYPE(item)->tp_name);
    return false;
  }
  return true;
}

PyObject* save_for_backward(PyObject* self, PyObject* args) {
  if (!only_tensors(args, "save_for_backward", true)) return nullptr;
  set_slot(&as_context(self)->to_save, args);
  Py_RETURN_NONE;
}
PyObject* save_for_forward(PyObject* self, PyObject* args) {
  if (!only_tensors(args, "save_for_forward", true)) return nullptr;
  set_slot(&as_context(self)->saved_for_forward, args);
  Py_RETURN_NONE;
}
PyObject* mark_dirty(PyObject* self, PyObject* args) {
  if (!only_tensors(args, "mark_dirty", false)) return nullptr;
  set_slot(&as_context(self)->dirty, args);
  Py_RETURN_NONE;
}
PyObject* mark_non_differentiable(PyObject* self, PyObject* args) {
  if (!only_tensors(args, "mark_non_differentiable", false)) return nullptr;
  set_slot(&as_context(self)->non_differentiable, args);
  Py_RETURN_NONE;
}
PyObject* set_materialize_grads(PyObject* self, PyObject* value) {
  int flag = PyObject_IsTrue(value);
  if (flag < 0) return nullptr;
  as_context(self)->materialize = flag != 0;
  Py_RETURN_NONE;
}
PyObject* mark_shared_storage(PyObject*, PyObject*) { Py_RETURN_NONE; }

// ---- Attributes ----

constexpr char kFreed[] =
    "expected its saved tensors to be there, got a graph that was freed by an earlier backward; "
    "pass "
    "retain_graph=True to that one";

PyObject* get_saved_tensors(PyObject* object, void*) {
  PyContext* self = as_context(object);
  if (self->released) {
    return PyErr_Format(PyExc_RuntimeError, "%s: %s", context_name(self), kFreed);
  }
  if (self->saved == nullptr) {
    if (self->saved_for_forward != nullptr) return new_or_none(self->saved_for_forward);
    return PyTuple_New(0);
  }
  // Another thread may release what was saved while hooks run, so the node is held.
  autograd::NodePtr node;
  if (self->base.node != nullptr) node = hold_node(object);
  PyErr_Clear();
  ++self->readers;
  PyObject* tuple = guarded([&]() -> PyObject* {
    Ref made(PyTuple_New(self->saved_count));
    for (uint32_t i = 0; made && i < self->saved_count; ++i) {
      TensorBase found = self->saved[i].unpack(node.get(), str("saved_tensors[", i, "]").c_str());
      if (self->saved_levels != nullptr && !self->saved_levels[i].empty()) {
        found = batching_hooks().hide(found, self->saved_levels[i]);
      }
      PyObject* item = wrap(std::move(found));
      if (item == nullptr) return nullptr;
      PyTuple_SET_ITEM(made.get(), static_cast<Py_ssize_t>(i), item);
    }
    return made.release();
  });
  if (--self->readers == 0 && self->released) drop_saved(self);
  return tuple;
}

PyObject* get_saved_variables(PyObject* object, void*) {
  const char* text = "saved_variables is deprecated; use saved_tensors";
  if (PyErr_WarnEx(PyExc_DeprecationWarning, text, 1) != 0) return nullptr;
  return get_saved_tensors(object, nullptr);
}

PyObject* get_needs_input_grad(PyObject* object, void*) {
  PyContext* self = as_context(object);
  if (self->needs != nullptr) return new_or_none(self->needs);
  PyObject* tuple = PyTuple_New(self->input_count);
  for (uint32_t i = 0; tuple != nullptr && i < self->input_count; ++i) {
    PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i),
                     PyBool_FromLong((self->inputs[i] & kInputNeeded) != 0));
  }
  return tuple;
}

int put_needs_input_grad(PyObject* self, PyObject* value, void*) {
  set_slot(&as_context(self)->needs, value);
  return 0;
}

template <PyObject* PyContext::*Slot>
PyObject* get_slot(PyObject* self, void*) {
  return new_or_none(as_context(self)->*Slot);
}
template <PyObject* PyContext::*Slot>
int put_slot(PyObject* self, PyObject* value, void* what) {
  if (value == Py_None) value = nullptr;
  if (value != nullptr && !PyTuple_Check(value)) {
    PyErr_Format(PyExc_TypeError, "%s: expected a tuple, got %s", static_cast<const char*>(what),
                 Py_TYPE(value)->tp_name);
    return -1;
  }
  if (value != nullptr && !only_tensors(value, static_cast<const char*>(what), true)) return -1;
  set_slot(&(as_context(self)->*Slot), value);
  return 0;
}
PyObject* get_materialize(PyObject* self, void*) {
  return PyBool_FromLong(as_context(self)->materialize);
}
int put_materialize(PyObject* self, PyObject* value, void*) {
  Ref done(value != nullptr ? set_materialize_grads(self, value) : nullptr);
  return done ? 0 : -1;
}
PyObject* get_forward_class(PyObject* self, void*) {
  return new_or_none(reinterpret_cast<PyObject*>(as_context(self)->function));
}

// ---- Life ----

int context_traverse(PyObject* object, visitproc visit, void* arg) {
  PyContext* self = as_context(object);
  Py_VISIT(self->base.dict);
  Py_VISIT(reinterpret_cast<PyObject*>(self->function));
  Py_VISIT(self->to_save);
  Py_VISIT(self->saved_for_forward);
  Py_VISIT(self->dirty);
  Py_VISIT(self->non_differentiable);
  return 0;
}
int context_clear(PyObject* object) {
  PyContext* self = as_context(object);
  Py_CLEAR(self->base.dict);
  Py_CLEAR(self->to_save);
  Py_CLEAR(self->saved_for_forward);
  Py_CLEAR(self->dirty);
  Py_CLEAR(self->non_differentiable);
  drop_saved(self);
  return 0;
}
void context_dealloc(PyObject* object) {
  PyContext* self = as_context(object);
  PyObject_GC_UnTrack(object);
  if (self->base.weak_references != nullptr) PyObject_ClearWeakRefs(object);
  context_clear(object);
  Py_CLEAR(self->zeros);
  Py_CLEAR(self->needs);
  if (self->inputs != self->inline_inputs) PyMem_Free(self->inputs);
  Py_CLEAR(self->function);
  Py_TYPE(object)->tp_free(object);
}

// ---- The call of backward ----

// Adds to the pending error where the node's forward was called, in anomaly mode.
void note_forward(autograd::Node* node) {
#if PY_VERSION_HEX >= 0x030B0000
  autograd::NodeExtras* extras = node->extras_or_null();
  std::string text;
  if (extras != nullptr && extras->anomaly != nullptr) describe_calls(extras->anomaly, &text);
  if (text.empty()) return;
  text = node->name() + " was recorded here:\n" + text;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  Ref done(PyObject_CallMethod(value, "add_note", "s", text.c_str()));
  PyErr_Clear();
  PyErr_Restore(type, value, traceback);
#endif
}

// The function that gives the gradients: `backward`, or `vjp` where the class has that.
PyObject* backward_function(PyContext* self) {
  static PyObject* backward_name = PyUnicode_InternFromString("backward");
  static PyObject* vjp_name = PyUnicode_InternFromString("vjp");
  auto* cls = reinterpret_cast<PyObject*>(self->function);
  PyObject* backward = PyObject_GetAttr(cls, backward_name);
  if (backward == nullptr || backward != function_defaults.backward) return backward;
  Py_DECREF(backward);
  return PyObject_GetAttr(cls, vjp_name);
}

// Zeros for output i, as an object; None if its shape is unknown.
PyObject* zeros_for(PyContext* self, autograd::Node* node, uint32_t i) {
  if (self->zeros != nullptr) {
    Ref index(PyLong_FromUnsignedLong(i));
    PyObject* known = index ? PyDict_GetItemWithError(self->zeros, index.get()) : nullptr;
    if (known == nullptr && PyErr_Occurred() != nullptr) return nullptr;
    if (known != nullptr) {
      Ref package(PyImport_ImportModule("lamella"));
      Ref zeros(package ? PyObject_GetAttrString(package.get(), "zeros") : nullptr);
      if (!zeros) return nullptr;
      Ref kwargs(Py_BuildValue("{s:O,s:O}", "dtype", PyTuple_GET_ITEM(known, 1), "device",
                               PyTuple_GET_ITEM(known, 2)));
      Ref args(kwargs ? PyTuple_Pack(1, PyTuple_GET_ITEM(known, 0)) : nullptr);
      return args ? call_object(zeros.get(), args.get(), kwargs.get()) : nullptr;
    }
  }
  if (node->output(i).ndim < 0) Py_RETURN_NONE;
  lamella_tensor* made = nullptr;
  lamella_status status = lamella_node_zeros(autograd::to_abi(node), i, &made);
  if (status != LAMELLA_OK) return raise_status(status);
  TensorBase zeros = TensorBase::adopt(made);
  auto* levels = static_cast<PythonNode*>(node)->levels();
  return wrap(levels != nullptr ? levels->hide_output(zeros, i) : std::move(zeros));
}

// The name of the function in errors: for the gradient class of an operator, the operator's name.
struct Named {
  explicit Named(PyContext* self)
      : given(
            PyObject_GetAttrString(reinterpret_cast<PyObject*>(self->function), "_operator_name")) {
    const char* text = given ? PyUnicode_AsUTF8(given.get()) : nullptr;
    PyErr_Clear();
    name = text != nullptr ? text : context_name(self);
    of_forward = text != nullptr ? "" : " of 'forward'";
  }
  Ref given;
  const char* name;
  const char* of_forward;
};

// Stores the gradients that backward returned, one for each argument of forward, into `results`,
// one for each tensor argument.
bool take_gradients(PyContext* self, PyObject* returned, lamella_tensor** results,
                    uint32_t result_count) {
  PyObject** items = &returned;
  auto count = Py_ssize_t{1};
  if (PyTuple_Check(returned)) {
    items = &PyTuple_GET_ITEM(returned, 0);
    count = PyTuple_GET_SIZE(returned);
  }
  auto expected = static_cast<Py_ssize_t>(self->input_count);
  while (count > expected && items[count - 1] == Py_None) --count;
  if (count != expected) {
    Named named(self);
    PyErr_Format(
        PyExc_RuntimeError,
        "%s: expected 'backward' to return %zd gradient%s, one for each argument%s, got %zd",
        named.name, expected, expected == 1 ? "" : "s", named.of_forward, count);
    return false;
  }
  uint32_t next = 0;
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* item = items[i];
    bool tensor_input = (self->inputs[i] & kInputTensor) != 0;
    if (!tensor_input) {
      if (item == Py_None) continue;
      Named named(self);
      PyErr_Format(PyExc_RuntimeError,
                   "%s: expected gradient %zd to be None, as argument %zd%s is not a Tensor, got "
                   "%s",
                   named.name, i, i, named.of_forward, Py_TYPE(item)->tp_name);
      return false;
    }
    uint32_t at = next++;
    if (item == Py_None) continue;
    if (!is_tensor(item)) {
      PyErr_Format(PyExc_RuntimeError, "%s: expected gradient %zd to be a Tensor or None, got %s",
                   Named(self).name, i, Py_TYPE(item)->tp_name);
      return false;
    }
    if (at >= result_count) continue;
    results[at] = tensor_of(item);
    detail::retain(results[at]);
  }
  return true;
}

}  // namespace

// ---- The node ----

PythonNode::PythonNode(PyContext* context, autograd::Edge* edges, uint32_t edge_count)
    : Node(edges, edge_count), context_(context), name_(context_name(context)) {
  Py_INCREF(reinterpret_cast<PyObject*>(context));
  context->base.node = this;
}

autograd::NodePtr PythonNode::make(PyContext* context, uint32_t edge_count) {
  static_assert(sizeof(PythonNode) % alignof(autograd::Edge) == 0);
  auto* memory =
      static_cast<char*>(::operator new(sizeof(PythonNode) + edge_count * sizeof(autograd::Edge)));
  auto* edges = reinterpret_cast<autograd::Edge*>(memory + sizeof(PythonNode));
  for (uint32_t i = 0; i < edge_count; ++i) new (edges + i) autograd::Edge();
  return autograd::NodePtr::adopt(new (memory) PythonNode(context, edges, edge_count));
}

// The context points to the node until this thread, or another one, ends it with the GIL.
void PythonNode::deallocate() noexcept {
  end_with_gil([](void* node) { static_cast<PythonNode*>(node)->end(); }, this);
}

// The edges are stored behind the node, in the same allocation.
void PythonNode::end() noexcept {
  context_->base.node = nullptr;
  Py_DECREF(reinterpret_cast<PyObject*>(context_));
  auto* edges = const_cast<autograd::Edge*>(edge_count() != 0 ? &edge(0) : nullptr);
  uint32_t count = edge_count();
  this->~PythonNode();
  for (uint32_t i = 0; i < count; ++i) edges[i].~Edge();
  ::operator delete(this);
}

void PythonNode::release_saved() noexcept {
  if (context_->saved == nullptr) return;
  GilScope gil;
  context_->released = true;
  drop_saved(context_);
}

std::vector<autograd::SavedTensor*> PythonNode::saved_tensors(const char* name, bool* is_list) {
  std::vector<autograd::SavedTensor*> found;
  *is_list = strcmp(name, "tensors") == 0;
  if (!*is_list) return found;
  LAMELLA_CHECK(!given_up() && !context_->released, name_, ": ", kFreed);
  for (uint32_t i = 0; i < context_->saved_count; ++i) found.push_back(&context_->saved[i]);
  return found;
}

// Note [Nodes under vmap].
lamella_status PythonNode::apply(lamella_tensor* const* grads, lamella_tensor** results,
                                 autograd::WantedEdges) {
  GilScope gil;
  if (levels_ == nullptr) return call_backward(grads, results);
  try {
    LevelsAgain again(levels_->all());
    std::vector<TensorBase> kept;
    std::vector<lamella_tensor*> given;
    for (uint32_t i = 0; i < output_count(); ++i) {
      kept.push_back(levels_->hide_output(TensorBase::borrow(grads[i]), i));
      given.push_back(kept.back().impl());
    }
    lamella_status status = call_backward(given.data(), results);
    for (uint32_t i = 0; status == LAMELLA_OK && i < edge_count(); ++i) {
      if (results[i] == nullptr) continue;
      TensorBase result = TensorBase::adopt(std::exchange(results[i], nullptr));
      results[i] = levels_->expose_input(result, i).unsafe_release();
    }
    return status;
  } catch (...) {
    return lamella::detail::status_of_current_exception();
  }
}

lamella_status PythonNode::call_backward(lamella_tensor* const* grads, lamella_tensor** results) {
  PyContext* self = context_;
  uint32_t grad_count = output_count(), result_count = edge_count();
  Ref function(backward_function(self));
  if (!function) return keep_python_error();
  constexpr uint32_t kMaxInlineGradients = 8;
  PyObject* few[kMaxInlineGradients + 2];
  PyObject** stack = few;
  if (grad_count > kMaxInlineGradients) {
    stack = static_cast<PyObject**>(PyMem_Malloc((grad_count + 2) * sizeof(PyObject*)));
    if (stack == nullptr) return LAMELLA_OUT_OF_MEMORY;
  }
  stack[0] = nullptr;
  stack[1] = reinterpret_cast<PyObject*>(self);
  Py_INCREF(stack[1]);
  uint32_t given = 0;
  bool failed = false;
  for (; given < grad_count && !failed; ++given) {
    PyObject* grad;
    if (grads[given] != nullptr) {
      grad = wrap(TensorBase::borrow(grads[given]));
    } else if (self->materialize) {
      grad = zeros_for(self, this, given);
    } else {
      Py_INCREF(Py_None);
      grad = Py_None;
    }
    stack[2 + given] = grad;
    failed = grad == nullptr;
  }
  lamella_status status = LAMELLA_OK;
  Ref returned;
  if (!failed) {
    returned = Ref(call_vector(function.get(), stack + 1,
                               (grad_count + 1) | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr));
    failed = !returned || !take_gradients(self, returned.get(), results, result_count);
  }
  if (failed) {
    for (uint32_t i = 0; i < result_count; ++i) {
      if (results[i] != nullptr) detail::release(std::exchange(results[i], nullptr));
    }
    note_forward(this);
    status = keep_python_error();
  }
  for (uint32_t i = 0; i < given + 1; ++i) Py_XDECREF(stack[1 + i]);
  if (stack != few) PyMem_Free(stack);
  return status;
}

namespace {

PyMethodDef context_methods[] = {
    {"save_for_backward", save_for_backward, METH_VARARGS,
     "Keeps tensors for backward, in saved_tensors. To be called once, in forward."},
    {"save_for_forward", save_for_forward, METH_VARARGS, "Keeps tensors for jvp."},
    {"mark_dirty", mark_dirty, METH_VARARGS, "Marks the inputs that forward has written."},
    {"mark_non_differentiable", mark_non_differentiable, METH_VARARGS,
     "Marks the outputs that have no gradient."},
    {"set_materialize_grads", set_materialize_grads, METH_O,
     "Whether backward gets zeros instead of None for missing gradients."},
    {"mark_shared_storage", mark_shared_storage, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

char to_save_name[] = "to_save", forward_name[] = "saved_for_forward",
     dirty_name[] = "dirty_tensors", non_differentiable_name[] = "non_differentiable";
PyGetSetDef context_getset[] = {
    {"saved_tensors", get_saved_tensors, nullptr, "Tensors of save_for_backward().", nullptr},
    {"saved_variables", get_saved_variables, nullptr, nullptr, nullptr},
    {"needs_input_grad", get_needs_input_grad, put_needs_input_grad,
     "For each argument of forward, whether its gradient is wanted.", nullptr},
    {"to_save", get_slot<&PyContext::to_save>, put_slot<&PyContext::to_save>, nullptr,
     to_save_name},
    {"saved_for_forward", get_slot<&PyContext::saved_for_forward>,
     put_slot<&PyContext::saved_for_forward>, nullptr, forward_name},
    {"dirty_tensors", get_slot<&PyContext::dirty>, put_slot<&PyContext::dirty>, nullptr,
     dirty_name},
    {"non_differentiable", get_slot<&PyContext::non_differentiable>,
     put_slot<&PyContext::non_differentiable>, nullptr, non_differentiable_name},
    {"materialize_grads", get_materialize, put_materialize, nullptr, nullptr},
    {"_forward_cls", get_forward_class, nullptr, "The Function.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

}  // namespace

int add_contexts(PyObject* module) {
  ContextType.tp_name = "lamella.autograd.function.FunctionCtx";
  ContextType.tp_doc = "What forward keeps for backward.";
  ContextType.tp_base = &NodeType;
  ContextType.tp_basicsize = sizeof(PyContext);
  ContextType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC;
  ContextType.tp_traverse = context_traverse;
  ContextType.tp_clear = context_clear;
  ContextType.tp_dealloc = context_dealloc;
  ContextType.tp_methods = context_methods;
  ContextType.tp_getset = context_getset;
  ContextType.tp_dictoffset = offsetof(PyNode, dict);
  ContextType.tp_weaklistoffset = offsetof(PyNode, weak_references);
  if (PyType_Ready(&ContextType) != 0) return -1;
  Py_INCREF(&ContextType);
  return PyModule_AddObject(module, "_FunctionCtx", reinterpret_cast<PyObject*>(&ContextType));
}

}  // namespace lamella::python
