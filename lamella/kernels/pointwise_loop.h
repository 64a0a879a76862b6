// The kernels of pointwise operators, by name.
#pragma once
#include "lamella/kernels/dispatch_stub.h"

namespace lamella {
class Scalar;
class TensorIteratorBase;

namespace native {

// A pointwise kernel: runs over the operands of `iter`. `scalars` are the operator's number
// arguments, as many as the kernel takes; null if it takes none.
using pointwise_fn = void (*)(TensorIteratorBase& iter, const Scalar* scalars);

// The pointwise kernel `name` of each device. Each library has tables of its own.
template <KernelName name>
inline constexpr KernelTable<pointwise_fn>& pointwise_loop = named_kernel<pointwise_fn, name>;

}  // namespace native
}  // namespace lamella

// Registers a pointwise_fn as the loop `op` for this capability of the processor.
#define LAMELLA_REGISTER_POINTWISE(op, kernel)                                    \
  static const ::lamella::native::RegisterKernel LAMELLA_CONCAT(op, _registered)( \
      ::lamella::native::pointwise_loop<#op>, LAMELLA_THIS_CAPABILITY, kernel)
