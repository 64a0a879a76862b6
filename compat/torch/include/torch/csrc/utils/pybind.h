// Casters between Lamella's types and Python's, for pybind11.
#pragma once
#include <torch/python_casters.h>
