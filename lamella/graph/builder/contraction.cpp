// Builder functions for products, convolutions, FFTs and linear algebra.
#include "lamella/graph/builder/contraction.h"

#include <algorithm>

#include "lamella/graph/builder/convolution_dimensions.h"
#include "lamella/graph/builder/emission.h"
#include "lamella/graph/builder/reduction.h"
#include "lamella/graph/builder/windows.h"

namespace lamella::hlo {
namespace {

void set_precision(AttributeList& attributes, const PrecisionConfig* config) {
  if (config == nullptr) return;
  std::string text = "{";
  bool any = false;
  for (PrecisionConfig::Precision one : config->operand_precision()) {
    static constexpr const char* kWords[] = {"default", "high", "highest", "packed_nibble"};
    if (text.size() > 1) text += ',';
    text += kWords[one];
    any |= one != PrecisionConfig::DEFAULT;
  }
  if (any) attributes.text(AttributeKey::OperandPrecision, text + "}");
}
ElementType result_type(Emission& e, Op lhs, Op rhs, std::optional<PrimitiveType> preferred) {
  ElementType left = e.array(lhs, "lhs").element_type();
  ElementType right = e.array(rhs, "rhs").element_type();
  if (preferred) {
    LAMELLA_EXPECT(is_array_type(*preferred), "'preferred_element_type' to be one of arrays, got ",
                   element_name(*preferred));
    return *preferred;
  }
  LAMELLA_EXPECT(left == right, "'lhs' and 'rhs' of one element type, got ", element_name(left),
                 " and ", element_name(right));
  return left;
}

struct ConvolutionOptions {
  int64_t feature_group_count, batch_group_count;
  const PrecisionConfig* precision_config;
  std::optional<PrimitiveType> preferred_element_type;
};
Op convolve(Emission& e, Op lhs, Op rhs, Span<int64_t> strides,
            Span<std::pair<int64_t, int64_t>> padding, Span<int64_t> lhs_dilation,
            Span<int64_t> rhs_dilation, const ConvolutionDimensionNumbers& numbers,
            const ConvolutionOptions& options,
            const std::optional<std::vector<bool>>& reversal = std::nullopt) {
  ElementType type = result_type(e, lhs, rhs, options.preferred_element_type);
  const Shape& kernel = e.shape(rhs);
  std::vector<int64_t> sizes;
  auto require = [](const Shape& shape, const std::vector<int64_t>& spatial, int64_t a, int64_t b) {
    int64_t rank = shape.rank();
    std::vector<int64_t> all(spatial);
    all.push_back(a);
    all.push_back(b);
    std::sort(all.begin(), all.end());
    bool good = static_cast<int64_t>(all.size()) == rank;
    for (int64_t d = 0; good && d < rank; ++d) good = all[static_cast<size_t>(d)] == d;
    LAMELLA_EXPECT(good, "'dimension_numbers' to name each dimension of ", shape.to_string(false),
                   " once, got ", braced(all));
  };
  require(e.shape(lhs), numbers.input_spatial_dimensions(), numbers.input_batch_dimension(),
          numbers.input_feature_dimension());
  require(kernel, numbers.kernel_spatial_dimensions(), numbers.kernel_input_feature_dimension(),
          numbers.kernel_output_feature_dimension());
  require(e.shape(lhs), numbers.output_spatial_dimensions(), numbers.output_batch_dimension(),
          numbers.output_feature_dimension());
  for (int64_t d : numbers.kernel_spatial_dimensions()) sizes.push_back(kernel.dimension(d));
  std::vector<WindowDimension> window =
      make_window(sizes, strides, padding, lhs_dilation, rhs_dilation);
  if (reversal) {
    LAMELLA_EXPECT(reversal->size() == window.size(), "'window_reversal' for ", window.size(),
                   " dimensions of the window, got ", reversal->size());
    for (size_t d = 0; d < window.size(); ++d) window[d].reversal = (*reversal)[d];
  }
  AttributeList attributes = e.attributes();
  attributes.window(window);
  attributes.dim_labels(dimensions_of(numbers));
  if (options.feature_group_count != 1) {
    attributes.integer(AttributeKey::FeatureGroupCount, options.feature_group_count);
  }
  if (options.batch_group_count != 1) {
    attributes.integer(AttributeKey::BatchGroupCount, options.batch_group_count);
  }
  set_precision(attributes, options.precision_config);
  return e.add(Opcode::Convolution, {lhs, rhs}, std::move(attributes), Shape::scalar(type));
}
ConvolutionDimensionNumbers default_numbers(Emission& e, Op lhs) {
  int64_t rank = e.array(lhs, "lhs").rank();
  LAMELLA_EXPECT(rank >= 2, "'lhs' of 2 dimensions or more, got ", e.shape(lhs).to_string(false));
  return CreateDefaultConvDimensionNumbers(static_cast<int>(rank - 2));
}
std::vector<std::pair<int64_t, int64_t>> spatial_padding(
    Emission& e, Op lhs, Op rhs, Span<int64_t> strides, Padding padding,
    const ConvolutionDimensionNumbers& numbers) {
  std::vector<int64_t> sizes, window;
  auto pick = [](const Shape& shape, const std::vector<int64_t>& dimensions,
                 std::vector<int64_t>* to) {
    for (int64_t d : dimensions) {
      LAMELLA_EXPECT(d >= 0 && d < shape.rank(), "'dimension_numbers' to name dimensions of ",
                     shape.to_string(false), ", got ", d);
      to->push_back(shape.dimension(d));
    }
  };
  pick(e.array(lhs, "lhs"), numbers.input_spatial_dimensions(), &sizes);
  pick(e.array(rhs, "rhs"), numbers.kernel_spatial_dimensions(), &window);
  return MakePadding(sizes, window, strides, padding);
}

void set_dimensions(AttributeList& a, const DotDimensionNumbers& numbers) {
  if (numbers.lhs_batch_dimensions_size() != 0 || numbers.rhs_batch_dimensions_size() != 0) {
    a.integers(AttributeKey::LhsBatchDims, numbers.lhs_batch_dimensions());
    a.integers(AttributeKey::RhsBatchDims, numbers.rhs_batch_dimensions());
  }
  a.integers(AttributeKey::LhsContractingDims, numbers.lhs_contracting_dimensions());
  a.integers(AttributeKey::RhsContractingDims, numbers.rhs_contracting_dimensions());
}

}  // namespace

Op Dot(Operand lhs, Op rhs, const PrecisionConfig* precision_config,
       std::optional<PrimitiveType> preferred_element_type) {
  return emit("Dot", lhs, [&](Emission& e) {
    const Shape& left = e.array(lhs, "lhs");
    const Shape& right = e.array(rhs, "rhs");
    LAMELLA_EXPECT(left.rank() >= 1 && left.rank() <= 2 && right.rank() >= 1 && right.rank() <= 2,
                   "'lhs' and 'rhs' to be vectors or matrices, got ", left.to_string(false),
                   " and ", right.to_string(false));
    DotDimensionNumbers numbers;
    numbers.add_lhs_contracting_dimensions(left.rank() - 1);
    numbers.add_rhs_contracting_dimensions(0);
    return DotGeneral(e.at(lhs), rhs, numbers, precision_config, preferred_element_type);
  });
}
Op DotGeneral(Operand lhs, Op rhs, const DotDimensionNumbers& dimension_numbers,
              const PrecisionConfig* precision_config,
              std::optional<PrimitiveType> preferred_element_type) {
  return emit("DotGeneral", lhs, [&](Emission& e) {
    ElementType type = result_type(e, lhs, rhs, preferred_element_type);
    AttributeList a = e.attributes();
    set_dimensions(a, dimension_numbers);
    set_precision(a, precision_config);
    return e.add(Opcode::Dot, {lhs, rhs}, std::move(a), Shape::scalar(type));
  });
}
Op RaggedDot(Operand lhs, Op rhs, Op group_sizes,
             const RaggedDotDimensionNumbers& dimension_numbers,
             const PrecisionConfig* precision_config,
             std::optional<PrimitiveType> preferred_element_type) {
  return emit("RaggedDot", lhs, [&](Emission& e) {
    ElementType type = result_type(e, lhs, rhs, preferred_element_type);
    AttributeList a = e.attributes();
    set_dimensions(a, dimension_numbers.dot_dimension_numbers());
    a.integers(AttributeKey::LhsRaggedDims, dimension_numbers.lhs_ragged_dimensions());
    a.integers(AttributeKey::RhsGroupDims, dimension_numbers.rhs_group_dimensions());
    set_precision(a, precision_config);
    return e.add(Opcode::RaggedDot, {lhs, rhs, group_sizes}, std::move(a), Shape::scalar(type));
  });
}

ConvolutionDimensionNumbers CreateDefaultConvDimensionNumbers(int num_spatial_dims) {
  ConvolutionDimensionNumbers numbers;
  numbers.set_input_batch_dimension(0);
  numbers.set_input_feature_dimension(1);
  numbers.set_kernel_output_feature_dimension(0);
  numbers.set_kernel_input_feature_dimension(1);
  numbers.set_output_batch_dimension(0);
  numbers.set_output_feature_dimension(1);
  for (int d = 2; d < num_spatial_dims + 2; ++d) {
    numbers.add_input_spatial_dimensions(d);
    numbers.add_kernel_spatial_dimensions(d);
    numbers.add_output_spatial_dimensions(d);
  }
  return numbers;
}
Op Conv(Operand lhs, Op rhs, Span<int64_t> window_strides, Padding padding,
        int64_t feature_group_count, int64_t batch_group_count,
        const PrecisionConfig* precision_config,
        std::optional<PrimitiveType> preferred_element_type) {
  return emit("Conv", lhs, [&](Emission& e) {
    ConvolutionDimensionNumbers numbers = default_numbers(e, lhs);
    return convolve(
        e, lhs, rhs, window_strides, spatial_padding(e, lhs, rhs, window_strides, padding, numbers),
        {}, {}, numbers,
        {feature_group_count, batch_group_count, precision_config, preferred_element_type});
  });
}
Op ConvWithGeneralPadding(Operand lhs, Op rhs, Span<int64_t> window_strides,
                          Span<std::pair<int64_t, int64_t>> padding, int64_t feature_group_count,
                          int64_t batch_group_count, const PrecisionConfig* precision_config,
                          std::optional<PrimitiveType> preferred_element_type) {
  return emit("ConvWithGeneralPadding", lhs, [&](Emission& e) {
    return convolve(
        e, lhs, rhs, window_strides, padding, {}, {}, default_numbers(e, lhs),
        {feature_group_count, batch_group_count, precision_config, preferred_element_type});
  });
}
Op ConvWithGeneralDimensions(Operand lhs, Op rhs, Span<int64_t> window_strides, Padding padding,
                             const ConvolutionDimensionNumbers& dimension_numbers,
                             int64_t feature_group_count, int64_t batch_group_count,
                             const PrecisionConfig* precision_config,
                             std::optional<PrimitiveType> preferred_element_type) {
  return emit("ConvWithGeneralDimensions", lhs, [&](Emission& e) {
    return convolve(
        e, lhs, rhs, window_strides,
        spatial_padding(e, lhs, rhs, window_strides, padding, dimension_numbers), {}, {},
        dimension_numbers,
        {feature_group_count, batch_group_count, precision_config, preferred_element_type});
  });
}
Op ConvGeneral(Operand lhs, Op rhs, Span<int64_t> window_strides,
               Span<std::pair<int64_t, int64_t>> padding,
               const ConvolutionDimensionNumbers& dimension_numbers, int64_t feature_group_count,
               int64_t batch_group_count, const PrecisionConfig* precision_config,
               std::optional<PrimitiveType> preferred_element_type) {
  return emit("ConvGeneral", lhs, [&](Emission& e) {
    return convolve(
        e, lhs, rhs, window_strides, padding, {}, {}, dimension_numbers,
        {feature_group_count, batch_group_count, precision_config, preferred_element_type});
  });
}
Op ConvGeneralDilated(Operand lhs, Op rhs, Span<int64_t> window_strides,
                      Span<std::pair<int64_t, int64_t>> padding, Span<int64_t> lhs_dilation,
                      Span<int64_t> rhs_dilation,
                      const ConvolutionDimensionNumbers& dimension_numbers,
                      int64_t feature_group_count, int64_t batch_group_count,
                      const PrecisionConfig* precision_config,
                      std::optional<PrimitiveType> preferred_element_type,
                      std::optional<std::vector<bool>> window_reversal) {
  return emit("ConvGeneralDilated", lhs, [&](Emission& e) {
    return convolve(
        e, lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers,
        {feature_group_count, batch_group_count, precision_config, preferred_element_type},
        window_reversal);
  });
}

Op Fft(Operand operand, FftType fft_type, Span<int64_t> fft_length) {
  return emit("Fft", operand, [&](Emission& e) {
    static constexpr const char* kWords[] = {"FFT", "IFFT", "RFFT", "IRFFT"};
    LAMELLA_EXPECT(fft_type >= FFT && fft_type <= IRFFT,
                   "'fft_type' to be FFT, IFFT, RFFT or IRFFT, got ", static_cast<int>(fft_type));
    AttributeList attributes = e.attributes();
    attributes.text(AttributeKey::FftType, kWords[fft_type]);
    attributes.integers(AttributeKey::FftLength, fft_length);
    return e.add(Opcode::Fft, {operand}, std::move(attributes));
  });
}
Op TriangularSolve(Operand a, Op b, bool left_side, bool lower, bool unit_diagonal,
                   TriangularSolveOptions::Transpose transpose_a) {
  return emit("TriangularSolve", a, [&](Emission& e) {
    static constexpr const char* kWords[] = {"", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"};
    LAMELLA_EXPECT(transpose_a >= TriangularSolveOptions::NO_TRANSPOSE &&
                       transpose_a <= TriangularSolveOptions::ADJOINT,
                   "'transpose_a' to be NO_TRANSPOSE, TRANSPOSE or ADJOINT, got ",
                   static_cast<int>(transpose_a));
    AttributeList attributes = e.attributes();
    if (left_side) attributes.flag(AttributeKey::LeftSide, true);
    if (lower) attributes.flag(AttributeKey::Lower, true);
    if (unit_diagonal) attributes.flag(AttributeKey::UnitDiagonal, true);
    attributes.text(AttributeKey::TransposeA, kWords[transpose_a]);
    return e.add(Opcode::TriangularSolve, {a, b}, std::move(attributes), e.array(b, "b"));
  });
}
Op Cholesky(Operand a, bool lower) {
  return emit("Cholesky", a, [&](Emission& e) {
    AttributeList attributes = e.attributes();
    if (lower) attributes.flag(AttributeKey::Lower, true);
    return e.add(Opcode::Cholesky, {a}, std::move(attributes));
  });
}

}  // namespace lamella::hlo
