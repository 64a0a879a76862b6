// Casters between Lamella's types and Python's, for pybind11.
#pragma once
#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/types.h>

#include "lamella/api/pybind_casters.h"
#include "lamella/api/pybind_warnings.h"

namespace py = pybind11;
using lamella::pybind::python_error;
namespace torch {
using lamella::pybind::wrap_pybind_function;
}
