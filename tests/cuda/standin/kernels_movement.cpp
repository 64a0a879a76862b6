// Kernels that move elements, for the stand-in. Their threads need nothing of each other, so they
// run one after the other.
#include "tests/cuda/standin/fibres.h"

#include "lamella/cuda/kernels/index.h"
#include "lamella/cuda/kernels/optimizer.h"
#include "lamella/cuda/kernels/radix.h"
#include "lamella/cuda/kernels/select.h"
#include "lamella/cuda/kernels/sort.h"
#include "lamella/cuda/kernels/windows.h"

namespace {
using namespace lamella::cuda;

template <class P, void (*body)(const P&, int64_t, int64_t)>
int run(const char*, const void* parameters, const standin::Shape& shape) {
  const int64_t threads = int64_t{shape.grid.x} * shape.block.x;
  for (int64_t i = 0; i < threads; ++i) body(*static_cast<const P*>(parameters), i, threads);
  return 0;
}

#define STANDIN_KERNEL(name, P, ...) {#name, sizeof(P), &run<P, &__VA_ARGS__>},
const standin::Kernel all[] = {
    LAMELLA_INDEX_KERNELS(STANDIN_KERNEL) LAMELLA_SELECT_KERNELS(STANDIN_KERNEL)
        LAMELLA_TILE_KERNELS LAMELLA_RADIX_KERNELS LAMELLA_WINDOW_KERNELS(STANDIN_KERNEL)
            LAMELLA_OPTIMIZER_KERNELS(STANDIN_KERNEL)};
const standin::AddKernels movement_kernels(all, sizeof(all) / sizeof(all[0]));

}  // namespace
