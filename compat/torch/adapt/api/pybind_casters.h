// pybind11 type casters for tensors, dtypes and so on: arguments and returns of extension modules
// are the Python package's own objects. Needs pybind11 and an imported lamella.
#pragma once
#include <pybind11/pybind11.h>

#include <exception>
#include <utility>

#include "lamella/abi/python.h"
#include "lamella/api/functions.h"
#include "lamella/core/list.h"

namespace lamella::pybind {

// Thrown where Python's error is set. persist() takes the error from the thread, and restore() sets
// it on the thread that the exception has come to.
class LAMELLA_HIDDEN python_error : public std::exception {
 public:
  void persist() { error_ = std::make_shared<pybind11::error_already_set>(); }
  void restore() {
    if (error_ != nullptr) std::exchange(error_, nullptr)->restore();
  }
  const char* what() const noexcept override { return "Python's error is set"; }

 private:
  std::shared_ptr<pybind11::error_already_set> error_;
};

// The package's table; imports the package, and makes Lamella's exceptions Python's.
inline const lamella_python_table& table() {
  static const lamella_python_table* const table = [] {
    pybind11::module_::import("lamella");
    auto* found =
        static_cast<const lamella_python_table*>(PyCapsule_Import(LAMELLA_PYTHON_TABLE_NAME, 0));
    if (found == nullptr) throw pybind11::error_already_set();
    pybind11::register_exception_translator([](std::exception_ptr error) {
      try {
        if (error) std::rethrow_exception(error);
      } catch (const Error& known) {
        lamella::pybind::table().raise(known.status(), known.what());
      } catch (python_error& set) {
        set.restore();
      }
    });
    return found;
  }();
  return *table;
}

// Sets the exception that is being handled as Python's error, for functions that Python calls
// without pybind11.
inline void set_python_error() {
  try {
    throw;
  } catch (pybind11::error_already_set& error) {
    error.restore();
  } catch (python_error& error) {
    error.restore();
  } catch (const pybind11::builtin_exception& error) {
    error.set_error();
  } catch (const Error& error) {
    table().raise(error.status(), error.what());
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
}

// Converts an enumeration, by its number, to its Python object and back.
template <class E>
struct Numbered;
#define LAMELLA_NUMBERED(E, word)                                                \
  template <>                                                                    \
  struct Numbered<E> {                                                           \
    static constexpr auto name = pybind11::detail::const_name("lamella." #word); \
    static constexpr auto wrap = &lamella_python_table::wrap_##word;             \
    static constexpr auto read = &lamella_python_table::read_##word;             \
  };
LAMELLA_NUMBERED(ScalarType, dtype)
LAMELLA_NUMBERED(Layout, layout)
LAMELLA_NUMBERED(MemoryFormat, memory_format)
#undef LAMELLA_NUMBERED
template <class E>
struct NumberedCaster {
  PYBIND11_TYPE_CASTER(E, Numbered<E>::name);
  bool load(pybind11::handle source, bool) {
    uint8_t number = 0;
    if ((table().*Numbered<E>::read)(source.ptr(), &number) == 0) return false;
    value = static_cast<E>(number);
    return true;
  }
  static pybind11::handle cast(E from, pybind11::return_value_policy, pybind11::handle) {
    return (table().*Numbered<E>::wrap)(static_cast<uint8_t>(from));
  }
};

}  // namespace lamella::pybind

namespace pybind11::detail {

template <class T>
struct type_caster<T, std::enable_if_t<std::is_base_of_v<lamella::TensorBase, T>>> {
  PYBIND11_TYPE_CASTER(T, const_name("lamella.Tensor"));
  // None is an undefined tensor.
  bool load(handle source, bool) {
    lamella_tensor* tensor = nullptr;
    if (!source.is_none() && lamella::pybind::table().read_tensor(source.ptr(), &tensor) == 0) {
      return false;
    }
    value = T(lamella::TensorBase::borrow(tensor));
    return true;
  }
  static handle cast(const T& from, return_value_policy, handle) {
    return lamella::pybind::table().wrap_tensor(lamella::TensorBase(from).unsafe_release());
  }
  static handle cast(T&& from, return_value_policy, handle) {
    return lamella::pybind::table().wrap_tensor(from.unsafe_release());
  }
};
template <>
struct type_caster<lamella::ScalarType> : lamella::pybind::NumberedCaster<lamella::ScalarType> {};
template <>
struct type_caster<lamella::Layout> : lamella::pybind::NumberedCaster<lamella::Layout> {};
template <>
struct type_caster<lamella::MemoryFormat> : lamella::pybind::NumberedCaster<lamella::MemoryFormat> {
};
template <>
struct type_caster<lamella::Device> {
  PYBIND11_TYPE_CASTER(lamella::Device, const_name("lamella.device"));
  type_caster() : value(lamella::DeviceType::CPU) {}
  bool load(handle source, bool) {
    uint8_t type = 0;
    int8_t index = 0;
    if (lamella::pybind::table().read_device(source.ptr(), &type, &index) == 0) return false;
    value = lamella::Device(static_cast<lamella::DeviceType>(type), index);
    return true;
  }
  static handle cast(lamella::Device from, return_value_policy, handle) {
    return lamella::pybind::table().wrap_device(static_cast<uint8_t>(from.type()), from.index());
  }
};
template <class T>
struct type_caster<T, std::enable_if_t<std::is_base_of_v<lamella::TensorMemory, T>>> {
  PYBIND11_TYPE_CASTER(T, const_name("lamella.UntypedStorage"));
  // Python's storages do not come back.
  bool load(handle, bool) { return false; }
  static handle cast(const lamella::TensorMemory& from, return_value_policy, handle) {
    return pybind11::cast(from.tensor()).attr("untyped_storage")().release();
  }
};
template <>
struct type_caster<lamella::Generator> {
  PYBIND11_TYPE_CASTER(lamella::Generator, const_name("lamella.Generator"));
  bool load(handle source, bool) {
    lamella_object* generator = nullptr;
    if (lamella::pybind::table().read_generator(source.ptr(), &generator) == 0) return false;
    value = lamella::Generator::borrow(generator);
    return true;
  }
  static handle cast(const lamella::Generator& from, return_value_policy, handle) {
    return lamella::pybind::table().wrap_generator(lamella::Generator(from).unsafe_release());
  }
};
// A Python number, or a tensor of one element.
template <>
struct type_caster<lamella::Scalar> {
  PYBIND11_TYPE_CASTER(lamella::Scalar, const_name("Number"));
  bool load(handle source, bool) {
    PyObject* object = source.ptr();
    lamella_tensor* tensor = nullptr;
    if (PyBool_Check(object)) {
      value = lamella::Scalar(object == Py_True);
    } else if (PyComplex_Check(object)) {
      value = lamella::Scalar(
          lamella::complex<double>(PyComplex_RealAsDouble(object), PyComplex_ImagAsDouble(object)));
    } else if (PyFloat_Check(object)) {
      value = lamella::Scalar(PyFloat_AS_DOUBLE(object));
    } else if (lamella::pybind::table().read_tensor(object, &tensor) != 0) {
      value = lamella::Tensor(lamella::TensorBase::borrow(tensor)).item();
    } else {
      int64_t number = PyIndex_Check(object) ? PyLong_AsLongLong(object) : -1;
      if (!PyIndex_Check(object) || (number == -1 && PyErr_Occurred() != nullptr)) {
        PyErr_Clear();
        return false;
      }
      value = lamella::Scalar(number);
    }
    return true;
  }
  static handle cast(const lamella::Scalar& from, return_value_policy, handle) {
    if (from.isBoolean()) return PyBool_FromLong(from.toBool() ? 1 : 0);
    if (from.isIntegral(false)) return PyLong_FromLongLong(from.toLong());
    if (from.isFloatingPoint()) return PyFloat_FromDouble(from.toDouble());
    lamella::complex<double> z = from.toComplexDouble();
    return PyComplex_FromDoubles(z.real(), z.imag());
  }
};
template <class T>
struct type_caster<lamella::complex<T>> {
  PYBIND11_TYPE_CASTER(lamella::complex<T>, const_name("complex"));
  bool load(handle source, bool) {
    Py_complex z = PyComplex_AsCComplex(source.ptr());
    if (PyErr_Occurred() != nullptr) {
      PyErr_Clear();
      return false;
    }
    value = {static_cast<T>(z.real), static_cast<T>(z.imag)};
    return true;
  }
  static handle cast(const lamella::complex<T>& from, return_value_policy, handle) {
    return PyComplex_FromDoubles(from.real(), from.imag());
  }
};
// Lists: the caster owns the entries for the time of the call.
template <class T>
struct type_caster<lamella::ArrayRef<T>> {
  static constexpr auto name = const_name("List[") + make_caster<T>::name + const_name("]");
  template <class>
  using cast_op_type = lamella::ArrayRef<T>;
  bool load(handle source, bool convert) {
    if (!isinstance<sequence>(source) || isinstance<str>(source)) return false;
    for (handle entry : reinterpret_borrow<sequence>(source)) {
      make_caster<T> caster;
      if (!caster.load(entry, convert)) return false;
      entries_.push_back(cast_op<T>(std::move(caster)));
    }
    return true;
  }
  operator lamella::ArrayRef<T>() { return entries_; }
  static handle cast(lamella::ArrayRef<T> from, return_value_policy policy, handle parent) {
    list result(from.size());
    for (size_t i = 0; i < from.size(); ++i) {
      object entry = reinterpret_steal<object>(make_caster<T>::cast(from[i], policy, parent));
      if (!entry) return handle();
      PyList_SET_ITEM(result.ptr(), static_cast<Py_ssize_t>(i), entry.release().ptr());
    }
    return result.release();
  }

 private:
  std::vector<T> entries_;
};

}  // namespace pybind11::detail
