// Kernels of losses as functions of the host.
#include <iterator>

#include "tests/cuda/standin/fibres.h"

#include "lamella/cuda/kernels/loss.h"

namespace {
using namespace lamella::cuda;
const standin::Kernel all[] = {LAMELLA_LOSS_KERNELS(LAMELLA_BLOCK_KERNEL)};
const standin::AddKernels loss_kernels(all, std::size(all));
}  // namespace
