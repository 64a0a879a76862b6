// The properties of calls that guards compare, and the comparisons.
#include "python/src_hlo/compiled_guards.h"

#include <cmath>

#include "lamella/abi/autocast.h"
#include "lamella/abi/autograd.h"
#include "lamella/core/key_set.h"
#include "lamella/kernels/default_dtype.h"
#include "lamella/layers/profile/profile.h"

namespace lamella::python {
namespace {

constexpr uint32_t kGuardedModes = LAMELLA_MODE_NO_GRAD | LAMELLA_MODE_INFERENCE;
// Keys that do not matter: of a thread that has not called an operator yet, and of a profiled one.
constexpr uint64_t kHarmless =
    lamella::detail::functionality_bit(lamella::detail::Functionality::ThreadInit) | profile::kKey;
// The dtypes of autocast on the CPU and on CUDA, as one number.
int cast_dtypes() {
  const int cpu = static_cast<int>(lamella_autocast_dtype(static_cast<uint8_t>(DeviceType::CPU)));
  return cpu +
         256 * static_cast<int>(lamella_autocast_dtype(static_cast<uint8_t>(DeviceType::CUDA)));
}

}  // namespace

CallState state_now() {
  uint64_t included = lamella_thread.included & ~kHarmless;
  return {included, lamella_thread.excluded, lamella_thread.modes & kGuardedModes, cast_dtypes(),
          static_cast<int>(get_default_dtype())};
}

bool is_same(PyObject* now, PyObject* before) {
  if (now == before) return true;
  if (now == nullptr || before == nullptr || Py_TYPE(now) != Py_TYPE(before)) return false;
  // 0.0 and -0.0 compare equal, but are different values.
  if (PyFloat_CheckExact(now)) {
    double a = PyFloat_AS_DOUBLE(now), b = PyFloat_AS_DOUBLE(before);
    return a == b && std::signbit(a) == std::signbit(b);
  }
  if (PyComplex_CheckExact(now)) {
    Py_complex a = PyComplex_AsCComplex(now), b = PyComplex_AsCComplex(before);
    return a.real == b.real && a.imag == b.imag && std::signbit(a.real) == std::signbit(b.real) &&
           std::signbit(a.imag) == std::signbit(b.imag);
  }
  bool plain = PyLong_CheckExact(now) || PyUnicode_CheckExact(now) || PyBytes_CheckExact(now);
  if (!plain) return false;
  int equal = PyObject_RichCompareBool(now, before, Py_EQ);
  if (equal < 0) PyErr_Clear();
  return equal > 0;
}

OutsidePlace place_from(PyObject* pair) {
  PyObject *container, *key;
  if (!PyArg_ParseTuple(pair, "OO", &container, &key)) throw PythonError();
  return {Ref::borrow(container), key == Py_None ? Ref() : Ref::borrow(key)};
}

std::vector<size_t> sizes_from(PyObject* numbers) {
  Ref list(required(PySequence_Fast(numbers, "numbers")));
  std::vector<size_t> made;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list.get()); ++i) {
    made.push_back(PyLong_AsSize_t(PySequence_Fast_GET_ITEM(list.get(), i)));
    if (PyErr_Occurred() != nullptr) throw PythonError();
  }
  return made;
}

std::optional<Pattern> pattern_of(PyObject* form) {
  std::string_view kind = text_of(PyTuple_GetItem(form, 0), "form");
  Pattern made;
  if (kind == "tensor") {
    made.kind = Pattern::Kind::Tensor;
    made.index = PyLong_AsSize_t(PyTuple_GetItem(form, 1));
    return made;
  }
  if (kind == "fixed") {
    made.value = Ref::borrow(PyTuple_GetItem(form, 1));
    return made;
  }
  if (kind == "tuple") {
    made.kind = Pattern::Kind::Tuple;
  } else if (kind == "list") {
    made.kind = Pattern::Kind::List;
  } else if (kind == "dict") {
    made.kind = Pattern::Kind::Dict;
    made.value = Ref::borrow(PyTuple_GetItem(form, 1));
  } else {
    return std::nullopt;
  }
  PyObject* items = PyTuple_GetItem(form, PyTuple_GET_SIZE(form) - 1);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items); ++i) {
    std::optional<Pattern> item = pattern_of(PyTuple_GET_ITEM(items, i));
    if (!item) return std::nullopt;
    made.items.push_back(std::move(*item));
  }
  return made;
}

bool take(const Pattern& pattern, PyObject* object, const std::vector<TensorGuard>& guards,
          Leaves* leaves) {
  switch (pattern.kind) {
    case Pattern::Kind::Tensor:
      if (!guards[pattern.index].fits(object)) return false;
      leaves->push_back(object);
      return true;
    case Pattern::Kind::Fixed:
      return is_same(object, pattern.value.get());
    case Pattern::Kind::Tuple:
    case Pattern::Kind::List: {
      bool tuple = pattern.kind == Pattern::Kind::Tuple;
      if (tuple ? !PyTuple_CheckExact(object) : !PyList_CheckExact(object)) return false;
      if (static_cast<size_t>(Py_SIZE(object)) != pattern.items.size()) return false;
      for (size_t i = 0; i < pattern.items.size(); ++i) {
        auto at = static_cast<Py_ssize_t>(i);
        PyObject* item = tuple ? PyTuple_GET_ITEM(object, at) : PyList_GET_ITEM(object, at);
        if (!take(pattern.items[i], item, guards, leaves)) return false;
      }
      return true;
    }
    case Pattern::Kind::Dict: {
      if (!PyDict_CheckExact(object)) return false;
      if (static_cast<size_t>(PyDict_GET_SIZE(object)) != pattern.items.size()) return false;
      Py_ssize_t place = 0;
      PyObject *key, *item;
      // The keys must have the same order.
      for (size_t i = 0; PyDict_Next(object, &place, &key, &item); ++i) {
        PyObject* expected = PyTuple_GET_ITEM(pattern.value.get(), static_cast<Py_ssize_t>(i));
        if (!is_same(key, expected) || !take(pattern.items[i], item, guards, leaves)) return false;
      }
      return true;
    }
  }
  return false;
}

PyObject* build(const Pattern& pattern, SmallList<Ref>& tensors) {
  auto count = static_cast<Py_ssize_t>(pattern.items.size());
  switch (pattern.kind) {
    case Pattern::Kind::Tensor:
      return Ref::borrow(tensors[pattern.index].get()).release();
    case Pattern::Kind::Fixed:
      return Ref::borrow(pattern.value.get()).release();
    case Pattern::Kind::Tuple:
    case Pattern::Kind::List: {
      bool tuple = pattern.kind == Pattern::Kind::Tuple;
      Ref made(required(tuple ? PyTuple_New(count) : PyList_New(count)));
      for (Py_ssize_t i = 0; i < count; ++i) {
        PyObject* item = build(pattern.items[static_cast<size_t>(i)], tensors);
        tuple ? PyTuple_SET_ITEM(made.get(), i, item) : PyList_SET_ITEM(made.get(), i, item);
      }
      return made.release();
    }
    case Pattern::Kind::Dict: {
      Ref made(required(PyDict_New()));
      for (Py_ssize_t i = 0; i < count; ++i) {
        Ref item(build(pattern.items[static_cast<size_t>(i)], tensors));
        PyObject* key = PyTuple_GET_ITEM(pattern.value.get(), i);
        if (PyDict_SetItem(made.get(), key, item.get()) != 0) throw PythonError();
      }
      return made.release();
    }
  }
  return nullptr;
}

}  // namespace lamella::python
