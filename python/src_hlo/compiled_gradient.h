// Compiled functions whose gradients are recorded.
#pragma once
#include <memory>
#include <vector>

#include "lamella/core/object_ref.h"
#include "lamella/graph/runtime/executable.h"
#include "python/src_hlo/hlo.h"

namespace lamella::python {

// A function and its gradient as two programs. Numbers name leaves, inputs of the forward program
// and results of it. Nodes of backward graphs hold one as well.
struct GradientProgram : lamella_object {
  GradientProgram() {
    references = 1;
    reserved = 0;
    destroy = [](lamella_object* object) { delete static_cast<GradientProgram*>(object); };
  }
  std::shared_ptr<const hlo::Executable> forward, backward;
  bool without_gil = false;
  std::vector<size_t> given;    // the leaf that each input of the forward program is
  std::vector<size_t> into;     // leaves that have gradients
  std::vector<size_t> saved;    // inputs that the backward program takes first
  size_t fresh = 0;             // results of the function; those behind go to the backward program
  std::vector<size_t> tracked;  // results whose tangents the backward program takes
  std::vector<bool> has_gradient;  // of `into`: whether the backward program gives one
};

// The results of the function, with history where that is recorded. Where the gradients are to be
// differentiated, again(leaves, versions, tangents) gives them; the versions are those that the
// leaves had.
std::vector<TensorBase> run_with_gradient(const GradientProgram& program, PyObject* again,
                                          const std::vector<TensorBase>& leaves);

}  // namespace lamella::python
