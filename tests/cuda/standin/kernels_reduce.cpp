// Kernels of reductions as functions of the host.
#include <iterator>

#include "tests/cuda/standin/fibres.h"

#include "lamella/cuda/kernels/reduce.h"

namespace {
using namespace lamella::cuda;
const standin::Kernel all[] = {LAMELLA_REDUCE_KERNELS(LAMELLA_BLOCK_KERNEL)};
const standin::AddKernels reduce_kernels(all, std::size(all));
}  // namespace
