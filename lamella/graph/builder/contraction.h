// Builder functions for products, convolutions, FFTs and linear algebra. Source: XLA's operation
// semantics.
#pragma once
#include <optional>

#include "lamella/graph/builder/op.h"
#include "lamella/graph/builder/types.h"

namespace lamella::hlo {

// Multiplies vectors and matrices: sums over the last dimension of lhs and the first of rhs. The
// element type is `preferred_element_type`; without it, the operands' types, which must be equal.
Op Dot(Operand lhs, Op rhs, const PrecisionConfig* precision_config = nullptr,
       std::optional<PrimitiveType> preferred_element_type = std::nullopt);
// Batch dimensions come first in the result, then the others of lhs, then those of rhs.
Op DotGeneral(Operand lhs, Op rhs, const DotDimensionNumbers& dimension_numbers,
              const PrecisionConfig* precision_config = nullptr,
              std::optional<PrimitiveType> preferred_element_type = std::nullopt);

// The rows (lhs_ragged_dimensions) of lhs come in groups of these sizes, and each group has a
// matrix of its own, along rhs_group_dimensions of rhs.
Op RaggedDot(Operand lhs, Op rhs, Op group_sizes,
             const RaggedDotDimensionNumbers& dimension_numbers,
             const PrecisionConfig* precision_config = nullptr,
             std::optional<PrimitiveType> preferred_element_type = std::nullopt);

// lhs is the input, rhs the kernel. Without dimension numbers the input and the result are (batch,
// features, spatial...), and the kernel is (output features, input features, spatial...).
Op Conv(Operand lhs, Op rhs, Span<int64_t> window_strides, Padding padding,
        int64_t feature_group_count = 1, int64_t batch_group_count = 1,
        const PrecisionConfig* precision_config = nullptr,
        std::optional<PrimitiveType> preferred_element_type = std::nullopt);
Op ConvWithGeneralPadding(Operand lhs, Op rhs, Span<int64_t> window_strides,
                          Span<std::pair<int64_t, int64_t>> padding,
                          int64_t feature_group_count = 1, int64_t batch_group_count = 1,
                          const PrecisionConfig* precision_config = nullptr,
                          std::optional<PrimitiveType> preferred_element_type = std::nullopt);
Op ConvWithGeneralDimensions(Operand lhs, Op rhs, Span<int64_t> window_strides, Padding padding,
                             const ConvolutionDimensionNumbers& dimension_numbers,
                             int64_t feature_group_count = 1, int64_t batch_group_count = 1,
                             const PrecisionConfig* precision_config = nullptr,
                             std::optional<PrimitiveType> preferred_element_type = std::nullopt);
Op ConvGeneral(Operand lhs, Op rhs, Span<int64_t> window_strides,
               Span<std::pair<int64_t, int64_t>> padding,
               const ConvolutionDimensionNumbers& dimension_numbers,
               int64_t feature_group_count = 1, int64_t batch_group_count = 1,
               const PrecisionConfig* precision_config = nullptr,
               std::optional<PrimitiveType> preferred_element_type = std::nullopt);
// lhs_dilation and rhs_dilation insert zeros between elements of the input and of the kernel.
Op ConvGeneralDilated(Operand lhs, Op rhs, Span<int64_t> window_strides,
                      Span<std::pair<int64_t, int64_t>> padding, Span<int64_t> lhs_dilation,
                      Span<int64_t> rhs_dilation,
                      const ConvolutionDimensionNumbers& dimension_numbers,
                      int64_t feature_group_count = 1, int64_t batch_group_count = 1,
                      const PrecisionConfig* precision_config = nullptr,
                      std::optional<PrimitiveType> preferred_element_type = std::nullopt,
                      std::optional<std::vector<bool>> window_reversal = std::nullopt);
// The default dimension numbers of functions without such an argument.
ConvolutionDimensionNumbers CreateDefaultConvDimensionNumbers(int num_spatial_dims = 2);

// Transforms the last fft_length.size() dimensions.
Op Fft(Operand operand, FftType fft_type, Span<int64_t> fft_length);
// Solves op(a) x = b (left_side) or x op(a) = b for x; a is lower or upper triangular. With
// unit_diagonal the diagonal of a is not read. Dimensions before the last two are batches.
Op TriangularSolve(Operand a, Op b, bool left_side, bool lower, bool unit_diagonal,
                   TriangularSolveOptions::Transpose transpose_a);
// The factor l of a = l l^H (lower), or u of a = u^H u; its other triangle is undefined.
Op Cholesky(Operand a, bool lower);

}  // namespace lamella::hlo
