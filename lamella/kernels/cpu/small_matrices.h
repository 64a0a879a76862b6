// Stacks of small real matrices: LU, systems and determinants without LAPACK's calls, whose
// overhead is more than the arithmetic. Matrices are column-major and contiguous, pivots are
// LAPACK's (row exchanges counted from 1). Each checks for interrupts.
#pragma once
#include "lamella/core/scalar_type.h"

namespace lamella::native {

// Whether matrices of that many rows and columns are.
inline bool are_small(ScalarType dtype, int64_t rows, int64_t columns) {
  return (dtype == kFloat || dtype == kDouble) && rows <= 8 && columns <= 8;
}
// Factors the matrices as getrf does. info: for each 0, or which pivot is the first to be 0,
// from 1.
void factor_small(ScalarType dtype, int64_t count, int64_t rows, int64_t columns, void* matrices,
                  int32_t* pivots, int32_t* info);
// Solves A X = B in place of B as getrs does, from the factors of square matrices.
void solve_small(ScalarType dtype, int64_t count, int64_t size, int64_t columns,
                 const void* factors, const int32_t* pivots, void* sides);
// The determinant of each matrix from its factors.
void determinants_of_small(ScalarType dtype, int64_t count, int64_t size, const void* factors,
                           const int32_t* pivots, void* out);

}  // namespace lamella::native
