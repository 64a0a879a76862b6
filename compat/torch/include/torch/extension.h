// The header for Python extensions: all of torch::, pybind11 and the casters between them.
#pragma once
#include <torch/torch.h>

// Operators that are registered without Python bindings need neither Python nor pybind11.
#if __has_include(<Python.h>) && __has_include(<pybind11/pybind11.h>)
#include <torch/python_casters.h>
#ifndef LAMELLA_WITHOUT_NETWORKS
#include <torch/python.h>
#endif
#endif
