// What an extension for Python includes: all of torch::, pybind11 and the casters between them.
#pragma once
#include <torch/torch.h>

#include <torch/python_casters.h>
