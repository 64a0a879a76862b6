// Tensors of NumPy arrays whose dtypes come from ml_dtypes: bfloat16 and the 8-bit types.
#pragma once
#include "lamella/core/tensor_base.h"
#include "python/src/ref.h"

namespace lamella::python {

// Such arrays export no buffer, as the struct module has no formats for their types; a view of
// their bits does. Undefined without an error set: the object is not such an array. `only_read` and
// `copied` are those of tensor_from_buffer().
TensorBase tensor_from_small_floats(PyObject* array, bool only_read, const char** copied);

}  // namespace lamella::python
