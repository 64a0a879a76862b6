// Kernels of softmax and norms as functions of the host.
#include <iterator>

#include "tests/cuda/standin/fibres.h"

#include "lamella/cuda/kernels/norm.h"

namespace {
using namespace lamella::cuda;
const standin::Kernel all[] = {LAMELLA_NORM_KERNELS(LAMELLA_BLOCK_KERNEL)};
const standin::AddKernels norm_kernels(all, std::size(all));
}  // namespace
