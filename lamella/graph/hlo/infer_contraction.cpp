// Shape inference of dot, convolution, and linear algebra. Source: XLA's operation semantics.
#include "lamella/graph/hlo/infer.h"

namespace lamella::hlo {
namespace {

// The shape of dot and its variants. `groups` are dimensions of the right operand that are indexed
// by the group, so that the result lacks them.
Shape dot_shape(const Instruction& i, std::span<const int64_t> groups = {}) {
  const Shape& left = array_operand(i, 0);
  const Shape& right = array_operand(i, 1);
  auto left_batch = i.integers(AttributeKey::LhsBatchDims);
  auto right_batch = i.integers(AttributeKey::RhsBatchDims);
  auto left_sum = i.integers(AttributeKey::LhsContractingDims);
  auto right_sum = i.integers(AttributeKey::RhsContractingDims);
  require_dimensions(i, AttributeKey::LhsBatchDims, left_batch, left.rank());
  require_dimensions(i, AttributeKey::RhsBatchDims, right_batch, right.rank());
  require_dimensions(i, AttributeKey::LhsContractingDims, left_sum, left.rank());
  require_dimensions(i, AttributeKey::RhsContractingDims, right_sum, right.rank());
  auto same = [&](std::span<const int64_t> a, std::span<const int64_t> b, const char* what) {
    bool good = a.size() == b.size();
    for (size_t n = 0; good && n < a.size(); ++n) {
      good = left.dimension(a[n]) == right.dimension(b[n]);
    }
    LAMELLA_HLO_REQUIRE(good, i, "expected ", what, " dimensions of equal sizes, got ", braced(a),
                        " of ", left.to_string(false), " and ", braced(b), " of ",
                        right.to_string(false));
  };
  same(left_batch, right_batch, "batch");
  same(left_sum, right_sum, "contracting");
  std::vector<int64_t> sizes;
  for (int64_t d : left_batch) sizes.push_back(left.dimension(d));
  for (int64_t d = 0; d < left.rank(); ++d) {
    if (!contains(left_batch, d) && !contains(left_sum, d)) sizes.push_back(left.dimension(d));
  }
  for (int64_t d = 0; d < right.rank(); ++d) {
    bool named = contains(right_batch, d) || contains(right_sum, d) || contains(groups, d);
    if (!named) sizes.push_back(right.dimension(d));
  }
  LAMELLA_HLO_REQUIRE(i.shape->is_array(), i, "expected an array, got ", i.shape->to_string(false));
  // The element type of the sum may be wider than that of the operands.
  return Shape::array(i.shape->element_type(), std::move(sizes));
}

}  // namespace

// The left operand's ragged dimension is a free, contracting, or batch dimension. The group sizes
// may have leading dimensions: different sizes for each index of the dimensions before it.
Shape infer_ragged_dot(const Instruction& i) {
  const Shape& left = array_operand(i, 0);
  const Shape& right = array_operand(i, 1);
  const Shape& sizes = array_operand(i, 2);
  auto ragged = i.integers(AttributeKey::LhsRaggedDims);
  auto groups = i.integers(AttributeKey::RhsGroupDims);
  LAMELLA_HLO_REQUIRE(ragged.size() == 1, i, "expected lhs_ragged_dims to name one dimension, got ",
                      braced(ragged));
  require_dimensions(i, AttributeKey::LhsRaggedDims, ragged, left.rank());
  require_dimensions(i, AttributeKey::RhsGroupDims, groups, right.rank());
  auto batch = i.integers(AttributeKey::LhsBatchDims);
  auto sum = i.integers(AttributeKey::LhsContractingDims);
  bool batched = contains(batch, ragged[0]), summed = contains(sum, ragged[0]);
  bool free = !batched && !summed;
  for (int64_t g : groups) {
    LAMELLA_HLO_REQUIRE(!contains(i.integers(AttributeKey::RhsBatchDims), g) &&
                            !contains(i.integers(AttributeKey::RhsContractingDims), g),
                        i, "expected rhs_group_dims to name other dimensions than those of batch ",
                        "and sum, got ", braced(groups));
  }
  LAMELLA_HLO_REQUIRE(groups.size() == (free ? 1 : 0), i, "expected rhs_group_dims to name ",
                      free ? "one dimension" : "no dimension", ", got ", braced(groups));
  LAMELLA_HLO_REQUIRE(is_integral(sizes.element_type()) && sizes.rank() >= 1, i,
                      "expected operand 2 to list sizes of groups, got ", sizes.to_string(false));
  std::vector<int64_t> before;
  auto add_before = [&](int64_t d) {
    if (d == ragged[0]) return false;
    before.push_back(left.dimension(d));
    return true;
  };
  for (int64_t d : batch) {
    if (!add_before(d)) break;
  }
  for (int64_t n = 0; summed && n < static_cast<int64_t>(sum.size()); ++n) {
    if (!add_before(sum[static_cast<size_t>(n)])) break;
  }
  for (int64_t d = 0; free && d < ragged[0]; ++d) {
    if (!contains(batch, d) && !contains(sum, d)) add_before(d);
  }
  int64_t count = sizes.dimension(sizes.rank() - 1);
  bool fits =
      sizes.rank() == 1 ||
      std::ranges::equal(sizes.dimensions().first(static_cast<size_t>(sizes.rank() - 1)), before);
  fits = fits && (!free || right.dimension(groups[0]) == count);
  LAMELLA_HLO_REQUIRE(fits, i, "expected operand 2 to list the sizes of the groups of ",
                      right.to_string(false), ", alike or for each index over ", braced(before),
                      ", got ", sizes.to_string(false));
  Shape shape = dot_shape(i, groups);
  if (!summed) return shape;
  std::vector<int64_t> result{count};
  result.insert(result.end(), shape.dimensions().begin(), shape.dimensions().end());
  return shape.with_dimensions(std::move(result));
}

// Operands 0 and 1 are followed by their scales. The sizes of a scale divide those of its operand;
// a scalar scale applies to all elements.
Shape infer_scaled_dot(const Instruction& i) {
  for (size_t n = 0; n < 2; ++n) {
    const Shape& operand = array_operand(i, n);
    const Shape& scale = array_operand(i, 2 + n);
    bool fits = scale.rank() == 0 || scale.rank() == operand.rank();
    for (int64_t d = 0; fits && d < scale.rank(); ++d) {
      int64_t size = scale.dimension(d);
      fits = size == operand.dimension(d) || (size > 0 && operand.dimension(d) % size == 0);
    }
    LAMELLA_HLO_REQUIRE(fits, i, "expected operand ", 2 + n, " to have sizes that divide those of ",
                        operand.to_string(false), ", got ", scale.to_string(false));
  }
  return dot_shape(i);
}

Shape infer_convolution(const Instruction& i) {
  const Shape& input = array_operand(i, 0);
  const Shape& kernel = array_operand(i, 1);
  const Attribute* labels = i.find(AttributeKey::DimLabels);
  LAMELLA_HLO_REQUIRE(labels != nullptr, i, "expected the attribute dim_labels, got none");
  const ConvolutionDimensions& d = *labels->convolution;
  auto rank = static_cast<int64_t>(d.input_spatial.size()) + 2;
  LAMELLA_HLO_REQUIRE(input.rank() == rank && kernel.rank() == rank &&
                          d.kernel_spatial.size() == d.input_spatial.size() &&
                          d.output_spatial.size() == d.input_spatial.size(),
                      i, "expected operands and dim_labels of ", rank, " dimensions, got ",
                      input.to_string(false), " and ", kernel.to_string(false));
  for (const auto* places : {&d.input_spatial, &d.kernel_spatial, &d.output_spatial}) {
    for (int64_t place : *places) {
      LAMELLA_HLO_REQUIRE(place < rank, i, "expected dim_labels of ", rank,
                          " dimensions, got more");
    }
  }
  for (int64_t place : {d.input_batch, d.input_feature, d.kernel_input_feature,
                        d.kernel_output_feature, d.output_batch, d.output_feature}) {
    LAMELLA_HLO_REQUIRE(place < rank, i, "expected dim_labels of ", rank, " dimensions, got more");
  }
  int64_t feature_groups = i.integer(AttributeKey::FeatureGroupCount, 1);
  int64_t batch_groups = i.integer(AttributeKey::BatchGroupCount, 1);
  LAMELLA_HLO_REQUIRE(
      feature_groups > 0 && batch_groups > 0 && (feature_groups == 1 || batch_groups == 1), i,
      "expected positive group counts, one of them 1, got ", feature_groups, " and ", batch_groups);
  int64_t features = input.dimension(d.input_feature);
  int64_t batch = input.dimension(d.input_batch);
  int64_t outputs = kernel.dimension(d.kernel_output_feature);
  bool grouped = features % feature_groups == 0 &&
                 features / feature_groups == kernel.dimension(d.kernel_input_feature);
  LAMELLA_HLO_REQUIRE(grouped, i, "expected ", features, " input features to be ", feature_groups,
                      " groups of ", kernel.dimension(d.kernel_input_feature));
  LAMELLA_HLO_REQUIRE(
      outputs % feature_groups == 0 && outputs % batch_groups == 0 && batch % batch_groups == 0, i,
      "expected the groups to divide ", outputs, " output features and a batch of ", batch);
  std::vector<int64_t> sizes, kernel_sizes;
  for (int64_t s : d.input_spatial) sizes.push_back(input.dimension(s));
  for (int64_t s : d.kernel_spatial) kernel_sizes.push_back(kernel.dimension(s));
  const Attribute* found = i.find(AttributeKey::Window);
  auto window = found != nullptr ? found->window() : std::span<const WindowDimension>();
  std::vector<int64_t> spatial = window_sizes(i, sizes, window);
  for (size_t s = 0; s < window.size(); ++s) {
    LAMELLA_HLO_REQUIRE(window[s].size == kernel_sizes[s], i,
                        "expected the window to have the kernel's sizes ", braced(kernel_sizes),
                        ", got ", window[s].size, " in dimension ", s);
  }
  std::vector<int64_t> result(static_cast<size_t>(rank));
  result[static_cast<size_t>(d.output_batch)] = batch / batch_groups;
  result[static_cast<size_t>(d.output_feature)] = outputs;
  for (size_t s = 0; s < spatial.size(); ++s) {
    result[static_cast<size_t>(d.output_spatial[s])] = spatial[s];
  }
  LAMELLA_HLO_REQUIRE(i.shape->is_array(), i, "expected an array, got ", i.shape->to_string(false));
  return Shape::array(i.shape->element_type(), std::move(result));
}

Shape infer_fft(const Instruction& i) {
  const Shape& operand = array_operand(i, 0);
  std::string_view kind = i.text(AttributeKey::FftType);
  auto length = i.integers(AttributeKey::FftLength);
  LAMELLA_HLO_REQUIRE(kind == "FFT" || kind == "IFFT" || kind == "RFFT" || kind == "IRFFT", i,
                      "expected fft_type to be FFT, IFFT, RFFT or IRFFT, got '", kind, "'");
  auto count = static_cast<int64_t>(length.size());
  LAMELLA_HLO_REQUIRE(count >= 1 && count <= 3 && count <= operand.rank(), i,
                      "expected fft_length to have 1 to 3 sizes, got ", braced(length));
  bool from_real = kind == "RFFT", to_real = kind == "IRFFT";
  ElementType type = operand.element_type();
  LAMELLA_HLO_REQUIRE(from_real ? is_floating(type) && complex_of_part(type) != ElementType::Invalid
                                : is_complex(type),
                      i, "expected ", from_real ? "f32 or f64" : "c64 or c128", ", got ",
                      element_name(type));
  std::vector<int64_t> sizes = copy_of(operand.dimensions());
  for (int64_t d = 0; d < count; ++d) {
    size_t at = static_cast<size_t>(operand.rank() - count + d);
    int64_t wanted = length[static_cast<size_t>(d)];
    bool last = d + 1 == count;
    int64_t expected = to_real && last ? wanted / 2 + 1 : wanted;
    LAMELLA_HLO_REQUIRE(sizes[at] == expected, i, "expected dimension ", at, " to be ", expected,
                        " for fft_length ", braced(length), ", got ", sizes[at]);
    if (last && from_real) sizes[at] = wanted / 2 + 1;
    if (last && to_real) sizes[at] = wanted;
  }
  ElementType result = from_real ? complex_of_part(type) : to_real ? part_of_complex(type) : type;
  return Shape::array(result, std::move(sizes));
}

namespace {

void require_square(const Instruction& i, const Shape& a) {
  bool square = a.rank() >= 2 && a.dimension(a.rank() - 1) == a.dimension(a.rank() - 2);
  LAMELLA_HLO_REQUIRE(square, i, "expected operand 0 to be square matrices, got ",
                      a.to_string(false));
}

}  // namespace

Shape infer_dot(const Instruction& i) { return dot_shape(i); }

Shape infer_cholesky(const Instruction& i) {
  const Shape& a = array_operand(i, 0);
  require_square(i, a);
  return a;
}

Shape infer_triangular_solve(const Instruction& i) {
  const Shape& a = array_operand(i, 0);
  require_square(i, a);
  const Shape& b = array_operand(i, 1);
  bool left = i.flag(AttributeKey::LeftSide);
  bool fits = b.rank() == a.rank() && b.element_type() == a.element_type();
  for (int64_t d = 0; fits && d < a.rank() - 2; ++d) fits = a.dimension(d) == b.dimension(d);
  fits = fits && b.dimension(b.rank() - (left ? 2 : 1)) == a.dimension(a.rank() - 1);
  LAMELLA_HLO_REQUIRE(fits, i, "expected operand 1 to fit ", a.to_string(false), " from the ",
                      left ? "right" : "left", ", got ", b.to_string(false));
  return b;
}

}  // namespace lamella::hlo
