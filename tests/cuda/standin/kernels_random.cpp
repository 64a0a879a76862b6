// The product's kernels of random numbers, for the stand-in: thread by thread.
#include "lamella/cuda/kernels/random.h"
#include "tests/cuda/standin/kernel.h"

namespace {
using namespace lamella;
using namespace lamella::cuda;

template <class Parameters, void (*body)(const Parameters&, int64_t, int64_t)>
int run(const char*, const void* parameters, const standin::Shape& shape) {
  const int64_t threads = int64_t{shape.grid.x} * shape.block.x;
  for (int64_t i = 0; i < threads; ++i) {
    body(*static_cast<const Parameters*>(parameters), i, threads);
  }
  return 0;
}
#define STANDIN_KERNEL(name, Parameters, ...) \
  {#name, sizeof(Parameters), &run<Parameters, &__VA_ARGS__>},
const standin::Kernel all[] = {LAMELLA_RANDOM_KERNELS(STANDIN_KERNEL)};
const standin::AddKernels random_kernels(all, sizeof(all) / sizeof(all[0]));

}  // namespace
