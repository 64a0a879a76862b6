// lamella.autograd.Function: classes whose forward and backward are written in Python.
#include "lamella/core/tensor_impl.h"
#include "lamella/dispatch/side_effects.h"
#include "lamella/layers/autograd/engine.h"
#include "lamella/layers/autograd/mode.h"
#include "python/src/autograd_context.h"
#include "python/src/autograd_where.h"
#include "python/src/errors.h"
#include "python/src/gil.h"
#include "python/src/python_kernel.h"

namespace lamella::python {

PyTypeObject FunctionMetaType = {PyVarObject_HEAD_INIT(nullptr, 0)};
FunctionDefaults function_defaults = {};

namespace {

PyObject *name_forward, *name_setup_context;

PyFunctionClass* as_class(PyObject* object) { return reinterpret_cast<PyFunctionClass*>(object); }

// Creates the type of a class's contexts, at its first call.
bool prepare(PyFunctionClass* self) {
  if (self->node_type != nullptr) return true;
  Ref name(PyObject_GetAttrString(reinterpret_cast<PyObject*>(self), "__name__"));
  Ref full(name ? PyUnicode_FromFormat("%UBackward", name.get()) : nullptr);
  if (!full) return false;
  Ref module(PyObject_GetAttrString(reinterpret_cast<PyObject*>(self), "__module__"));
  if (!module) return false;
  Ref type(PyObject_CallFunction(reinterpret_cast<PyObject*>(&PyType_Type), "O(O){s:O,s:()}",
                                 full.get(), &ContextType, "__module__", module.get(),
                                 "__slots__"));
  if (!type) return false;
  self->node_type = type.release();
  return true;
}

PyContext* make_context(PyFunctionClass* function, Py_ssize_t count) {
  auto* type = reinterpret_cast<PyTypeObject*>(function->node_type);
  PyContext* self = as_context(type->tp_alloc(type, 0));
  if (self == nullptr) return nullptr;
  Py_INCREF(function);
  self->function = function;
  self->inputs = self->inline_inputs;
  self->materialize = true;
  if (static_cast<size_t>(count) > sizeof(self->inline_inputs)) {
    self->inputs = static_cast<uint8_t*>(PyMem_Malloc(static_cast<size_t>(count)));
    if (self->inputs == nullptr) {
      self->inputs = self->inline_inputs;
      Py_DECREF(reinterpret_cast<PyObject*>(self));
      PyErr_NoMemory();
      return nullptr;
    }
  }
  self->input_count = static_cast<uint32_t>(count);
  return self;
}

// ---- What forward returned ----

bool contains(PyObject* tuple, PyObject* tensor) {
  if (tuple == nullptr) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i) {
    if (PyTuple_GET_ITEM(tuple, i) == tensor) return true;
  }
  return false;
}

bool has_gradients(const lamella_tensor* tensor) {
  auto type = static_cast<ScalarType>(tensor->scalar_type);
  return is_floating_point(type) || is_complex(type);
}

struct FunctionCall {
  PyContext* context;
  const autograd::NodePtr& node;  // null: nothing is recorded
  PyObject* const* args;
  Py_ssize_t count;
  Py_ssize_t output_count;

  // The position of a tensor among the tensor arguments, or -1.
  int input_of(PyObject* tensor) const {
    int number = 0;
    for (Py_ssize_t i = 0; i < count; ++i) {
      if (args[i] == tensor) return number;
      if ((context->inputs[i] & kInputTensor) != 0) ++number;
    }
    return -1;
  }
};

// Remembers shape, dtype and device of the zeros for an output without gradients.
bool keep_zeros(PyContext* context, Py_ssize_t index, PyObject* tensor) {
  if (!context->materialize) return true;
  if (context->zeros == nullptr) context->zeros = PyDict_New();
  if (context->zeros == nullptr) return false;
  lamella_tensor* raw = tensor_of(tensor);
  Ref key(PyLong_FromSsize_t(index));
  Ref size(size_object(raw->sizes, raw->ndim));
  Ref dtype(dtype_object(static_cast<ScalarType>(raw->scalar_type)));
  Ref device(device_object(Device(static_cast<DeviceType>(raw->device_type), raw->device_index)));
  if (!key || !size || !dtype || !device) return false;
  Ref facts(PyTuple_Pack(3, size.get(), dtype.get(), device.get()));
  return facts && PyDict_SetItem(context->zeros, key.get(), facts.get()) == 0;
}

// One output, as the caller of apply() gets it: a new reference.
PyObject* finish_output(const FunctionCall& call, PyObject* output, Py_ssize_t index) {
  const autograd::NodePtr& node = call.node;
  if (node) {
    auto* levels = static_cast<PythonNode*>(node.get())->levels();
    if (levels != nullptr) levels->add_output(is_tensor(output) ? tensor_of(output) : nullptr);
  }
  if (!is_tensor(output)) {
    if (node) node->add_output(nullptr);
    Py_INCREF(output);
    return output;
  }
  lamella_tensor* tensor = tensor_of(output);
  int input = call.input_of(output);
  bool dirty = contains(call.context->dirty, output);
  bool differentiable =
      node && has_gradients(tensor) && !contains(call.context->non_differentiable, output);
  if (!differentiable) {
    if (node) {
      node->add_output(nullptr);
      if (!keep_zeros(call.context, index, output)) return nullptr;
    }
    // An input that was not written is returned as another tensor, and keeps its own gradients.
    bool recorded = lamella_tensor_requires_grad(tensor) != 0;
    if (input >= 0 ? recorded || !dirty : recorded) return wrap(make_detached(tensor_ref(output)));
    Py_INCREF(output);
    return output;
  }
  // An alias, so that a later write to the output's base does not change its history.
  if (!dirty && (input >= 0 || static_cast<TensorImpl*>(behind_levels(tensor))->base != nullptr)) {
    TensorBase alias = make_detached(tensor_ref(output));
    autograd::set_history(alias.impl(), node);
    return wrap(std::move(alias));
  }
  if (dirty) {
    if (input < 0 &&
        PyErr_WarnFormat(PyExc_UserWarning, 1,
                         "%s: expected mark_dirty() to get inputs only; output %zd is none",
                         context_name(call.context), index) != 0) {
      return nullptr;
    }
    if (lamella_tensor_requires_grad(tensor) != 0) {
      autograd::check_inplace(context_name(call.context), "the input given to mark_dirty()",
                              tensor);
    }
    autograd::rebase_history(tensor, node, input);
  } else {
    autograd::set_history(tensor, node);
  }
  Py_INCREF(output);
  track(output);
  return output;
}

// Checks that every tensor that was marked dirty is an output.
bool check_dirty(const FunctionCall& call, PyObject* const* outputs) {
  PyObject* dirty = call.context->dirty;
  for (Py_ssize_t k = 0; dirty != nullptr && k < PyTuple_GET_SIZE(dirty); ++k) {
    bool found = false;
    for (Py_ssize_t i = 0; i < call.output_count; ++i) {
      found = found || outputs[i] == PyTuple_GET_ITEM(dirty, k);
    }
    if (found) continue;
    PyErr_Format(PyExc_RuntimeError,
                 "%s: expected 'forward' to return every tensor that mark_dirty() got, got none of "
                 "the outputs for number %zd",
                 context_name(call.context), k);
    return false;
  }
  return true;
}

bool save_tensors(const FunctionCall& call, PyObject* const* outputs) {
  PyContext* context = call.context;
  Ref to_save(std::exchange(context->to_save, nullptr));
  if (!to_save) return true;
  Py_ssize_t count = PyTuple_GET_SIZE(to_save.get());
  context->saved = new autograd::SavedTensor[static_cast<size_t>(count)];
  context->saved_count = static_cast<uint32_t>(count);
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* item = PyTuple_GET_ITEM(to_save.get(), i);
    if (item == Py_None) continue;
    int output = -1;
    for (Py_ssize_t k = 0; k < call.output_count; ++k) {
      if (outputs[k] == item) output = static_cast<int>(k);
    }
    // An output without gradients is like any other tensor.
    if (output >= 0 && call.node->output(static_cast<uint32_t>(output)).ndim < 0) output = -1;
    lamella_tensor* tensor = tensor_of(item);
    if (is_batched(tensor)) {
      if (context->saved_levels == nullptr) {
        context->saved_levels = new BatchLevels[static_cast<size_t>(count)];
      }
      context->saved_levels[i] = levels_of(tensor);
    }
    autograd::check_savable("save_for_backward", "tensor", tensor);
    context->saved[i].save(TensorBase::borrow(behind_levels(tensor)), output);
  }
  return true;
}

// Whether the tangent of an output aliases the tangents that jvp was given (`own`, after the
// context) as the output aliases the inputs: an input that was written has its own tangent, written
// since `versions`, and a view has a view of a tangent.
bool aliases_alike(const FunctionCall& call, PyObject* output, PyObject* tangent, PyObject* own,
                   const std::vector<uint32_t>& versions) {
  auto memory = [](PyObject* object) {
    return is_tensor(object) ? behind_levels(tensor_of(object))->storage : nullptr;
  };
  const bool written = contains(call.context->dirty, output);
  bool is_view = false, is_view_of_own = memory(output) == nullptr;
  for (Py_ssize_t k = 0; k < call.count; ++k) {
    PyObject* given = PyTuple_GET_ITEM(own, k + 1);
    if (written && call.args[k] == output) {
      return !is_tensor(given) ||
             (given == tangent && tensor_ref(given)._version() != versions[static_cast<size_t>(k)]);
    }
    is_view |= memory(call.args[k]) == memory(output);
    is_view_of_own |= given != tangent && memory(given) == memory(tangent);
  }
  return written || !is_view || is_view_of_own;
}

// Sets the tangents of the outputs, which the class's jvp computes from those of the inputs.
bool give_tangents(const FunctionCall& call, PyObject* const* outputs) {
  PyContext* context = call.context;
  bool any = false;
  for (Py_ssize_t i = 0; i < call.count; ++i) {
    any = any || (is_tensor(call.args[i]) &&
                  (tensor_of(call.args[i])->flags & LAMELLA_TENSOR_TANGENT) != 0);
  }
  if (!any || (lamella_thread.modes & LAMELLA_MODE_NO_FORWARD) != 0) return true;
  Ref jvp(PyObject_GetAttrString(reinterpret_cast<PyObject*>(context->function), "jvp"));
  if (!jvp) return false;
  Ref args(PyTuple_New(call.count + 1));
  if (!args) return false;
  PyTuple_SET_ITEM(args.get(), 0, Ref::borrow(reinterpret_cast<PyObject*>(context)).release());
  std::vector<uint32_t> versions(static_cast<size_t>(call.count));
  for (Py_ssize_t i = 0; i < call.count; ++i) {
    TensorBase tangent;
    if (is_tensor(call.args[i]) && has_gradients(tensor_of(call.args[i]))) {
      tangent = autograd::tangent(tensor_of(call.args[i]));
      if (!tangent.defined() && context->materialize) {
        static KnownOperator zeros_like{"aten::zeros_like", ""};
        lamella_value none = none_value();
        tangent = call_known(zeros_like,
                             {tensor_value(tensor_of(call.args[i])), none, none, none, none, none});
        if (!tangent.defined()) return false;
      }
    }
    if (tangent.defined()) versions[static_cast<size_t>(i)] = tangent._version();
    PyTuple_SET_ITEM(args.get(), i + 1, wrap(std::move(tangent)));
  }
  // The saved tensors have tangents themselves, which must not be propagated again.
  autograd::ModeGuard mode(LAMELLA_MODE_NO_FORWARD, LAMELLA_MODE_NO_FORWARD);
  Ref returned(call_object(jvp.get(), args.get(), nullptr));
  if (!returned) return false;
  PyObject* single = returned.get();
  PyObject** tangents = &single;
  Py_ssize_t count = 1;
  if (PyTuple_Check(single)) {
    tangents = &PyTuple_GET_ITEM(single, 0);
    count = PyTuple_GET_SIZE(single);
  }
  if (count != call.output_count) {
    PyErr_Format(PyExc_RuntimeError,
                 "%s: expected 'jvp' to return %zd tangents, one for each output of 'forward', got "
                 "%zd",
                 context_name(context), call.output_count, count);
    return false;
  }
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (tangents[i] == Py_None) continue;
    if (!is_tensor(tangents[i]) || !is_tensor(outputs[i])) {
      PyErr_Format(
          PyExc_TypeError, "%s: expected tangent %zd to be %s, got %s", context_name(context), i,
          is_tensor(outputs[i]) ? "a Tensor or None" : "None, as the output is not a Tensor",
          Py_TYPE(tangents[i])->tp_name);
      return false;
    }
    if (!aliases_alike(call, outputs[i], tangents[i], args.get(), versions)) {
      PyErr_Format(PyExc_RuntimeError,
                   "%s: expected 'jvp' to return for output %zd %s, got another tensor",
                   context_name(context), i,
                   contains(context->dirty, outputs[i])
                       ? "the tangent of the input that 'forward' wrote, written in place as well"
                       : "a view of a tangent that it is given, as 'forward' returns an input or a "
                         "view of one");
      return false;
    }
    autograd::set_tangent(tensor_of(outputs[i]), tensor_ref(tangents[i]));
  }
  return true;
}

PyObject* finish_outputs(const FunctionCall& given, PyObject* returned) {
  FunctionCall call = given;
  bool is_tuple = PyTuple_Check(returned);
  PyObject** raw = is_tuple ? &PyTuple_GET_ITEM(returned, 0) : &returned;
  call.output_count = is_tuple ? PyTuple_GET_SIZE(returned) : 1;
  if (!check_dirty(call, raw)) return nullptr;
  if (!is_tuple) {
    Ref output(finish_output(call, returned, 0));
    PyObject* one = output.get();
    if (!output || !give_tangents(call, &one) || (call.node && !save_tensors(call, &one))) {
      return nullptr;
    }
    return output.release();
  }
  Ref outputs(PyTuple_New(call.output_count));
  for (Py_ssize_t i = 0; outputs && i < call.output_count; ++i) {
    PyObject* output = finish_output(call, raw[i], i);
    if (output == nullptr) return nullptr;
    PyTuple_SET_ITEM(outputs.get(), i, output);
  }
  if (!outputs) return nullptr;
  PyObject** items = &PyTuple_GET_ITEM(outputs.get(), 0);
  if (!give_tangents(call, items) || (call.node && !save_tensors(call, items))) return nullptr;
  return outputs.release();
}

// ---- apply ----

// forward runs without gradients of either kind.
constexpr uint32_t kPlain = LAMELLA_MODE_NO_GRAD | LAMELLA_MODE_NO_FORWARD;

PyObject* call_forward(const FunctionCall& call, PyObject* forward, PyObject* setup) {
  autograd::ModeGuard mode(kPlain, kPlain);
  constexpr Py_ssize_t kMaxInlineArguments = 14;
  if (setup == nullptr) {
    PyObject* few[kMaxInlineArguments + 2];
    std::vector<PyObject*> many;
    PyObject** stack = few;
    if (call.count > kMaxInlineArguments) {
      many.resize(static_cast<size_t>(call.count) + 2);
      stack = many.data();
    }
    stack[0] = nullptr;
    stack[1] = reinterpret_cast<PyObject*>(call.context);
    for (Py_ssize_t i = 0; i < call.count; ++i) stack[2 + i] = call.args[i];
    return call_vector(forward, stack + 1,
                       static_cast<size_t>(call.count + 1) | PY_VECTORCALL_ARGUMENTS_OFFSET,
                       nullptr);
  }
  Ref output(call_vector(forward, call.args, static_cast<size_t>(call.count), nullptr));
  Ref inputs(output ? PyTuple_New(call.count) : nullptr);
  if (!inputs) return nullptr;
  for (Py_ssize_t i = 0; i < call.count; ++i) {
    Py_INCREF(call.args[i]);
    PyTuple_SET_ITEM(inputs.get(), i, call.args[i]);
  }
  PyObject* stack[] = {reinterpret_cast<PyObject*>(call.context), inputs.get(), output.get()};
  Ref done(call_vector(setup, stack, 3, nullptr));
  return done ? output.release() : nullptr;
}

// The arguments with keywords and defaults filled in, as a tuple. The binder is a function of
// lamella.autograd.function, for a forward that takes a context first or not.
PyObject* bind(const char* binder_name, PyObject* forward, PyObject* const* args, Py_ssize_t nargs,
               PyObject* kwnames) {
  Ref module(PyImport_ImportModule("lamella.autograd.function"));
  Ref binder(module ? PyObject_GetAttrString(module.get(), binder_name) : nullptr);
  if (!binder) return nullptr;
  std::vector<PyObject*> stack = {forward};
  Py_ssize_t named = kwnames != nullptr ? PyTuple_GET_SIZE(kwnames) : 0;
  stack.insert(stack.end(), args, args + nargs + named);
  return call_vector(binder.get(), stack.data(), static_cast<size_t>(nargs) + 1, kwnames);
}
// Whether all of a function's parameters were given by position.
bool is_complete(PyObject* forward, Py_ssize_t nargs, PyObject* kwnames) {
  if (kwnames != nullptr && PyTuple_GET_SIZE(kwnames) != 0) return false;
  if (!PyFunction_Check(forward)) return false;
  auto* code = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(forward));
  return code->co_argcount == nargs && (code->co_flags & (CO_VARARGS | CO_VARKEYWORDS)) == 0 &&
         code->co_kwonlyargcount == 0;
}

// Calls an operator below autograd, then its setup_context.
PyObject* call_operator(const FunctionCall& call, PyObject* below, PyObject* setup) {
  autograd::ModeGuard mode(kPlain, kPlain);
  Ref output(call_vector(below, call.args, static_cast<size_t>(call.count), nullptr));
  if (!output || setup == nullptr) return output.release();
  Ref inputs(PyTuple_New(call.count));
  if (!inputs) return nullptr;
  for (Py_ssize_t i = 0; i < call.count; ++i) {
    Py_INCREF(call.args[i]);
    PyTuple_SET_ITEM(inputs.get(), i, call.args[i]);
  }
  static PyObject* names = Py_BuildValue("(sss)", "ctx", "inputs", "output");
  PyObject* stack[] = {reinterpret_cast<PyObject*>(call.context), inputs.get(), output.get()};
  Ref done(call_vector(setup, stack, 0, names));
  return done ? output.release() : nullptr;
}

// `below`: the operator that replaces forward, or NULL.
PyObject* run_apply(PyFunctionClass* function, PyObject* forward, PyObject* setup, PyObject* below,
                    PyObject* const* args, Py_ssize_t count) {
  PyContext* context = make_context(function, count);
  if (context == nullptr) return nullptr;
  Ref held(reinterpret_cast<PyObject*>(context));
  constexpr Py_ssize_t kMaxInlineArguments = 16;
  lamella_tensor* few[kMaxInlineArguments];
  std::vector<lamella_tensor*> many;
  lamella_tensor** inputs = few;
  if (count > kMaxInlineArguments) {
    many.resize(static_cast<size_t>(count));
    inputs = many.data();
  }
  uint32_t input_count = 0;
  bool recorded = false;
  for (Py_ssize_t i = 0; i < count; ++i) {
    uint8_t bits = 0;
    if (is_tensor(args[i])) {
      lamella_tensor* tensor = tensor_of(args[i]);
      bits = kInputTensor;
      if (lamella_tensor_requires_grad(tensor) != 0) {
        bits |= kInputNeeded;
        recorded = true;
      }
      inputs[input_count++] = tensor;
    }
    context->inputs[i] = bits;
  }
  recorded = recorded && (lamella_thread.modes & LAMELLA_MODE_NO_GRAD) == 0;
  autograd::NodePtr node;
  if (recorded) {
    // The edges are set before forward, which may write its inputs.
    node = PythonNode::make(context, input_count);
    if ((lamella_thread.modes & LAMELLA_MODE_ANOMALY) != 0) [[unlikely]] {
      node->extras().anomaly = capture_calls();
      node->extras().anomaly_parent = autograd::NodePtr::borrow(autograd::current_node());
    }
    for (uint32_t i = 0; i < input_count; ++i) {
      node->set_edge(i, autograd::gradient_edge(inputs[i]));
    }
    if (side_effects_declared()) [[unlikely]] {
      static_cast<PythonNode*>(node.get())->follow_side_effects();
    }
    bool batched = false;
    for (uint32_t i = 0; i < input_count; ++i) batched = batched || is_batched(inputs[i]);
    if (batched) {
      autograd::NodeLevels levels;
      for (uint32_t i = 0; i < input_count; ++i) levels.add_input(inputs[i]);
      static_cast<PythonNode*>(node.get())->set_levels(std::move(levels));
    }
  }
  FunctionCall call{context, node, args, count, 0};
  Ref returned(below != nullptr ? call_operator(call, below, setup)
                                : call_forward(call, forward, setup));
  if (!returned) return nullptr;
  Ref result(finish_outputs(call, returned.get()));
  Py_CLEAR(context->to_save);
  Py_CLEAR(context->saved_for_forward);
  // The outputs own the node, so that references to them in the context would be cycles.
  Py_CLEAR(context->dirty);
  Py_CLEAR(context->non_differentiable);
  return result.release();
}

// Applies the class's rule for vmap if an argument is batched. NotImplemented: forward runs on the
// batched tensors themselves.
PyObject* apply_batched(PyObject* type, PyObject* const* args, Py_ssize_t nargs,
                        PyObject* kwnames) {
  Ref module(PyImport_ImportModule("lamella.autograd.function"));
  Ref rule(module ? PyObject_GetAttrString(module.get(), "_apply_batched") : nullptr);
  if (!rule) return nullptr;
  std::vector<PyObject*> stack = {type};
  Py_ssize_t named = kwnames != nullptr ? PyTuple_GET_SIZE(kwnames) : 0;
  stack.insert(stack.end(), args, args + nargs + named);
  return call_vector(rule.get(), stack.data(), static_cast<size_t>(nargs) + 1, kwnames);
}

// Called with each class without setup_context before its forward, if it is not NULL.
PyObject* apply_rule = nullptr;

PyObject* set_apply_rule(PyObject*, PyObject* rule) {
  Py_XSETREF(apply_rule, rule == Py_None ? nullptr : Py_NewRef(rule));
  Py_RETURN_NONE;
}

PyObject* apply(PyObject* type, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  PyFunctionClass* function = as_class(type);
  if (type == function_defaults.cls || !prepare(function)) {
    if (PyErr_Occurred() == nullptr) {
      PyErr_SetString(PyExc_NotImplementedError,
                      "Function: expected a class derived from it with 'forward' and 'backward'");
    }
    return nullptr;
  }
  bool batched = false;
  for (Py_ssize_t i = 0; i < nargs; ++i) {
    batched = batched || (is_tensor(args[i]) && is_batched(tensor_of(args[i])));
  }
  if (batched) [[unlikely]] {
    Ref result(apply_batched(type, args, nargs, kwnames));
    if (!result || result.get() != Py_NotImplemented) return result.release();
  }
  Ref forward(PyObject_GetAttr(type, name_forward));
  Ref setup(forward ? PyObject_GetAttr(type, name_setup_context) : nullptr);
  if (!setup) return nullptr;
  if (apply_rule != nullptr && setup.get() == function_defaults.setup_context) [[unlikely]] {
    Ref allowed(PyObject_CallOneArg(apply_rule, type));
    if (!allowed) return nullptr;
  }
  return guarded([&]() -> PyObject* {
    bool has_setup = setup.get() != function_defaults.setup_context;
    if (!has_setup) {
      if (kwnames != nullptr && PyTuple_GET_SIZE(kwnames) != 0) {
        Ref bound(bind("_bind_behind_context", forward.get(), args, nargs, kwnames));
        if (!bound) return nullptr;
        return run_apply(function, forward.get(), nullptr, nullptr,
                         &PyTuple_GET_ITEM(bound.get(), 0), PyTuple_GET_SIZE(bound.get()));
      }
      return run_apply(function, forward.get(), nullptr, nullptr, args, nargs);
    }
    if (is_complete(forward.get(), nargs, kwnames)) {
      return run_apply(function, forward.get(), setup.get(), nullptr, args, nargs);
    }
    Ref bound(bind("_bind_arguments", forward.get(), args, nargs, kwnames));
    if (!bound) return nullptr;
    return run_apply(function, forward.get(), setup.get(), nullptr,
                     &PyTuple_GET_ITEM(bound.get(), 0), PyTuple_GET_SIZE(bound.get()));
  });
}

// ---- The class and its class ----

int meta_traverse(PyObject* self, visitproc visit, void* arg) {
  if (as_class(self)->node_type != nullptr) Py_VISIT(as_class(self)->node_type);
  return PyType_Type.tp_traverse(self, visit, arg);
}
int meta_clear(PyObject* self) {
  Py_CLEAR(as_class(self)->node_type);
  return PyType_Type.tp_clear(self);
}
void meta_dealloc(PyObject* self) {
  PyFunctionClass* function = as_class(self);
  Py_CLEAR(function->node_type);
  PyType_Type.tp_dealloc(self);
}

PyMethodDef apply_definition = {"apply", method(apply), METH_FASTCALL | METH_KEYWORDS | METH_CLASS,
                                "Runs forward; backward computes the gradients of the arguments."};

// _finish_function(Function): adds `apply` to the class, and stores its default attributes.
PyObject* finish_function(PyObject*, PyObject* type) {
  function_defaults.cls = Ref::borrow(type).release();
  function_defaults.setup_context = PyObject_GetAttr(type, name_setup_context);
  function_defaults.backward = PyObject_GetAttrString(type, "backward");
  function_defaults.vjp = PyObject_GetAttrString(type, "vjp");
  function_defaults.jvp = PyObject_GetAttrString(type, "jvp");
  Ref method(PyDescr_NewClassMethod(reinterpret_cast<PyTypeObject*>(type), &apply_definition));
  if (!method || PyErr_Occurred() != nullptr ||
      PyObject_SetAttrString(type, "apply", method.get()) != 0) {
    return nullptr;
  }
  Py_RETURN_NONE;
}
PyMethodDef functions[] = {{"_finish_function", finish_function, METH_O, nullptr},
                           {"_set_apply_rule", set_apply_rule, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

PyObject* record_custom(PyObject* gradient, PyObject* setup_context, PyObject* below,
                        PyObject* const* args, Py_ssize_t count) {
  auto* function = as_class(gradient);
  if (!prepare(function)) return nullptr;
  return guarded([&] { return run_apply(function, nullptr, setup_context, below, args, count); });
}

int add_functions(PyObject* module) {
  name_forward = PyUnicode_InternFromString("forward");
  name_setup_context = PyUnicode_InternFromString("setup_context");
  if (name_forward == nullptr || name_setup_context == nullptr) return -1;
  PyTypeObject* meta = &FunctionMetaType;
  meta->tp_name = "lamella.autograd.function.FunctionMeta";
  meta->tp_base = &PyType_Type;
  meta->tp_basicsize = sizeof(PyFunctionClass);
  meta->tp_itemsize = PyType_Type.tp_itemsize;
  meta->tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC;
  meta->tp_traverse = meta_traverse;
  meta->tp_clear = meta_clear;
  meta->tp_dealloc = meta_dealloc;
  if (PyType_Ready(meta) != 0) return -1;
  Py_INCREF(meta);
  if (PyModule_AddObject(module, "_FunctionMeta", reinterpret_cast<PyObject*>(meta)) != 0)
    return -1;
  return PyModule_AddFunctions(module, functions);
}

}  // namespace lamella::python
