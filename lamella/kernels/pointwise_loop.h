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

// The stub of the pointwise kernel `name`. Each library has stubs of its own.
template <StubName name>
inline constexpr DispatchStub<pointwise_fn, StubNameTag<name>>& pointwise_loop =
    named_stub<pointwise_fn, name>;

}  // namespace native
}  // namespace lamella

// Registers a pointwise_fn as the loop `op` for this capability of the processor.
#define LAMELLA_REGISTER_POINTWISE(op, kernel)                                       \
  static const ::lamella::native::RegisterCpuKernel LAMELLA_CONCAT(op, _registered)( \
      ::lamella::native::pointwise_loop<#op>, LAMELLA_THIS_CAPABILITY, kernel)
