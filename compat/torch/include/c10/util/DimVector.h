// at::DimVector: sizes or strides.
#pragma once
#include <c10/util/SmallVector.h>

#include <cstddef>
#include <cstdint>

namespace c10 {
constexpr size_t kDimVectorStaticSize = 5;
using DimVector = SmallVector<int64_t, kDimVectorStaticSize>;
using SymDimVector = DimVector;  // sizes are plain integers
}  // namespace c10

// Declared here, since lamella has another type of this name.
namespace at {
using c10::DimVector, c10::SymDimVector;
}
