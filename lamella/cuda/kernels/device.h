// What kernels of blocks are written with, in C++ that nvcc compiles for a GPU and g++ for the
// stand-in of tests/cuda.
//
// Note [Kernels of blocks]
//   * A kernel is a function `LAMELLA_DEVICE void body(const Parameters& p)` in a header. The
//     header lists its kernels by a macro of LAMELLA_BLOCK_KERNEL(name, threads, Parameters, body)
//     rows; `threads` bounds the size of a block. The family's .cu file expands the list with the
//     macro below, tests/cuda/standin/kernels_<family>.cpp expands it for the host, and
//     cuda/launch.h launches it by its name.
//   * Bodies use CUDA's own names: threadIdx, blockIdx, blockDim, gridDim, __syncthreads and its
//     forms, __syncwarp, shuffles, ballots, votes, atomicAdd, Min, Max, And, Or, Xor, Exch, CAS,
//     __threadfence. On the stand-in a thread is a fibre, and a warp has 32 lanes.
//   * `__shared__ float sums[32];` declares static shared memory, without an initializer. Where it
//     needs an alignment, `alignas` comes first. Memory whose size the launch says is
//     `auto* rows = dynamic_shared<float>();`.
//   * Memory is reached by device_pointer<T>(address), since the stand-in's addresses are moved.
//   * trap() ends a launch whose input is wrong, such as an index out of range: the device is lost
//     to the process then, so arguments are checked on the host where they can be.
//   * The stand-in fails a launch and says where, if threads wait at a barrier that others of the
//     block left out, wait at different barriers, or have lanes of a warp operation missing.
#pragma once
#include <cstdint>

// Whether functions of blocks are compiled, not the structures of parameters alone.
#if defined(__CUDACC__) || defined(STANDIN_FIBRES)
#define LAMELLA_KERNEL_BODIES
#endif
#ifdef __CUDACC__
#define LAMELLA_UNROLL _Pragma("unroll")
#define LAMELLA_UNROLL_4 _Pragma("unroll 4")
#define LAMELLA_DEVICE __device__ __forceinline__
#define LAMELLA_BLOCK_KERNEL(name, threads, Parameters, ...) \
  extern "C" __global__ void __launch_bounds__(threads, 1)   \
      name(const __grid_constant__ Parameters p) {           \
    __VA_ARGS__(p);                                          \
  }
// A kernel whose threads need nothing of each other: body(parameters, thread, threads).
#define LAMELLA_GLOBAL(kernel, Parameters, ...)                             \
  extern "C" __global__ void kernel(const __grid_constant__ Parameters p) { \
    __VA_ARGS__(p, int64_t(blockIdx.x) * blockDim.x + threadIdx.x,          \
                int64_t(gridDim.x) * blockDim.x);                           \
  }
#else
#define LAMELLA_UNROLL
#define LAMELLA_UNROLL_4
#define LAMELLA_DEVICE inline
#endif

namespace lamella::cuda {

#ifdef __CUDACC__
LAMELLA_DEVICE const char* memory_at(uint64_t address) {
  return reinterpret_cast<const char*>(address);
}
LAMELLA_DEVICE void trap() { __trap(); }
template <class T>
LAMELLA_DEVICE T* dynamic_shared() {
  extern __shared__ __align__(16) char lamella_dynamic_shared[];
  return reinterpret_cast<T*>(lamella_dynamic_shared);
}
#else
// What is to be added to addresses of the stand-in's device memory.
extern intptr_t memory_offset;
inline const char* memory_at(uint64_t address) {
  return reinterpret_cast<const char*>(static_cast<intptr_t>(address) + memory_offset);
}
[[noreturn]] void trap();
void* standin_dynamic_shared();
template <class T>
T* dynamic_shared() {
  return static_cast<T*>(standin_dynamic_shared());
}
#endif

template <class T>
LAMELLA_DEVICE T* device_pointer(uint64_t address) {
  return reinterpret_cast<T*>(const_cast<char*>(memory_at(address)));
}

}  // namespace lamella::cuda
