// Python numbers, 0-dimensional tensors and NumPy scalars as C numbers, by PyTorch's rules.
#pragma once
#include "python/src/parse.h"

namespace lamella::python {

// The result of a conversion that failed with a Python error: kNo for a TypeError, which means that
// the object is not of the kind and is cleared, else kError.
Match not_of_this_kind();
// Reads an int that fits; false for other objects. Most ints have one digit, which is read in
// place.
inline bool read_plain_int(PyObject* object, int64_t* number) {
  if (!PyLong_CheckExact(object)) return false;
#if PY_VERSION_HEX >= 0x030c0000
  const auto* digits = reinterpret_cast<const PyLongObject*>(object);
  if (PyUnstable_Long_IsCompact(digits)) [[likely]] {
    *number = PyUnstable_Long_CompactValue(digits);
    return true;
  }
#elif PY_VERSION_HEX >= 0x030b0000
  const Py_ssize_t signed_count = Py_SIZE(object);
  if (signed_count >= -1 && signed_count <= 1) [[likely]] {
    *number = signed_count * reinterpret_cast<const PyLongObject*>(object)->ob_digit[0];
    return true;
  }
#endif
  int overflow = 0;
  *number = PyLong_AsLongLongAndOverflow(object, &overflow);
  return overflow == 0;
}
// An int, an object with __index__, or a 0-dimensional integer tensor; not a bool.
Match read_int_slow(PyObject* object, int64_t* number);
inline Match read_int(PyObject* object, int64_t* number) {
  if (read_plain_int(object, number)) [[likely]]
    return Match::kYes;
  return read_int_slow(object, number);
}
// A float, an int, a NumPy number or a 0-dimensional real tensor.
Match read_double(PyObject* object, double* number);
// True, False or NumPy's bool.
bool read_bool(PyObject* object, bool* flag);
// Any number, with its kind kept. A complex value's parts go to `parts` and value->as stays unset.
Match read_number(PyObject* object, lamella_value* value, double* parts);
// An int in [2^63, 2^64).
bool is_above_int64(PyObject* object, uint64_t* number);
// An int above int64 as operators take it for tensors of `type`, which is uint64 or floating point:
// the int64 of its bits, which wraps, or a double. False for other ints and types.
bool read_above_int64(PyObject* object, ScalarType type, lamella_value* value);
// Whether the object is a tensor that requires grad, whose gradient a number would lose.
bool holds_gradient(PyObject* object);
// The only element of a tensor, likewise; read from memory on the CPU, else through the device.
Match read_element(lamella_tensor* tensor, lamella_value* value, double* parts);
// Element `data` of a type.
void load_element(const void* data, ScalarType type, lamella_value* value, double* parts);
// Writes a number as an element; false with a Python error set where it does not fit.
bool store_element(void* data, ScalarType type, const lamella_value& value, const double* parts);

}  // namespace lamella::python
