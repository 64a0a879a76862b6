// at::native::TransposeType.
#pragma once
#include <c10/lamella_names.h>

#include "lamella/api/column_major.h"

namespace at::native {
enum class TransposeType { NoTranspose, Transpose, ConjTranspose };
constexpr char to_blas(TransposeType type) { return "NTC"[static_cast<int>(type)]; }
}  // namespace at::native
