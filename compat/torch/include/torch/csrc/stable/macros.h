// Macros of PyTorch's stable interface.
#pragma once
#include <torch/headeronly/util/Exception.h>
