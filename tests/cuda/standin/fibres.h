// CUDA C++'s names for the host, so that g++ compiles kernels of blocks: included before their
// headers. A thread of a block is a fibre, and the fibres of a block take turns on one thread of
// the host; see Note [Kernels of blocks] in lamella/cuda/kernels/device.h.
//
// Note [Turns of fibres]
//   A fibre runs until a barrier, a warp operation or its end. The lanes of a warp run one after
//   another, then the next warp does; warps and lanes take turns backwards in every other block, so
//   that a missing barrier gives wrong results in one of the orders. Sanitizers are told of the
//   fibres; the thread sanitizer sees barriers and warp operations as the only order of them.
#pragma once
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "tests/cuda/standin/kernel.h"

#define STANDIN_FIBRES
#define LAMELLA_BLOCK_KERNEL(name, threads, Parameters, ...) \
  {#name, sizeof(Parameters), &standin::run_block_kernel<Parameters, &__VA_ARGS__>, threads},

// Shared memory belongs to the thread of the host that runs the block.
#define __shared__ static thread_local

namespace standin {

struct Fibre;
struct Index {
  unsigned x, y, z;
};
struct Running {
  Index thread, block, block_dim, grid_dim;
  unsigned number;  // of the thread in its block
};
extern constinit thread_local Running running;

void wait_for_block(int line, const char* file);
// Waits for the lanes of a mask, and reads the value of one: its own if the lane is not there.
uint64_t wait_for_warp(unsigned mask, uint64_t value, unsigned lane, int line, const char* file);
uint64_t value_of_lane(unsigned lane);  // of the last operation
int run_fibres(const char* name, void (*body)(const void*), const void* parameters,
               const Shape& shape);

template <class P, void (*body)(const P&)>
int run_block_kernel(const char* name, const void* parameters, const Shape& shape) {
  return run_fibres(
      name, [](const void* p) { body(*static_cast<const P*>(p)); }, parameters, shape);
}
template <class T>
T exchange(unsigned mask, T value, unsigned lane, int line, const char* file) {
  static_assert(sizeof(T) <= 8);
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = wait_for_warp(mask, bits, lane, line, file);
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}
// Combines the values of the lanes of a mask.
template <class F>
unsigned vote(unsigned mask, bool value, F combine, int line, const char* file) {
  wait_for_warp(mask, value ? 1 : 0, running.number & 31, line, file);
  unsigned set = 0;
  for (unsigned lane = 0; lane < 32; ++lane) {
    if ((mask >> lane & 1) != 0 && value_of_lane(lane) != 0) set |= 1U << lane;
  }
  return combine(set);
}

// Tensor cores: ldmatrix of four matrices of 16 bits, of whose rows each lane gives one, and
// mma.m16n8k16 with sums in float, whose elements `widen` reads.
void load_matrices(uint32_t (&x)[4], const void* row, bool transposed);
void multiply_matrices(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1,
                       float (*widen)(uint16_t));

}  // namespace standin

#define threadIdx (standin::running.thread)
#define blockIdx (standin::running.block)
#define blockDim (standin::running.block_dim)
#define gridDim (standin::running.grid_dim)

#define STANDIN_HERE int line = __builtin_LINE(), const char *file = __builtin_FILE()

inline void __syncthreads(STANDIN_HERE) { standin::wait_for_block(line, file); }
int __syncthreads_count(int value, STANDIN_HERE);
inline int __syncthreads_or(int value, STANDIN_HERE) {
  return __syncthreads_count(value, line, file) != 0;
}
inline int __syncthreads_and(int value, STANDIN_HERE) {
  return __syncthreads_count(value == 0, line, file) == 0;
}
inline void __syncwarp(unsigned mask = ~0U, STANDIN_HERE) {
  standin::wait_for_warp(mask, 0, 0, line, file);
}
inline unsigned __ballot_sync(unsigned mask, int value, STANDIN_HERE) {
  return standin::vote(mask, value != 0, [](unsigned set) { return set; }, line, file);
}
inline int __any_sync(unsigned mask, int value, STANDIN_HERE) {
  return __ballot_sync(mask, value, line, file) != 0;
}
inline int __all_sync(unsigned mask, int value, STANDIN_HERE) {
  return __ballot_sync(mask, value == 0, line, file) == 0;
}
template <class T>
T __shfl_sync(unsigned mask, T value, int lane, int width = 32, STANDIN_HERE) {
  const unsigned own = standin::running.number & 31, w = static_cast<unsigned>(width);
  return standin::exchange(mask, value, (own & ~(w - 1)) | (static_cast<unsigned>(lane) & (w - 1)),
                           line, file);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32, STANDIN_HERE) {
  const unsigned own = standin::running.number & 31, w = static_cast<unsigned>(width);
  const unsigned lane = own ^ static_cast<unsigned>(bits);
  return standin::exchange(mask, value, lane <= (own | (w - 1)) ? lane : own, line, file);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32, STANDIN_HERE) {
  const unsigned own = standin::running.number & 31, at = own & static_cast<unsigned>(width - 1);
  return standin::exchange(mask, value, at >= by ? own - by : own, line, file);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32, STANDIN_HERE) {
  const unsigned own = standin::running.number & 31, w = static_cast<unsigned>(width);
  return standin::exchange(mask, value, (own & (w - 1)) + by < w ? own + by : own, line, file);
}
template <class T>
unsigned __match_any_sync(unsigned mask, T value, STANDIN_HERE) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  standin::wait_for_warp(mask, bits, 0, line, file);
  unsigned same = 0;
  for (unsigned lane = 0; lane < 32; ++lane) {
    if ((mask >> lane & 1) != 0 && standin::value_of_lane(lane) == bits) same |= 1U << lane;
  }
  return same;
}
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_block() {}
template <class T>
T __ldg(const T* from) {
  return *from;
}

// Atomics: other streams may use the same memory at the same time.
namespace standin {
template <class T, class F>
T atomically(T* at, F change) {
  T former, changed;
  __atomic_load(at, &former, __ATOMIC_RELAXED);
  do {
    changed = change(former);
  } while (
      !__atomic_compare_exchange(at, &former, &changed, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return former;
}
}  // namespace standin
#define STANDIN_ATOMIC(name, expression)                                                \
  template <class T>                                                                    \
  T name(T* at, std::type_identity_t<T> by) {                                           \
    return standin::atomically(at, [by](T was) { return static_cast<T>(expression); }); \
  }
STANDIN_ATOMIC(atomicAdd, was + by)
STANDIN_ATOMIC(atomicSub, was - by)
STANDIN_ATOMIC(atomicMin, by < was ? by : was)
STANDIN_ATOMIC(atomicMax, by > was ? by : was)
STANDIN_ATOMIC(atomicAnd, was& by)
STANDIN_ATOMIC(atomicOr, was | by)
STANDIN_ATOMIC(atomicXor, was ^ by)
STANDIN_ATOMIC(atomicExch, (static_cast<void>(was), by))
#undef STANDIN_ATOMIC
template <class T>
T atomicCAS(T* at, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
  return standin::atomically(at, [=](T was) { return was == expected ? value : was; });
}
