// PyTorch's visibility macros.
#pragma once
#include "lamella/core/macros.h"

#define C10_EXPORT LAMELLA_PUBLIC
#define C10_IMPORT LAMELLA_PUBLIC
#define C10_HIDDEN __attribute__((visibility("hidden")))
#define C10_API LAMELLA_PUBLIC
#define TORCH_API LAMELLA_PUBLIC
#define TORCH_PYTHON_API LAMELLA_PUBLIC
#define TORCH_CUDA_CU_API LAMELLA_PUBLIC
#define TORCH_CUDA_CPP_API LAMELLA_PUBLIC
#define TORCH_XPU_API LAMELLA_PUBLIC
#define TORCH_EXPORT LAMELLA_PUBLIC
