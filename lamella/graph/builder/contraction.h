// Functions of the builder for products, convolutions, transforms and linear algebra. Source: XLA's
// operation semantics.
#pragma once
#include <optional>

#include "lamella/graph/builder/op.h"
#include "lamella/graph/builder/types.h"

namespace lamella::hlo {

// Multiplies vectors and matrices: sums over the last dimension of lhs and the first of rhs. The
// result has `preferred_element_type`, or the operands' type, which must be one then.
Op Dot(Operand lhs, Op rhs, const PrecisionConfig* precision_config = nullptr,
       std::optional<PrimitiveType> preferred_element_type = std::nullopt);
// Batch dimensions come first in the result, then the others of lhs, then those of rhs.
Op DotGeneral(Operand lhs, Op rhs, const DotDimensionNumbers& dimension_numbers,
              const PrecisionConfig* precision_config = nullptr,
              std::optional<PrimitiveType> preferred_element_type = std::nullopt);

// lhs is the input, rhs the kernel. Without dimension numbers: batch, features, spatial dimensions
// in the input and the result; output features, input features, spatial dimensions in the kernel.
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
// Dilations put zeros between elements: of the input, of the kernel.
Op ConvGeneralDilated(Operand lhs, Op rhs, Span<int64_t> window_strides,
                      Span<std::pair<int64_t, int64_t>> padding, Span<int64_t> lhs_dilation,
                      Span<int64_t> rhs_dilation,
                      const ConvolutionDimensionNumbers& dimension_numbers,
                      int64_t feature_group_count = 1, int64_t batch_group_count = 1,
                      const PrecisionConfig* precision_config = nullptr,
                      std::optional<PrimitiveType> preferred_element_type = std::nullopt,
                      std::optional<std::vector<bool>> window_reversal = std::nullopt);
// The dimension numbers that functions without such an argument use.
ConvolutionDimensionNumbers CreateDefaultConvDimensionNumbers(int num_spatial_dims = 2);

// Transforms the last dimensions, as many as there are lengths.
Op Fft(Operand operand, FftType fft_type, Span<int64_t> fft_length);
// x with op(a) x = b (left_side) or x op(a) = b; a is triangular: lower, or upper; where
// unit_diagonal its diagonal is not read. Dimensions before the last two are batches.
Op TriangularSolve(Operand a, Op b, bool left_side, bool lower, bool unit_diagonal,
                   TriangularSolveOptions::Transpose transpose_a);
// The triangle l of a = l l^H (lower), or u of a = u^H u; the other triangle is not defined.
Op Cholesky(Operand a, bool lower);

}  // namespace lamella::hlo
