// Helpers of all the package's extension modules: C++ errors as Python errors, the GIL, entries of
// method tables. lamella._C defines the functions below; lamella._hlo forwards them to it.
#pragma once
#include "python/src/ref.h"

#include <utility>

#include "lamella/core/error.h"

namespace lamella::python {

// Sets the Python exception for a failed status from this thread's error text; returns NULL. A
// Python error that passed through C++ comes back as it was.
PyObject* raise_status(lamella_status status);
// Keeps the pending Python error of this thread, for raise_status(), and returns the status that
// carries it through C++.
lamella_status keep_python_error();

// Releases the GIL, and takes it again.
PyThreadState* release_gil();
void restore_gil(PyThreadState* released);
// Takes the GIL on a thread that may not have it, and restores the state before.
struct GilEntry {
  bool inside;  // whether the thread was inside a WithoutGil
  PyGILState_STATE state;
};
GilEntry enter_python();
void leave_python(GilEntry entered);

// Thrown through this project's C++ code while a Python error is set.
struct PythonError {};
// The object, which must not be NULL.
inline PyObject* required(PyObject* object) {
  if (object == nullptr) throw PythonError();
  return object;
}
// To be called in a catch (...): sets the Python exception and returns NULL.
inline PyObject* raise_current_exception() {
  try {
    throw;
  } catch (const PythonError&) {
    return nullptr;
  } catch (...) {
    return raise_status(detail::status_of_current_exception());
  }
}
// Runs a function that may throw; a thrown error becomes a Python exception and `failed`.
template <class F, class R>
auto guarded(F&& body, R failed) -> R {
  try {
    return body();
  } catch (...) {
    raise_current_exception();
    return failed;
  }
}
template <class F>
PyObject* guarded(F&& body) {
  return guarded(std::forward<F>(body), static_cast<PyObject*>(nullptr));
}

// The number of elements from which the GIL is released: handing it over costs tens of microseconds
// if another thread waits for it.
constexpr uint64_t kWorkToReleaseGil = 32768;

// Releases the GIL for its lifetime.
class WithoutGil {
 public:
  explicit WithoutGil(bool wanted = true) : state_(wanted ? release_gil() : nullptr) {}
  ~WithoutGil() {
    if (state_ != nullptr) restore_gil(state_);
  }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* state_;
};
// Holds the GIL for a thread that may not have it.
class GilScope {
 public:
  GilScope() : entry_(enter_python()) {}
  ~GilScope() { leave_python(entry_); }
  GilScope(const GilScope&) = delete;
  GilScope& operator=(const GilScope&) = delete;

 private:
  GilEntry entry_;
};

// Casts a function to the type in method tables; the entry's flags say how it is called.
template <class... A>
PyCFunction method(PyObject* (*function)(A...)) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

}  // namespace lamella::python
