// PyTorch's checks; exceptions become Python's by the casters.
#pragma once
#include <c10/util/Exception.h>
#include <torch/python_casters.h>

// The body of a function that Python calls: what it throws becomes Python's.
#define HANDLE_TH_ERRORS try {
#define END_HANDLE_TH_ERRORS_RET(result)   \
  }                                        \
  catch (...) {                            \
    ::lamella::pybind::set_python_error(); \
    return result;                         \
  }
#define END_HANDLE_TH_ERRORS END_HANDLE_TH_ERRORS_RET(nullptr)
