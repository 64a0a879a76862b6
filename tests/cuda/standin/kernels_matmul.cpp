// The kernels of matrix products for the stand-in.
#include <iterator>

#include "tests/cuda/standin/fibres.h"

#include "lamella/cuda/kernels/matmul.h"

namespace {
using namespace lamella::cuda;
const standin::Kernel all[] = {LAMELLA_MATMUL_KERNELS};
const standin::AddKernels matmul_kernels(all, std::size(all));
}  // namespace
