// PyTorch's checks, and the translation of C++ exceptions to Python's.
#pragma once
#include <c10/util/Exception.h>
#include <torch/python_casters.h>

// Encloses the body of a function that Python calls, and turns its exceptions and warnings into
// Python's.
#define HANDLE_TH_ERRORS \
  try {                  \
    ::lamella::pybind::PythonWarnings lamella_warnings;
#define END_HANDLE_TH_ERRORS_RET(result)   \
  }                                        \
  catch (...) {                            \
    ::lamella::pybind::set_python_error(); \
    return result;                         \
  }
#define END_HANDLE_TH_ERRORS END_HANDLE_TH_ERRORS_RET(nullptr)
