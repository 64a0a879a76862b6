// Kernels of scans as functions of the host.
#include <iterator>

#include "tests/cuda/standin/fibres.h"

#include "lamella/cuda/kernels/scan.h"

namespace {
using namespace lamella::cuda;
const standin::Kernel all[] = {LAMELLA_SCAN_KERNELS(LAMELLA_BLOCK_KERNEL)};
const standin::AddKernels scan_kernels(all, std::size(all));
}  // namespace
