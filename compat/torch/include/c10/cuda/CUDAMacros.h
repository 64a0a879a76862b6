// PyTorch's macros for libraries that use CUDA.
#pragma once
#include <c10/macros/Export.h>

#define C10_CUDA_EXPORT LAMELLA_PUBLIC
#define C10_CUDA_IMPORT LAMELLA_PUBLIC
#define C10_CUDA_API LAMELLA_PUBLIC
#define C10_COMPILE_TIME_MAX_GPUS 64
