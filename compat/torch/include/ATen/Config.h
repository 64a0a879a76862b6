// PyTorch's build configuration: Lamella is built with none of these libraries.
#pragma once
#define AT_MKLDNN_ENABLED() 0
#define AT_MKL_ENABLED() 0
#define AT_NNPACK_ENABLED() 0
#define AT_PARALLEL_OPENMP 0
#define AT_PARALLEL_NATIVE 1
