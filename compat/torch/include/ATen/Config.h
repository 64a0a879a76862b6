// How PyTorch was built: Lamella has none of these libraries under PyTorch's names.
#pragma once
#define AT_MKLDNN_ENABLED() 0
#define AT_MKL_ENABLED() 0
#define AT_NNPACK_ENABLED() 0
#define AT_PARALLEL_OPENMP 0
#define AT_PARALLEL_NATIVE 1
