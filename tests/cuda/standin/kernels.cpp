// The library of the product's kernels as functions of the host, by name, and its pointwise
// kernels, which have no barriers and run thread by thread.
#include <cstring>

#include "tests/cuda/standin/kernel.h"

#include "lamella/cuda/kernels/activations.h"
#include "lamella/cuda/kernels/pointwise_table.h"
#include "lamella/cuda/kernels/special.h"

namespace lamella::cuda {
intptr_t memory_offset = 0;
}

namespace standin {
namespace {
constinit const AddKernels* families = nullptr;
}
AddKernels::AddKernels(const Kernel* first, size_t count)
    : first(first), count(count), next(families) {
  families = this;
}
}  // namespace standin

namespace {
using namespace lamella;
using namespace lamella::cuda;

template <void (*body)(const PointwiseParameters&, int64_t, int64_t)>
int run(const char*, const void* parameters, const standin::Shape& shape) {
  const int64_t threads = int64_t{shape.grid.x} * shape.block.x;
  for (int64_t i = 0; i < threads; ++i) {
    body(*static_cast<const PointwiseParameters*>(parameters), i, threads);
  }
  return 0;
}

#define STANDIN_KERNEL(loop, F, n, T, suffix) \
  {#loop "_" #suffix, sizeof(PointwiseParameters), &run<&pointwise<F<T>, T, n>>},
#define STANDIN_KERNELS(loop, F, n, result, scalars, types, accepts) \
  LAMELLA_TYPES_##types(STANDIN_KERNEL, loop, F, n)
const standin::Kernel all[] = {
    LAMELLA_ARITHMETIC_LOOPS(STANDIN_KERNELS) LAMELLA_LOGIC_LOOPS(STANDIN_KERNELS)
        LAMELLA_ACTIVATION_LOOPS(STANDIN_KERNELS) LAMELLA_ELEMENTARY_LOOPS(STANDIN_KERNELS)
            LAMELLA_SPECIAL_LOOPS(STANDIN_KERNELS)};
const standin::AddKernels pointwise_kernels(all, sizeof(all) / sizeof(all[0]));

}  // namespace

extern "C" __attribute__((visibility("default"))) const standin::Kernel* standin_kernel(
    const char* name, intptr_t offset) {
  // Once, since kernels of other streams read it.
  static const bool is_set = (lamella::cuda::memory_offset = offset, true);
  static_cast<void>(is_set);
  for (const auto* family = standin::families; family != nullptr; family = family->next) {
    for (size_t i = 0; i < family->count; ++i) {
      if (std::strcmp(family->first[i].name, name) == 0) return &family->first[i];
    }
  }
  return nullptr;
}
