// Tensors of NumPy arrays of ml_dtypes' types, through a view of their bits.
#include "python/src/small_floats.h"

#include "python/src/errors.h"
#include "python/src/numbers.h"
#include "python/src/tensor.h"

namespace lamella::python {

TensorBase tensor_from_small_floats(PyObject* array, bool only_read, const char** copied) {
  Ref dtype(PyObject_GetAttrString(array, "dtype"));
  Ref name(dtype ? PyObject_GetAttrString(dtype.get(), "name") : nullptr);
  if (!name || !PyUnicode_Check(name.get())) {
    PyErr_Clear();
    return TensorBase();
  }
  for (ScalarType type : {
#define LAMELLA_SCALAR_TYPE(cpp, name, number, text, code, format, ...) \
  sizeof(format) > 1 ? ScalarType::Undefined : ScalarType::name,
#include "lamella/core/scalar_type.def"
       }) {
    if (!is_floating_point(type)) continue;
    if (PyUnicode_CompareWithASCIIString(name.get(), dtype_name(type)) != 0) continue;
    const char* bits = element_size(type) == 2 ? "uint16" : "uint8";
    Ref words(PyObject_CallMethod(array, "view", "s", bits));
    if (!words) return TensorBase();
    TensorBase tensor = tensor_from_buffer(words.get(), only_read, copied);
    if (!tensor.defined()) return tensor;
    Ref object(wrap(std::move(tensor))), wanted(dtype_object(type));
    Ref seen(object && wanted ? PyObject_CallMethod(object.get(), "view", "O", wanted.get())
                              : nullptr);
    return seen ? tensor_ref(seen.get()) : TensorBase();
  }
  return TensorBase();
}

}  // namespace lamella::python
