// Functions of matrices (XLA's client/lib/matrix.h). Dimensions before the last two are batches.
#pragma once
#include <array>

#include "lamella/graph/builder/builder.h"

namespace lamella::hlo {

Op IdentityMatrix(Within builder, PrimitiveType type, int64_t m, int64_t n);
// A Pred mask of the elements where column - row == diagonal.
Op GetDiagonalMask(Operand x, int diagonal = 0);
Op GetMatrixDiagonal(Operand x, int k = 0);
// A Pred mask of the elements where column - row <= diagonal.
Op TriangleMask(Operand x, int diagonal);
// The lower or upper triangle of x, with zeros elsewhere.
Op Triangle(Operand x, bool lower);
Op UpperTriangle(Operand x);
Op LowerTriangle(Operand x);
// Symmetric matrices with the lower or upper triangles of x; Hermitian ones if x is complex.
Op Symmetrize(Operand x, bool lower = true);
// The matrices with the elements of `diagonal`, whose last dimension is as long, on diagonal k.
Op SetMatrixDiagonal(Operand matrix, Op diagonal, int k = 0);
// The matrix product x y for each batch; x or y is transposed first if requested.
Op BatchDot(Operand x, Op y, PrecisionConfig::Precision precision = PrecisionConfig::DEFAULT,
            std::optional<PrimitiveType> preferred_element_type = std::nullopt);
Op BatchDot(Operand x, bool transpose_x, Op y, bool transpose_y,
            PrecisionConfig::Precision precision = PrecisionConfig::DEFAULT,
            std::optional<PrimitiveType> preferred_element_type = std::nullopt);
// "ij,jk->ik": a letter for each dimension; letters that the result lacks are summed over.
Op Einsum(Operand x, Op y, std::string_view einsum_config,
          PrecisionConfig::Precision precision = PrecisionConfig::DEFAULT,
          std::optional<PrimitiveType> preferred_element_type = std::nullopt);
// The same of one operand: "ijj->ji" is refused, "ij->j" sums over i.
Op Einsum(Operand x, std::string_view einsum_config,
          PrecisionConfig::Precision precision = PrecisionConfig::DEFAULT);
// The labels of the dimensions of x, y and the result: a letter's code, or -1, -2, ... for those
// that "..." stands for.
StatusOr<std::array<std::vector<int64_t>, 3>> ParseEinsumString(std::string_view einsum_config,
                                                                int64_t x_rank, int64_t y_rank);
// Einsum by such labels.
Op Einsum(Operand x, Span<int64_t> x_config, Op y, Span<int64_t> y_config,
          Span<int64_t> output_config,
          PrecisionConfig::Precision precision = PrecisionConfig::DEFAULT,
          std::optional<PrimitiveType> preferred_element_type = std::nullopt);
// GetMatrixDiagonal, which needs no other function here.
Op GetMatrixDiagonalViaGather(Operand x, int k = 0);
Op TransposeInMinorDims(Operand x);
Op MaybeTransposeInMinorDims(Operand x, bool transpose);

}  // namespace lamella::hlo
