// Compiled steps of training.
#pragma once
#include <vector>

#include "python/src_hlo/hlo.h"

namespace lamella::python {

// Copies each value to the tensor beside it; false, with nothing done, where one of them does not
// lie row by row in memory that may be written. No two of them share memory.
bool write_back(const std::vector<TensorBase>& tensors, const std::vector<TensorBase>& values);

// A sequence of Python's as sizes; throws PythonError.
std::vector<size_t> sizes_from(PyObject* numbers);

int add_steps(PyObject* module);

}  // namespace lamella::python
