// PyTorch's profiler annotations, which do nothing: Lamella's profiler records operators itself.
#pragma once
#include <ATen/record_function.h>
