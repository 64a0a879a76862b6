// The custom-call guide's programs for CUDA, in XLA's spelling: targets that launch kernels, in a
// library of their own. Compiled by nvcc; custom_call_cuda_test.cpp runs them.
#include <cuda.h>

#include "tensorflow/compiler/xla/service/custom_call_status.h"
#include "tensorflow/compiler/xla/service/custom_call_target_registry.h"
#include "tensorflow/compiler/xla/types.h"

using xla::int64;

// ---- A[i] = B[i % 128] + C[i] ----

__global__ void custom_call_kernel(const float* in0, const float* in1, float* out) {
  size_t idx = blockIdx.x * blockDim.x + threadIdx.x;
  out[idx] = in0[idx % 128] + in1[idx];
}

void do_custom_call(CUstream stream, void** buffers, const char* opaque, size_t opaque_len) {
  const float* in0 = reinterpret_cast<const float*>(buffers[0]);
  const float* in1 = reinterpret_cast<const float*>(buffers[1]);
  float* out = reinterpret_cast<float*>(buffers[2]);

  const int64 block_dim = 64;
  const int64 grid_dim = 2048 / block_dim;
  custom_call_kernel<<<grid_dim, block_dim,
                       /*dynamic_shared_mem_bytes=*/0, stream>>>(in0, in1, out);
}
XLA_REGISTER_CUSTOM_CALL_TARGET(do_custom_call, "CUDA");

// ---- Sizes in opaque; an error by status ----

namespace {

__global__ void scale_kernel(const float* in, float* out, int64 count) {
  int64 idx = static_cast<int64>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (idx < count) out[idx] = 2 * in[idx];
}

// opaque: the number of elements, an int64.
void do_scale(CUstream stream, void** buffers, const char* opaque, size_t opaque_len,
              xla::XlaCustomCallStatus* status) {
  int64 count = 0;
  if (opaque_len != sizeof(count)) {
    const char* error_message = "expected the number of elements in opaque";
    XlaCustomCallStatusSetFailure(status, error_message, strlen(error_message));
    return;
  }
  memcpy(&count, opaque, sizeof(count));
  scale_kernel<<<(count + 63) / 64, 64, 0, stream>>>(reinterpret_cast<const float*>(buffers[0]),
                                                     reinterpret_cast<float*>(buffers[1]), count);
}
XLA_REGISTER_CUSTOM_CALL_TARGET(do_scale, "CUDA");

// ---- Tuples: six device pointers in preorder ----

__global__ void copy_kernel(const float* in, float* out, int count) {
  int idx = blockIdx.x * blockDim.x + threadIdx.x;
  if (idx < count) out[idx] = in[idx];
}

void do_tuple_call(CUstream stream, void** buffers, const char* opaque, size_t opaque_len) {
  const float* subbuf0 = reinterpret_cast<const float*>(buffers[0]);
  const float* subbuf1 = reinterpret_cast<const float*>(buffers[1]);
  const float* subbuf2 = reinterpret_cast<const float*>(buffers[2]);
  const float* subbuf3 = reinterpret_cast<const float*>(buffers[3]);
  float* output_subbuf0 = reinterpret_cast<float*>(buffers[4]);
  float* temporary = reinterpret_cast<float*>(buffers[5]);
  // By way of the temporary buffer, where they lie one after the other.
  copy_kernel<<<1, 32, 0, stream>>>(subbuf0, temporary, 32);
  copy_kernel<<<1, 64, 0, stream>>>(subbuf1, temporary + 32, 64);
  copy_kernel<<<1, 128, 0, stream>>>(subbuf2, temporary + 96, 128);
  copy_kernel<<<1, 256, 0, stream>>>(subbuf3, temporary + 224, 256);
  copy_kernel<<<1, 32, 0, stream>>>(subbuf0, temporary + 480, 32);
  copy_kernel<<<2, 256, 0, stream>>>(temporary, output_subbuf0, 512);
}
XLA_REGISTER_CUSTOM_CALL_TARGET(do_tuple_call, "CUDA");

}  // namespace
