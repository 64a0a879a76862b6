// PyTorch's checks; exceptions become Python's by the casters.
#pragma once
#include <c10/util/Exception.h>
#include <torch/python_casters.h>
