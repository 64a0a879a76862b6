// Compiled functions whose gradients are recorded: the forward program is one node of the backward
// graph, and the backward program is what the node does.
#include "python/src_hlo/compiled_gradient.h"

#include <algorithm>

#include "lamella/graph/runtime/tensor_value.h"
#include "lamella/layers/autograd/function.h"

namespace lamella::python {
namespace {

using autograd::AutogradContext;

std::vector<TensorBase> run(const hlo::Executable& executable,
                            const std::vector<TensorBase>& tensors) {
  const auto& parameters = executable.module().entry->parameters;
  std::vector<hlo::Value> values;
  values.reserve(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    values.push_back(hlo::value_of_tensor(parameters[i]->shape, tensors[i]));
  }
  return hlo::tensors_of_value(executable.run(values));
}

// Stands behind gradients that a program gave, as far as they may be differentiated again.
// They depend on the leaves, for who asks what a graph reaches.
struct CompiledOnce : autograd::Function<CompiledOnce> {
  static std::vector<Tensor> forward(AutogradContext*, std::vector<Tensor> grads,
                                     const std::vector<Tensor>&) {
    for (Tensor& grad : grads) grad = grad.detach();
    return grads;
  }
  static std::vector<Tensor> backward(AutogradContext*, std::vector<Tensor>) {
    throw Error(
        "compile: expected the gradients of a compiled function not to be differentiated again; "
        "call the function as it is where second derivatives are wanted");
  }
};

// What a node holds besides tensors of its backward program.
struct NodeContents : lamella_object {
  NodeContents(const GradientProgram* program, std::vector<Tensor> into)
      : program(ObjectRef<GradientProgram>::borrow(const_cast<GradientProgram*>(program))),
        into(std::move(into)) {
    references = 1;
    reserved = 0;
    destroy = [](lamella_object* object) { delete static_cast<NodeContents*>(object); };
  }
  ObjectRef<GradientProgram> program;
  std::vector<Tensor> into;
};

struct CompiledProgram : autograd::Function<CompiledProgram> {
  // Gradients go to `into`; all else comes along.
  static std::vector<Tensor> forward(AutogradContext* ctx, const GradientProgram* program,
                                     const std::vector<TensorBase>* leaves,
                                     const std::vector<Tensor>& into) {
    std::vector<TensorBase> given;
    for (size_t i : program->given) given.push_back((*leaves)[i]);
    std::vector<TensorBase> made;
    {
      WithoutGil others(program->without_gil);
      made = run(*program->forward, given);
    }
    auto inner = made.begin() + static_cast<std::ptrdiff_t>(program->fresh);
    std::vector<Tensor> kept, results(made.begin(), inner), untracked;
    for (size_t i : program->saved) kept.emplace_back(given[i]);
    kept.insert(kept.end(), inner, made.end());
    ctx->save_for_backward(std::move(kept));
    auto contents = ObjectRef<NodeContents>::adopt(new NodeContents(program, into));
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
    std::vector<TensorBase> given;
    for (Tensor& tensor : ctx->get_saved_variables()) given.push_back(std::move(tensor));
    for (size_t i : program->tracked) given.push_back(tangents[i]);
    std::vector<TensorBase> made = run(*program->backward, given);
    std::vector<Tensor> grads(made.begin(), made.end());
    if (autograd::GradMode::is_enabled() && !grads.empty()) {
      grads = CompiledOnce::apply(std::move(grads), contents->into);
    }
    // None for the program and the leaves.
    std::vector<Tensor> all(2 + program->has_gradient.size());
    size_t next = 0;
    for (size_t i = 0; i < program->has_gradient.size(); ++i) {
      if (program->has_gradient[i]) all[2 + i] = std::move(grads[next++]);
    }
    return all;
  }
};

}  // namespace

std::vector<TensorBase> run_with_gradient(const GradientProgram& program,
                                          const std::vector<TensorBase>& leaves) {
  std::vector<Tensor> into;
  for (size_t i : program.into) into.emplace_back(leaves[i]);
  std::vector<Tensor> made = CompiledProgram::apply(&program, &leaves, into);
  return {made.begin(), made.end()};
}

}  // namespace lamella::python
