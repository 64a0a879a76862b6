// OperatorKernel: the base class of kernels written as functors.
#pragma once
#include "lamella/core/macros.h"

namespace lamella {

// A kernel with state: derive from it and give operator() the operator's signature. Any functor
// works as well; the base exists for source compatibility with code that names it.
struct LAMELLA_PUBLIC OperatorKernel {
  virtual ~OperatorKernel() = default;
};

}  // namespace lamella
