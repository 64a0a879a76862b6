// AT_CUDA_CHECK, and checks of the driver.
#pragma once
#include <c10/cuda/CUDAException.h>

#define AT_CUDA_CHECK(call) C10_CUDA_CHECK(call)
#define AT_CUDA_DRIVER_CHECK(call)                                                       \
  do {                                                                                   \
    if (const int lamella_result = (call); lamella_result != 0) {                        \
      throw ::c10::CUDAError(                                                            \
          ::lamella::str("CUDA driver error ", lamella_result, ", reported by " #call)); \
    }                                                                                    \
  } while (0)
