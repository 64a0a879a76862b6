// at::native::TransposeType.
#pragma once
#include <c10/lamella_names.h>

namespace at::native {
enum class TransposeType { NoTranspose, Transpose, ConjTranspose };
constexpr char to_blas(TransposeType type) { return "NTC"[static_cast<int>(type)]; }
}  // namespace at::native
