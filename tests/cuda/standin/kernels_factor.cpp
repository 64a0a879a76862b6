// The kernels of factorisations for the stand-in.
#include <iterator>

#include "tests/cuda/standin/fibres.h"

#include "lamella/cuda/kernels/factor.h"

namespace {
const standin::Kernel all[] = {LAMELLA_FACTOR_KERNELS};
const standin::AddKernels factor_kernels(all, std::size(all));
}  // namespace
