// The product's kernels as functions of the host, by name, for the stand-in. Kernels without
// barriers run thread by thread.
#include "tests/cuda/standin/kernel.h"

#include "lamella/cuda/kernels/activations.h"
#include "lamella/cuda/kernels/elementary.h"
#include "lamella/cuda/kernels/index.h"

namespace lamella::cuda {
intptr_t memory_offset = 0;
}

namespace {
using namespace lamella::cuda;

template <void (*body)(const PointwiseParameters&, int64_t, int64_t)>
void run(const void* parameters, standin::Grid grid, standin::Grid block) {
  const int64_t threads = int64_t{grid.x} * block.x;
  for (int64_t i = 0; i < threads; ++i) {
    body(*static_cast<const PointwiseParameters*>(parameters), i, threads);
  }
}

// Kernels with one parameter structure whose threads need nothing of each other.
template <class P, void (*body)(const P&, int64_t, int64_t)>
void run_threads(const void* parameters, standin::Grid grid, standin::Grid block) {
  const int64_t threads = int64_t{grid.x} * block.x;
  for (int64_t i = 0; i < threads; ++i) body(*static_cast<const P*>(parameters), i, threads);
}
#define STANDIN_THREADS(name, P, ...) {#name, sizeof(P), &run_threads<P, &__VA_ARGS__>},

#define STANDIN_KERNEL(loop, F, n, first, T, suffix) \
  {#loop "_" #suffix, sizeof(PointwiseParameters), &run<&pointwise<F<T>, T, n, first>>},
const standin::Kernel all[] = {
    LAMELLA_ARITHMETIC_KERNELS(STANDIN_KERNEL) LAMELLA_LOGIC_KERNELS(STANDIN_KERNEL)
        LAMELLA_ACTIVATION_KERNELS(STANDIN_KERNEL) LAMELLA_ELEMENTARY_KERNELS(STANDIN_KERNEL)
            LAMELLA_INDEX_KERNELS(STANDIN_THREADS)};

}  // namespace

extern "C" __attribute__((visibility("default"))) const standin::Kernel* standin_kernels(
    size_t* count, intptr_t offset) {
  lamella::cuda::memory_offset = offset;
  *count = sizeof(all) / sizeof(all[0]);
  return all;
}
