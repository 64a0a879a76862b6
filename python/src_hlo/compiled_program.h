// Programs of compiled functions, as calls run them.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "python/src_hlo/compiled_gradient.h"
#include "python/src_hlo/compiled_guards.h"

namespace lamella::python {

// What a call of a compiled function runs: see Note [Runs of compiled functions].
struct CompiledProgram {
  std::shared_ptr<const hlo::Executable> executable;  // with a gradient, the forward program
  bool without_gil = false;
  ObjectRef<GradientProgram> gradient;  // empty: no gradients are recorded
  std::vector<size_t> own;              // the leaves that are inputs
  std::vector<OutsidePlace> rates;      // of learning rates
  std::vector<size_t> graded;           // of `own`, those whose gradient is an input
  Ref outside;                          // a list of tensors
  std::vector<size_t> written;          // inputs
  // A result that is a view of an input.
  struct Alias {
    size_t input;
    std::vector<int64_t> sizes, strides;
    int64_t offset;  // from that of the input
  };
  std::vector<std::optional<Alias>> results;  // those of the function, then the new gradients
  size_t fresh = 0;                           // results that are no views
  std::vector<size_t> set, cleared;           // of `own`, those that get a gradient, or lose it
  bool is_step = false;                       // its results have no history
  // Where the program is for certain gradients: for each leaf, the first one that is the same
  // tensor, and its gradient; empty: it has none.
  std::vector<size_t> first;
  std::vector<std::optional<TensorGuard>> gradients;

  // Whether all results of the executable are those of the function, and nothing else is to be
  // done.
  bool is_direct() const {
    return written.empty() && set.empty() && cleared.empty() && fresh == results.size();
  }
  // Whether the function is the executable, called with the leaves.
  bool is_plain() const {
    return is_direct() && !gradient && first.empty() && PyList_GET_SIZE(outside.get()) == 0;
  }
};

enum class RunOutcome : uint8_t {
  Done,
  OtherGradients,  // the program is for other gradients
  SharedMemory,    // a tensor that is written shares memory with another
};
// Runs a program; fills in the results of the function if it is done, and does nothing otherwise.
// again: see run_with_gradient().
RunOutcome run_program(const CompiledProgram& program, PyObject* again,
                       std::span<PyObject* const> leaves, std::vector<TensorBase>* results);

// The program of a lamella._hlo._Program; throws PythonError for other objects.
const CompiledProgram& compiled_program_of(PyObject* object);

int add_programs(PyObject* module);

}  // namespace lamella::python
