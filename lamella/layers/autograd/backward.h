// autograd::backward and autograd::grad. Public, inline over lamella/abi/autograd.h.
#pragma once
#include <optional>
#include <vector>

#include "lamella/api/tensor.h"

namespace lamella {

namespace autograd {
using Variable = Tensor;
using variable_list = std::vector<Tensor>;
using tensor_list = std::vector<Tensor>;
}  // namespace autograd

namespace detail {
// Completes the gradients of `roots`: missing entries become ones.
LAMELLA_LAZY inline std::vector<Tensor> complete_gradients(const char* op, const char* roots,
                                                           const char* gradients, size_t count,
                                                           const std::vector<Tensor>& given) {
  LAMELLA_CHECK(given.empty() || given.size() == count, op, ": expected '", gradients,
                "' to have a tensor for each of the ", count, " in '", roots, "', got ",
                given.size());
  return given.empty() ? std::vector<Tensor>(count) : given;
}
}  // namespace detail

namespace autograd {

// Adds the gradients of `tensors` to the grad() of the leaves that they were made from, or of
// `inputs` only. `grad_tensors`: a gradient for each of them, undefined for ones (then the tensor
// must have one element). `retain_graph` keeps the graph for another backward, by default as
// `create_graph`, which records the backward itself.
LAMELLA_LAZY inline void backward(const variable_list& tensors,
                                  const variable_list& grad_tensors = {},
                                  std::optional<bool> retain_graph = std::nullopt,
                                  bool create_graph = false, const variable_list& inputs = {}) {
  variable_list grads = detail::complete_gradients("backward", "tensors", "grad_tensors",
                                                   tensors.size(), grad_tensors);
  detail::check(lamella_backward_run(
      detail::tensor_pointers(TensorList(tensors)), detail::tensor_pointers(TensorList(grads)),
      static_cast<uint32_t>(tensors.size()),
      inputs.empty() ? nullptr : detail::tensor_pointers(TensorList(inputs)),
      static_cast<uint32_t>(inputs.size()), detail::backward_flags(retain_graph, create_graph),
      nullptr));
}

// The gradients of `outputs` in `inputs`, without touching any grad(). With `allow_unused` an input
// that the outputs do not depend on gives an undefined tensor; otherwise it is an error.
LAMELLA_LAZY inline variable_list grad(const variable_list& outputs, const variable_list& inputs,
                                       const variable_list& grad_outputs = {},
                                       std::optional<bool> retain_graph = std::nullopt,
                                       bool create_graph = false, bool allow_unused = false) {
  LAMELLA_CHECK(!inputs.empty(), "grad: expected 'inputs' to have tensors, got an empty list");
  variable_list grads =
      detail::complete_gradients("grad", "outputs", "grad_outputs", outputs.size(), grad_outputs);
  std::vector<lamella_tensor*> results(inputs.size(), nullptr);
  detail::check(lamella_backward_run(
      detail::tensor_pointers(TensorList(outputs)), detail::tensor_pointers(TensorList(grads)),
      static_cast<uint32_t>(outputs.size()), detail::tensor_pointers(TensorList(inputs)),
      static_cast<uint32_t>(inputs.size()),
      detail::backward_flags(retain_graph, create_graph) |
          detail::bit_if(allow_unused, LAMELLA_ALLOW_UNUSED),
      results.data()));
  variable_list gradients;
  gradients.reserve(results.size());
  for (lamella_tensor* result : results) gradients.push_back(TensorBase::adopt(result));
  return gradients;
}

}  // namespace autograd
}  // namespace lamella
