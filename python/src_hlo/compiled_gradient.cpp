// Compiled functions whose gradients are recorded: the forward program is recorded as one node of
// the backward graph, and the node runs the backward program.
#include "python/src_hlo/compiled_gradient.h"

#include <algorithm>

#include "lamella/api/functions.h"
#include "lamella/graph/runtime/tensor_value.h"
#include "lamella/layers/autograd/function.h"
#include "python/src/object.h"
#include "python/src_hlo/compiled_guards.h"

namespace lamella::python {
namespace {

using autograd::AutogradContext;

// The contents of a node besides the tensors that it saves for its backward program.
struct NodeContents : lamella_object {
  NodeContents(const GradientProgram* program, PyObject* again,
               const std::vector<TensorBase>& leaves)
      : program(ObjectRef<GradientProgram>::borrow(const_cast<GradientProgram*>(program))),
        again(again),
        leaves(leaves) {
    references = 1;
    reserved = 0;
    destroy = [](lamella_object* object) { delete static_cast<NodeContents*>(object); };
    Py_INCREF(again);
    for (const TensorBase& leaf : leaves) versions.push_back(leaf._version());
  }
  ~NodeContents() {
    // After the interpreter's end there is nothing left to release.
    if (Py_IsInitialized() == 0) return;
    GilScope held;
    Py_DECREF(again);
  }
  ObjectRef<GradientProgram> program;
  PyObject* again;  // owned
  std::vector<TensorBase> leaves;
  std::vector<int64_t> versions;  // of the leaves, when the program ran
};

// The gradients, computed so that they can be differentiated: see Program.again in
// _compile_program.py.
std::vector<Tensor> differentiable(const NodeContents& contents,
                                   const std::vector<Tensor>& tangents) {
  GilScope held;
  try {
    std::vector<TensorBase> given;
    for (size_t i : contents.program->tracked) given.push_back(tangents[i]);
    Ref leaves(list_of(contents.leaves)), theirs(list_of(std::move(given)));
    Ref versions(numbers_object(contents.versions));
    Ref made(required(PyObject_CallFunctionObjArgs(contents.again, leaves.get(), versions.get(),
                                                   theirs.get(), nullptr)));
    Ref list(required(PySequence_Fast(made.get(), "expected a list of gradients")));
    std::vector<Tensor> grads(3);  // none for the program, the function and the leaves
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list.get()); ++i) {
      PyObject* grad = PySequence_Fast_GET_ITEM(list.get(), i);
      grads.emplace_back(grad == Py_None ? TensorBase() : tensor_ref(grad));
    }
    return grads;
  } catch (const PythonError&) {
    detail::throw_status(bridge->keep_python_error());
  }
}

// Makes gradients of a program that draws random numbers raise when they are differentiated again.
// They stay connected to the leaves, so that the graph shows what they depend on.
struct NoDoubleGrad : autograd::Function<NoDoubleGrad> {
  static std::vector<Tensor> forward(AutogradContext*, const std::vector<Tensor>* grads,
                                     const std::vector<Tensor>&) {
    return *grads;
  }
  static std::vector<Tensor> backward(AutogradContext*, const std::vector<Tensor>&) {
    throw Error(
        "compile: expected a function that draws no random numbers when its gradients are "
        "differentiated; call it uncompiled there");
  }
};

struct CompiledProgram : autograd::Function<CompiledProgram> {
  // Gradients go to the last argument, the tensors of `into`; the others are only passed through.
  static std::vector<Tensor> forward(AutogradContext* ctx, const GradientProgram* program,
                                     PyObject* again, const std::vector<TensorBase>* leaves,
                                     const std::vector<Tensor>&) {
    std::vector<TensorBase> made;
    {
      WithoutGil others(program->without_gil);
      made = run_executable(*program->forward, *leaves);
    }
    auto inner = made.begin() + static_cast<std::ptrdiff_t>(program->fresh);
    auto written = inner + static_cast<std::ptrdiff_t>(program->inner);
    std::vector<Tensor> kept, results(made.begin(), inner), untracked;
    results.insert(results.end(), written, made.end());
    // Leaves that the caller will overwrite with results are saved as copies.
    std::vector<TensorBase> before = *leaves;
    for (size_t i : program->written) before[i] = Tensor(before[i]).clone();
    for (size_t i : program->saved) kept.emplace_back(before[i]);
    kept.insert(kept.end(), inner, written);
    ctx->save_for_backward(std::move(kept));
    auto contents = ObjectRef<NodeContents>::adopt(new NodeContents(program, again, before));
    lamella_value value{{0}, 0, LAMELLA_OBJECT, 0, 0};
    value.as.pointer = contents.get();
    ctx->saved_data["contents"] = IValue::from_borrowed(value);
    for (size_t i = 0; i < results.size(); ++i) {
      bool is_tracked = std::ranges::find(program->tracked, i) != program->tracked.end();
      if (!is_tracked) untracked.push_back(results[i]);
    }
    if (!untracked.empty()) ctx->mark_non_differentiable(untracked);
    return results;
  }

  static std::vector<Tensor> backward(AutogradContext* ctx, std::vector<Tensor> tangents) {
    const auto* contents =
        static_cast<const NodeContents*>(ctx->saved_data["contents"].value().as.pointer);
    const GradientProgram* program = contents->program.get();
    const bool is_recorded = autograd::GradMode::is_enabled();
    if (is_recorded && !program->draws) return differentiable(*contents, tangents);
    std::vector<TensorBase> given;
    for (Tensor& tensor : ctx->get_saved_variables()) given.push_back(std::move(tensor));
    for (size_t i : program->tracked) given.push_back(tangents[i]);
    std::vector<TensorBase> made = run_executable(*program->backward, given);
    if (is_recorded && !made.empty()) {
      std::vector<Tensor> grads(made.begin(), made.end()), into;
      for (size_t i : program->into) into.emplace_back(contents->leaves[i]);
      grads = NoDoubleGrad::apply(&grads, into);
      made.assign(grads.begin(), grads.end());
    }
    // None for the program, the function and the leaves.
    std::vector<Tensor> all(3 + program->has_gradient.size());
    size_t next = 0;
    for (size_t i = 0; i < program->has_gradient.size(); ++i) {
      if (program->has_gradient[i]) all[3 + i] = Tensor(std::move(made[next++]));
    }
    return all;
  }
};

PyTypeObject* gradient_type = nullptr;

// (forward, backward, into, saved, fresh, inner, written, tracked, whether each of `into` has a
// gradient, draws).
PyObject* make(PyObject*, PyObject* args) {
  PyObject *forward, *backward, *into, *saved, *written, *tracked, *grads;
  Py_ssize_t fresh, inner;
  int draws;
  if (!PyArg_ParseTuple(args, "OOOOnnOOOp:_gradient_program", &forward, &backward, &into, &saved,
                        &fresh, &inner, &written, &tracked, &grads, &draws)) {
    return nullptr;
  }
  return guarded([&] {
    auto program = ObjectRef<GradientProgram>::adopt(new GradientProgram());
    bool ignored = false;
    program->forward = executable_from(forward, &program->without_gil);
    program->backward = executable_from(backward, &ignored);
    program->into = sizes_from(into);
    program->saved = sizes_from(saved);
    program->fresh = static_cast<size_t>(fresh);
    program->inner = static_cast<size_t>(inner);
    program->written = sizes_from(written);
    program->tracked = sizes_from(tracked);
    for (size_t one : sizes_from(grads)) program->has_gradient.push_back(one != 0);
    program->draws = draws != 0;
    return hold(gradient_type, std::move(program));
  });
}

PyType_Slot slots[] = {
    {Py_tp_doc, const_cast<char*>("A compiled function and its gradient.")},
    {Py_tp_dealloc, reinterpret_cast<void*>(destroy_holder<ObjectRef<GradientProgram>>)},
    {0, nullptr}};
PyType_Spec spec = {"lamella._hlo._GradientProgram", sizeof(Holder<ObjectRef<GradientProgram>>), 0,
                    Py_TPFLAGS_DEFAULT, slots};
PyMethodDef functions[] = {{"_gradient_program", make, METH_VARARGS, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

std::vector<TensorBase> run_executable(const hlo::Executable& executable,
                                       const std::vector<TensorBase>& tensors) {
  for (const TensorBase& tensor : tensors) {
    if (tensor.is_cuda()) return executable.run_on_device(tensors, tensor.device());
  }
  const auto& parameters = executable.module().entry->parameters;
  std::vector<hlo::Value> values;
  values.reserve(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    values.push_back(hlo::value_of_tensor(parameters[i]->shape, tensors[i]));
  }
  return hlo::tensors_of_value(executable.run(values));
}

std::vector<TensorBase> run_with_gradient(const GradientProgram& program, PyObject* again,
                                          const std::vector<TensorBase>& leaves) {
  std::vector<Tensor> into;
  for (size_t i : program.into) into.emplace_back(leaves[i]);
  std::vector<Tensor> made = CompiledProgram::apply(&program, again, &leaves, into);
  return {made.begin(), made.end()};
}

ObjectRef<GradientProgram> gradient_program_of(PyObject* object) {
  if (!PyObject_TypeCheck(object, gradient_type)) {
    PyErr_SetString(PyExc_TypeError, "expected a _GradientProgram");
    throw PythonError();
  }
  return held<ObjectRef<GradientProgram>>(object);
}

int add_gradients(PyObject* module) {
  gradient_type = add_type(module, &spec);
  return gradient_type == nullptr ? -1 : PyModule_AddFunctions(module, functions);
}

}  // namespace lamella::python
