// Compiled functions whose gradients are recorded.
#pragma once
#include <memory>
#include <vector>

#include "lamella/core/object_ref.h"
#include "lamella/graph/runtime/executable.h"
#include "python/src_hlo/hlo.h"

namespace lamella::python {

// A function and its gradient as two programs. Leaves, which are the inputs of the forward program,
// and its results are numbered. Nodes of backward graphs hold a reference to one.
struct GradientProgram : lamella_object {
  GradientProgram() {
    references = 1;
    reserved = 0;
    destroy = [](lamella_object* object) { delete static_cast<GradientProgram*>(object); };
  }
  std::shared_ptr<const hlo::Executable> forward, backward;
  bool without_gil = false;
  std::vector<size_t> into;   // leaves that have gradients
  std::vector<size_t> saved;  // inputs that the backward program takes first
  size_t fresh = 0;  // results of the function; the next `inner` go to the backward program
  size_t inner = 0;
  std::vector<size_t> written;     // leaves whose new contents are the last results
  std::vector<size_t> tracked;     // results whose tangents the backward program takes
  bool draws = false;              // random numbers
  std::vector<bool> has_gradient;  // for each of `into`: whether the backward program computes one
};

// The results of the function, with history if it is recorded, and the new contents of `written`.
// If the gradients are differentiated themselves, again(leaves, versions, tangents) computes them;
// the versions are those that the leaves had when the program ran.
std::vector<TensorBase> run_with_gradient(const GradientProgram& program, PyObject* again,
                                          const std::vector<TensorBase>& leaves);

std::vector<TensorBase> run_executable(const hlo::Executable& executable,
                                       const std::vector<TensorBase>& tensors);

// The program of a lamella._hlo._GradientProgram; throws PythonError for other objects.
ObjectRef<GradientProgram> gradient_program_of(PyObject* object);

int add_gradients(PyObject* module);

}  // namespace lamella::python
