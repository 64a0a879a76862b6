// Checks of CUDA's runtime: C10_CUDA_CHECK, C10_CUDA_KERNEL_LAUNCH_CHECK.
#pragma once
#include <c10/cuda/CUDAMacros.h>
#include <c10/util/Exception.h>
#include <cuda_runtime_api.h>

#include "lamella/core/cuda_extension.h"

namespace c10 {
class CUDAError : public Error {
  using Error::Error;
};
namespace cuda {
[[noreturn]] inline void throw_error(cudaError_t error, const char* what) {
  throw CUDAError(lamella::str("CUDA error: ", cudaGetErrorString(error), " (",
                               cudaGetErrorName(error), "), reported by ", what));
}
// The error is CUDA's last one no longer, unless the context is lost.
inline void check(cudaError_t error, const char* what) {
  if (C10_LIKELY(error == cudaSuccess)) return;
  static_cast<void>(cudaGetLastError());
  throw_error(error, what);
}
inline void check_launch(const char* place) {
  check(cudaGetLastError(), place);
  lamella::detail::check(lamella_cuda_launched(place));
}
}  // namespace cuda
}  // namespace c10

#define C10_CUDA_CHECK(call) ::c10::cuda::check((call), #call)
#define C10_CUDA_CHECK_WARN(call)                                                 \
  do {                                                                            \
    if (const cudaError_t lamella_error = (call); lamella_error != cudaSuccess) { \
      static_cast<void>(cudaGetLastError());                                      \
      TORCH_WARN("CUDA warning: ", cudaGetErrorString(lamella_error));            \
    }                                                                             \
  } while (0)
#define C10_CUDA_ERROR_HANDLED(call) (call)
#define C10_CUDA_IGNORE_ERROR(call)                                   \
  do {                                                                \
    if ((call) != cudaSuccess) static_cast<void>(cudaGetLastError()); \
  } while (0)
#define C10_CUDA_CLEAR_ERROR() static_cast<void>(cudaGetLastError())
// After each launch. Its file and line are in the text of a later error.
#define C10_CUDA_KERNEL_LAUNCH_CHECK() \
  ::c10::cuda::check_launch(__FILE__ ":" C10_STRINGIZE(__LINE__))
