// Compiled training steps.
#pragma once
#include <vector>

#include "python/src_hlo/hlo.h"

namespace lamella::python {

// Copies each value to the tensor with the same index; false, with nothing done, if one of the
// tensors is not contiguous in writable memory. No two of them may share memory.
bool write_back(const std::vector<TensorBase>& tensors, const std::vector<TensorBase>& values);

// A Python sequence of sizes; throws PythonError.
std::vector<size_t> sizes_from(PyObject* numbers);

int add_steps(PyObject* module);

}  // namespace lamella::python
