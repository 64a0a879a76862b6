// Arrays of bfloat16 and the types of 8 bits, which NumPy has by ml_dtypes, as tensors.
#pragma once
#include "lamella/core/tensor_base.h"
#include "python/src/ref.h"

namespace lamella::python {

// Arrays of ml_dtypes' types have no buffer, as the struct module has no formats for them; their
// bits have one. Undefined without an error set: the object is no such array. `only_read` and
// `copied` are those of tensor_from_buffer().
TensorBase tensor_from_small_floats(PyObject* array, bool only_read, const char** copied);

}  // namespace lamella::python
