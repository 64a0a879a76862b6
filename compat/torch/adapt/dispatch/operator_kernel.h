// OperatorKernel: the base class of kernels written as functors.
#pragma once
#include "lamella/core/macros.h"

namespace lamella {

// A kernel with state: derive from it and give operator() the operator's signature. Any functor
// serves as well; the base is for code that says it.
struct LAMELLA_PUBLIC OperatorKernel {
  virtual ~OperatorKernel() = default;
};

}  // namespace lamella
