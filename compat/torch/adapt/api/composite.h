// Composite kernels that an extension may call directly, without dispatch: they call only
// operators, so they are correct for every backend and layer.
#pragma once
#include "lamella/api/functions.h"

namespace lamella::composite {

// `self` if it is dense in the format already, else a copy that is. The format is not Preserve.
inline Tensor contiguous(const Tensor& self, MemoryFormat memory_format) {
  if (self.is_contiguous(memory_format)) return self;
  LAMELLA_CHECK(memory_format != MemoryFormat::Preserve,
                "contiguous: expected 'memory_format' to name an order of the dimensions, got ",
                memory_format);
  return self.clone(memory_format);
}

}  // namespace lamella::composite
