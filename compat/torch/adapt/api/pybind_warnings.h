// PythonWarnings, and functions for pybind11 whose warnings are Python's.
#pragma once
#include <pybind11/pybind11.h>

#include <exception>
#include <vector>

#include "lamella/core/warning.h"

namespace lamella::pybind {

// Keeps the warnings of this thread, and gives them to Python when it ends. Where warnings are
// errors the end throws, unless another exception is on its way.
class PythonWarnings {
 public:
  PythonWarnings() = default;
  PythonWarnings(const PythonWarnings&) = delete;
  PythonWarnings& operator=(const PythonWarnings&) = delete;
  ~PythonWarnings() noexcept(false) {
    if (kept_.all.empty()) return;
    pybind11::gil_scoped_acquire gil;
    pybind11::error_scope error_of_the_exception;
    for (const Warning& warning : kept_.all) {
      PyObject* kind = warning.type().is_deprecation ? PyExc_DeprecationWarning : PyExc_UserWarning;
      if (PyErr_WarnEx(kind, warning.msg().c_str(), 1) == 0) continue;
      if (std::uncaught_exceptions() == before_) throw pybind11::error_already_set();
      PyErr_Clear();
    }
  }

 private:
  struct Kept : WarningHandler {
    void process(const Warning& warning) override { all.push_back(warning); }
    std::vector<Warning> all;
  };
  Kept kept_;
  WarningUtils::WarningHandlerGuard guard_{&kept_};
  const int before_ = std::uncaught_exceptions();
};

template <class R, class... A>
auto wrap_pybind_function(R (*function)(A...)) {
  return [function](A... arguments) -> R {
    PythonWarnings warnings;
    return function(std::forward<A>(arguments)...);
  };
}

}  // namespace lamella::pybind
