// PyTorch's marks for its profiler: Lamella's sees operators by itself.
#pragma once
#include <ATen/record_function.h>
