// Reads convolutions as problems of the convolution library.
#include "lamella/graph/passes/convolution_problem.h"

#include <algorithm>

namespace lamella::hlo {
namespace {

using Problem = ConvolutionProblem;

std::vector<int64_t> in_order(int64_t first, int64_t second, const std::vector<int64_t>& rest) {
  std::vector<int64_t> order{first, second};
  order.insert(order.end(), rest.begin(), rest.end());
  return order;
}

// Sets the sizes that follow from the others; true if the library supports the dimension.
bool finish(Problem::Spatial& s) {
  int64_t reach = (s.kernel - 1) * s.dilation;
  s.padding_end = (s.out - 1) * s.stride + reach + 1 - s.in - s.padding;
  return s.padding >= 0 && s.padding <= reach && s.padding_end <= reach &&
         s.padding_end + s.stride > 0;
}

}  // namespace

std::optional<ConvolutionProblem> convolution_problem(const Instruction& i) {
  if (i.opcode != Opcode::Convolution || !i.has(AttributeKey::Window)) return std::nullopt;
  const Shape &input = i.operand_shape(0), &kernel = i.operand_shape(1), &result = *i.shape;
  for (const Shape* shape : {&input, &kernel, &result}) {
    if (shape->element_type() != ElementType::F32 || shape->elements() == 0) return std::nullopt;
  }
  const ConvolutionDimensions& d = *i.find(AttributeKey::DimLabels)->convolution;
  auto window = i.find(AttributeKey::Window)->window();
  const int64_t groups = i.integer(AttributeKey::FeatureGroupCount, 1);
  if (window.empty() || window.size() > 3 || i.integer(AttributeKey::BatchGroupCount, 1) != 1) {
    return std::nullopt;
  }
  bool has_holes = false, is_turned = true, is_plain = true, steps = false;
  int64_t taps = 1, outputs = 1;
  for (size_t s = 0; s < window.size(); ++s) {
    const WindowDimension& w = window[s];
    // Programs may state any padding or dilation; numbers this large are rejected.
    constexpr int64_t kLimit = int64_t{1} << 30;
    for (int64_t number :
         {w.padding_low, w.padding_high, w.stride, w.window_dilation, w.base_dilation, w.size}) {
      if (number > kLimit || number < -kLimit) return std::nullopt;
    }
    has_holes = has_holes || w.base_dilation != 1;
    is_turned = is_turned && (w.reversal || w.size == 1);
    is_plain = is_plain && (!w.reversal || w.size == 1);
    steps = steps || w.stride != 1;
    taps *= w.size;
    outputs *= result.dimension(d.output_spatial[s]);
  }
  const std::vector<int64_t> inputs = in_order(d.input_batch, d.input_feature, d.input_spatial);
  Problem p{};
  p.groups = groups;
  p.batch = input.dimension(d.input_batch);
  p.src = {0, inputs};
  p.weights = {1, in_order(d.kernel_output_feature, d.kernel_input_feature, d.kernel_spatial)};
  p.dst = {2, in_order(d.output_batch, d.output_feature, d.output_spatial)};
  // A forward convolution is fast if its kernel has few taps.
  constexpr int64_t kMaxForwardTaps = 16;
  if (is_plain && !has_holes && groups == 1 && taps > std::max(outputs, kMaxForwardTaps)) {
    // Sums run over the batch; the batch of the input takes the role of channels.
    p.kind = Problem::BackwardWeights;
    p.src = {0, in_order(d.input_feature, d.input_batch, d.input_spatial)};
    p.dst = {1, in_order(d.kernel_input_feature, d.kernel_output_feature, d.kernel_spatial)};
    p.weights = {2, in_order(d.output_feature, d.output_batch, d.output_spatial)};
    p.batch = input.dimension(d.input_feature);
    p.in_channels = input.dimension(d.input_batch);
    p.out_channels = result.dimension(d.output_feature);
  } else if (is_plain && !has_holes) {
    p.kind = Problem::Forward;
    p.in_channels = input.dimension(d.input_feature);
    p.out_channels = result.dimension(d.output_feature);
  } else if (is_turned && !steps && groups == 1) {
    p.kind = Problem::BackwardData;
    std::swap(p.src, p.dst);
    std::swap(p.weights.dimensions[0], p.weights.dimensions[1]);
    p.in_channels = result.dimension(d.output_feature);
    p.out_channels = input.dimension(d.input_feature);
  } else {
    return std::nullopt;
  }
  for (size_t s = 0; s < window.size(); ++s) {
    const WindowDimension& w = window[s];
    const int64_t in = input.dimension(d.input_spatial[s]);
    const int64_t out = result.dimension(d.output_spatial[s]);
    Problem::Spatial one{};
    switch (p.kind) {
      case Problem::Forward:
        one = {in, out, w.size, w.stride, w.padding_low, 0, w.window_dilation};
        break;
      case Problem::BackwardData:
        one = {out,
               in,
               w.size,
               w.base_dilation,
               (w.size - 1) * w.window_dilation - w.padding_low,
               0,
               w.window_dilation};
        break;
      case Problem::BackwardWeights:
        one = {in, w.size, out, w.window_dilation, w.padding_low, 0, w.stride};
        break;
    }
    // A stride or dilation that is never applied may have any value.
    if (one.kernel == 1) one.dilation = 1;
    if (one.out == 1) one.stride = std::max<int64_t>(1, std::min(one.stride, one.in));
    if (!finish(one)) return std::nullopt;
    p.spatial.push_back(one);
  }
  return p;
}

}  // namespace lamella::hlo
