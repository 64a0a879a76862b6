// Reads numbers from Python objects.
#include "python/src/numbers.h"

#include <cstring>

#include "lamella/core/complex.h"
#include "lamella/core/half.h"
#include "lamella/core/scalar.h"
#include "lamella/layers/python_key/python_key.h"
#include "python/src/call.h"
#include "python/src/errors.h"
#include "python/src/trace.h"

namespace lamella::python {
namespace {

bool is_numpy_bool(PyObject* object) {
  const char* name = Py_TYPE(object)->tp_name;
  return strcmp(name, "numpy.bool_") == 0 || strcmp(name, "numpy.bool") == 0;
}
// Recognises NumPy's floating scalars without importing NumPy.
bool is_foreign_float(PyObject* object) {
  PyNumberMethods* number = Py_TYPE(object)->tp_as_number;
  return number != nullptr && number->nb_float != nullptr && number->nb_index == nullptr &&
         strncmp(Py_TYPE(object)->tp_name, "numpy.", 6) == 0 &&
         strcmp(Py_TYPE(object)->tp_name, "numpy.ndarray") != 0;
}

void set(lamella_value* value, uint8_t tag, int64_t number) {
  *value = lamella_value{{0}, 0, tag, 0, 0};
  value->as.i = number;
}

// Whether a value read from this object has the bits of a uint64 beyond int64.
bool is_above_int64(PyObject* object, const lamella_value& value) {
  return is_tensor(object) && value.tag == LAMELLA_INT && value.as.i < 0 &&
         tensor_of(object)->scalar_type == static_cast<uint8_t>(ScalarType::UInt64);
}

Match overflow(PyObject* object) {
  PyErr_Format(PyExc_OverflowError, "expected an int that fits 64 bits, got %R", object);
  return Match::kError;
}

}  // namespace

namespace {

template <class T>
void load(const void* data, lamella_value* value, double* parts) {
  T element;
  std::memcpy(&element, data, sizeof(element));
  if constexpr (is_complex_type_v<T>) {
    set(value, LAMELLA_COMPLEX, 0);
    parts[0] = static_cast<double>(element.real());
    parts[1] = static_cast<double>(element.imag());
  } else if constexpr (std::is_same_v<T, bool>) {
    set(value, LAMELLA_BOOL, element ? 1 : 0);
  } else if constexpr (std::is_integral_v<T>) {
    set(value, LAMELLA_INT, static_cast<int64_t>(element));
  } else {
    set(value, LAMELLA_DOUBLE, 0);
    value->as.d = static_cast<double>(element);
  }
}

}  // namespace

void load_element(const void* data, ScalarType type, lamella_value* value, double* parts) {
  switch (type) {
#define LAMELLA_SCALAR_TYPE(cpp, name, number, text, ...) \
  case ScalarType::name:                                  \
    return load<cpp>(data, value, parts);
#include "lamella/core/scalar_type.def"
    default:
      set(value, LAMELLA_NONE, 0);
  }
}

namespace {
// Numbers that are too large for a floating-point type become infinity.
template <class T>
T as_element(const Scalar& number) {
  if constexpr (is_complex_type_v<T>) {
    using R = typename T::value_type;
    auto z = number.toComplexDouble();
    return T(static_cast<R>(z.real()), static_cast<R>(z.imag()));
  } else if constexpr (std::is_integral_v<T>) {
    return number.to<T>();
  } else {
    return number.isComplex() ? number.to<T>() : static_cast<T>(number.toDouble());
  }
}
}  // namespace

bool store_element(void* data, ScalarType type, const lamella_value& value, const double* parts) {
  return guarded(
      [&] {
        Scalar number = value.tag == LAMELLA_DOUBLE    ? Scalar(value.as.d)
                        : value.tag == LAMELLA_BOOL    ? Scalar(value.as.i != 0)
                        : value.tag == LAMELLA_COMPLEX ? Scalar(complex<double>(parts[0], parts[1]))
                                                       : Scalar(value.as.i);
        switch (type) {
#define LAMELLA_SCALAR_TYPE(cpp, name, number_, text, ...) \
  case ScalarType::name: {                                 \
    cpp element = as_element<cpp>(number);                 \
    std::memcpy(data, &element, sizeof(element));          \
    return true;                                           \
  }
#include "lamella/core/scalar_type.def"
          default:
            break;
        }
        PyErr_Format(PyExc_TypeError, "expected a dtype that has elements, got %s",
                     dtype_name(type));
        return false;
      },
      false);
}

Match read_element(lamella_tensor* tensor, lamella_value* value, double* parts) {
  if (tensor->numel != 1) {
    PyErr_Format(PyExc_RuntimeError,
                 "item: expected a tensor of one element, got one of %lld elements",
                 static_cast<long long>(tensor->numel));
    return Match::kError;
  }
  if (!note_read(tensor, "item()")) return Match::kError;
  auto type = static_cast<ScalarType>(tensor->scalar_type);
  constexpr uint32_t lazy = LAMELLA_TENSOR_CONJ | LAMELLA_TENSOR_NEG;
  // Handlers in Python must see that an element is read.
  bool seen = ((tensor->key_set | lamella_thread.included) & python_key::kBit) != 0 &&
              (tensor->flags & LAMELLA_TENSOR_WRAPPED_NUMBER) == 0;
  if (tensor->device_type == static_cast<uint8_t>(DeviceType::CPU) && tensor->data != nullptr &&
      (tensor->flags & lazy) == 0 && !seen) {
    load_element(tensor->data, type, value, parts);
    return Match::kYes;
  }
  static KnownOperator local{"aten::_local_scalar_dense", ""};
  const lamella_operator* op = local.get();
  if (op == nullptr) return Match::kError;
  lamella_value argument = tensor_value(tensor), result = none_value();
  lamella_status status = lamella_call_boxed(op, &argument, 1, &result, 1);
  if (status != LAMELLA_OK) {
    raise_status(status);
    return Match::kError;
  }
  *value = result;
  if (result.tag == LAMELLA_COMPLEX) {
    std::memcpy(parts, result.as.pointer, 16);
    lamella_value_release(&result);
    set(value, LAMELLA_COMPLEX, 0);
  }
  return Match::kYes;
}

Match not_of_this_kind() {
  if (!PyErr_ExceptionMatches(PyExc_TypeError)) return Match::kError;
  PyErr_Clear();
  return Match::kNo;
}

Match read_int_slow(PyObject* object, int64_t* number) {
  if (PyBool_Check(object) || PyFloat_Check(object)) return Match::kNo;
  if (PyLong_Check(object)) {
    int over = 0;
    *number = PyLong_AsLongLongAndOverflow(object, &over);
    return over == 0 ? Match::kYes : overflow(object);
  }
  if (is_tensor(object)) {
    lamella_tensor* tensor = tensor_of(object);
    if (tensor->ndim != 0 || !is_integral(static_cast<ScalarType>(tensor->scalar_type), false)) {
      return Match::kNo;
    }
    lamella_value value;
    double parts[2];
    Match m = read_element(tensor, &value, parts);
    *number = value.as.i;
    return m == Match::kYes && is_above_int64(object, value) ? overflow(object) : m;
  }
  if (!PyIndex_Check(object) || is_numpy_bool(object)) return Match::kNo;
  Ref index(PyNumber_Index(object));
  if (!index) return not_of_this_kind();  // for example an array of more than one element
  int over = 0;
  *number = PyLong_AsLongLongAndOverflow(index.get(), &over);
  return over == 0 ? Match::kYes : overflow(object);
}

Match read_double(PyObject* object, double* number) {
  *number = 0;
  if (PyFloat_Check(object)) {
    *number = PyFloat_AS_DOUBLE(object);
    return Match::kYes;
  }
  if (PyLong_Check(object)) {
    *number = PyLong_AsDouble(object);
    return *number == -1.0 && PyErr_Occurred() != nullptr ? Match::kError : Match::kYes;
  }
  if (PyComplex_Check(object) || is_numpy_bool(object)) return Match::kNo;
  if (!is_tensor(object) && !PyIndex_Check(object) && !is_foreign_float(object)) return Match::kNo;
  lamella_value value;
  double parts[2];
  Match m = read_number(object, &value, parts);
  if (m != Match::kYes) return m;
  if (value.tag == LAMELLA_COMPLEX) return Match::kNo;
  *number = value.tag == LAMELLA_DOUBLE     ? value.as.d
            : is_above_int64(object, value) ? static_cast<double>(static_cast<uint64_t>(value.as.i))
                                            : static_cast<double>(value.as.i);
  return m;
}

bool is_above_int64(PyObject* object, uint64_t* number) {
  int over = 0;
  if (!PyLong_CheckExact(object)) return false;
  PyLong_AsLongLongAndOverflow(object, &over);
  if (over != 1) return false;
  *number = PyLong_AsUnsignedLongLong(object);
  if (PyErr_Occurred() == nullptr) return true;
  PyErr_Clear();
  return false;
}

bool read_above_int64(PyObject* object, ScalarType type, lamella_value* value) {
  uint64_t number;
  bool is_real = is_floating_point(type) || is_complex(type);
  if ((!is_real && type != ScalarType::UInt64) || !is_above_int64(object, &number)) return false;
  set(value, is_real ? LAMELLA_DOUBLE : LAMELLA_INT, static_cast<int64_t>(number));
  if (is_real) value->as.d = static_cast<double>(number);
  return true;
}

bool holds_gradient(PyObject* object) {
  return is_tensor(object) && lamella_tensor_requires_grad(tensor_of(object)) != 0;
}

bool read_bool(PyObject* object, bool* flag) {
  if (PyBool_Check(object)) {
    *flag = object == Py_True;
    return true;
  }
  if (!is_numpy_bool(object)) return false;
  int is = PyObject_IsTrue(object);
  if (is < 0) PyErr_Clear();  // a class that only has the same name
  *flag = is == 1;
  return is >= 0;
}

Match read_number(PyObject* object, lamella_value* value, double* parts) {
  if (PyFloat_Check(object)) {
    set(value, LAMELLA_DOUBLE, 0);
    value->as.d = PyFloat_AS_DOUBLE(object);
    return Match::kYes;
  }
  bool flag;
  if (read_bool(object, &flag)) {
    set(value, LAMELLA_BOOL, flag);
    return Match::kYes;
  }
  if (PyLong_Check(object)) {
    int over = 0;
    set(value, LAMELLA_INT, PyLong_AsLongLongAndOverflow(object, &over));
    return over == 0 ? Match::kYes : overflow(object);
  }
  if (is_tensor(object)) {
    if (tensor_of(object)->ndim != 0) return Match::kNo;
    return read_element(tensor_of(object), value, parts);
  }
  if (PyComplex_Check(object)) {
    Py_complex number = PyComplex_AsCComplex(object);
    parts[0] = number.real;
    parts[1] = number.imag;
    set(value, LAMELLA_COMPLEX, 0);
    return Match::kYes;
  }
  if (PyIndex_Check(object)) {
    int64_t number;
    Match m = read_int(object, &number);
    if (m == Match::kYes) set(value, LAMELLA_INT, number);
    return m;
  }
  if (!is_foreign_float(object)) return Match::kNo;
  if (strncmp(Py_TYPE(object)->tp_name, "numpy.complex", 13) == 0 ||
      strncmp(Py_TYPE(object)->tp_name, "numpy.clongdouble", 17) == 0) {
    Py_complex number = PyComplex_AsCComplex(object);
    if (PyErr_Occurred() != nullptr) return Match::kError;
    parts[0] = number.real;
    parts[1] = number.imag;
    set(value, LAMELLA_COMPLEX, 0);
    return Match::kYes;
  }
  double number = PyFloat_AsDouble(object);
  if (number == -1.0 && PyErr_Occurred() != nullptr) return not_of_this_kind();
  set(value, LAMELLA_DOUBLE, 0);
  value->as.d = number;
  return Match::kYes;
}

}  // namespace lamella::python
