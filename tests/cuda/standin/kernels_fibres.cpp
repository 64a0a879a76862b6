// Kernels that check the stand-in's fibres: tests/cuda/checks_fibres.py.
#include <iterator>

#include "tests/cuda/standin/fibres.h"

#include "lamella/cuda/kernels/device.h"

namespace lamella::cuda {
[[noreturn]] void trap();
}

namespace {
using lamella::cuda::device_pointer;
using lamella::cuda::dynamic_shared;

// `wrong` leaves something out: 1 a barrier, 2 a barrier for half of the threads, 3 a lane of a
// warp operation, 4 one of two barriers for half of the threads.
struct FibreParameters {
  uint64_t in, out;
  int32_t n, wrong;
};

// The sum of a block's elements, added to out[0]; a block's number to out[1 + block].
void fibres_sum(const FibreParameters& p) {
  __shared__ int sums[32];
  const int block = static_cast<int>(blockIdx.y * gridDim.x + blockIdx.x);
  const int thread = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
  const int threads = static_cast<int>(blockDim.x * blockDim.y), at = block * threads + thread;
  int sum = at < p.n ? device_pointer<int>(p.in)[at] : 0;
  if (p.wrong == 3 && thread == 5) return;
  for (int by = 16; by > 0; by /= 2) sum += __shfl_xor_sync(~0U, sum, by);
  if (thread % 32 == 0) sums[thread / 32] = sum;
  __syncthreads();
  if (thread != 0) return;
  for (int i = 1; i < threads / 32; ++i) sum += sums[i];
  atomicAdd(device_pointer<int>(p.out), sum);
  device_pointer<int>(p.out)[1 + block] = block;
}
// Turns the elements of a block round.
void fibres_turn(const FibreParameters& p) {
  int* row = dynamic_shared<int>();
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  const int at = static_cast<int>(blockIdx.x) * threads;
  row[thread] = device_pointer<int>(p.in)[at + thread];
  if (p.wrong != 1 && (p.wrong != 2 || thread < 64)) __syncthreads();
  if (p.wrong == 4 && thread < 64) __syncthreads();
  const int turned = row[threads - 1 - thread];
  if (p.wrong == 4 && thread >= 64) __syncthreads();
  device_pointer<int>(p.out)[at + thread] = turned;
}
// Votes, shuffles and counts; 10 results of each thread.
void fibres_lanes(const FibreParameters& p) {
  const auto thread = static_cast<int>(threadIdx.x);
  int* out = device_pointer<int>(p.out) + 10 * thread;
  const double wide = 0.5 * thread;
  out[0] = static_cast<int>(__ballot_sync(~0U, thread % 3 == 0));
  out[1] = __any_sync(~0U, thread == 40);
  out[2] = __all_sync(~0U, thread >= 32);
  out[3] = static_cast<int>(2 * __shfl_sync(~0U, wide, 3));
  out[4] = __shfl_up_sync(~0U, thread, 2);
  out[5] = __shfl_down_sync(~0U, thread, 1, 8);
  out[6] = __syncthreads_count(thread % 5 == 0);
  out[7] = static_cast<int>(__match_any_sync(~0U, thread % 4));
  out[8] = thread % 32 < 16 ? __shfl_xor_sync(0xffffU, thread, 1) : -1;
  out[9] = __syncthreads_or(thread == 7) * 2 + __syncthreads_and(thread < 63);
}

const standin::Kernel all[] = {
    LAMELLA_BLOCK_KERNEL(fibres_sum, 1024, FibreParameters, fibres_sum)
        LAMELLA_BLOCK_KERNEL(fibres_turn, 256, FibreParameters, fibres_turn)
            LAMELLA_BLOCK_KERNEL(fibres_lanes, 64, FibreParameters, fibres_lanes)};
const standin::AddKernels fibre_kernels(all, std::size(all));

}  // namespace

static uint32_t special_register(int which) {
  const unsigned numbers[] = {threadIdx.x, blockIdx.x, blockDim.x, gridDim.x};
  return numbers[which];
}
extern "C" __attribute__((visibility("default"))) const standin::FibreFunctions standin_fibres = {
    standin::run_fibres, special_register, standin::wait_for_block, standin::wait_for_warp,
    lamella::cuda::trap};
