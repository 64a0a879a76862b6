// Replaces convolutions by calls of Lamella's operator.
#include "lamella/graph/passes/convolutions.h"

#include <algorithm>
#include <string>
#include <vector>

#include "lamella/core/error.h"
#include "lamella/graph/passes/convolution_problem.h"
#include "lamella/graph/passes/rewriter.h"

namespace lamella::hlo {
namespace {

bool is_wanted(const Instruction& i, bool native) {
  if (i.opcode != Opcode::Convolution || (native && convolution_problem(i))) return false;
  ElementType type = i.shape->element_type();
  if (type != ElementType::F32 && type != ElementType::F64) return false;
  for (size_t n = 0; n < 2; ++n) {
    if (i.operand_shape(n).element_type() != type || i.operand_shape(n).elements() == 0)
      return false;
  }
  size_t spatial = i.find(AttributeKey::DimLabels)->convolution->input_spatial.size();
  return i.shape->elements() != 0 && spatial >= 1 && spatial <= 3 && i.has(AttributeKey::Window) &&
         i.integer(AttributeKey::BatchGroupCount, 1) == 1;
}

Instruction* padded(Rewriter& to, Instruction* x, const std::vector<PaddingDimension>& pads) {
  ElementType type = x->shape->element_type();
  std::vector<int64_t> sizes;
  for (size_t d = 0; d < pads.size(); ++d) {
    int64_t size = x->shape->dimension(static_cast<int64_t>(d));
    sizes.push_back(pads[d].low + pads[d].high + size + (size - 1) * pads[d].interior);
  }
  Attribute padding{};
  padding.key = AttributeKey::Padding;
  std::span<PaddingDimension> kept =
      to.module().arena().copy(std::span<const PaddingDimension>(pads));
  padding.size = static_cast<uint32_t>(kept.size());
  padding.padding_data = kept.data();
  return to.add(Opcode::Pad, Shape::array(type, sizes), {x, to.constant(Literal::scalar(type, 0))},
                {padding});
}

std::vector<int64_t> in_order(int64_t first, int64_t second, const std::vector<int64_t>& rest) {
  std::vector<int64_t> order{first, second};
  order.insert(order.end(), rest.begin(), rest.end());
  return order;
}

// Arguments of the operator by spatial dimension.
struct Arguments {
  std::vector<int64_t> strides, paddings, dilations, output_paddings;
};
Instruction* called(Rewriter& to, const Instruction& i, Instruction* input, Instruction* kernel,
                    const std::vector<int64_t>& sizes, const Arguments& by, bool transposed) {
  auto list = [](const std::vector<int64_t>& numbers) {
    std::string text;
    for (size_t n = 0; n < numbers.size(); ++n) text += str(n == 0 ? "[" : ", ", numbers[n]);
    return text + "]";
  };
  std::string arguments =
      str("\"(%0, %1, None, ", list(by.strides), ", ", list(by.paddings), ", ", list(by.dilations),
          ", ", transposed ? "True" : "False", ", ", list(by.output_paddings), ", ",
          i.integer(AttributeKey::FeatureGroupCount, 1), ")\"");
  return to.add(Opcode::CustomCall, Shape::array(i.shape->element_type(), sizes), {input, kernel},
                {to.text(AttributeKey::CustomCallTarget, "aten::convolution"),
                 to.text(AttributeKey::BackendConfig, arguments)});
}

// A convolution of a dilated input without strides is a transposed convolution by the reversed
// kernel, which multiplies no zeros. Where the operator has no such padding, the result is cut.
Instruction* as_transposed(Rewriter& to, const Instruction& i, Instruction* input,
                           Instruction* kernel, const std::vector<int64_t>& sizes) {
  const int64_t groups = i.integer(AttributeKey::FeatureGroupCount, 1);
  std::vector<int64_t> shape(kernel->shape->dimensions().begin(),
                             kernel->shape->dimensions().end());
  if (groups > 1) {
    // From [groups * out, in, ...] to [groups, in, out, ...].
    std::vector<int64_t> apart = shape, order{0, 2, 1};
    apart[0] /= groups;
    apart.insert(apart.begin(), groups);
    for (size_t d = 3; d < apart.size(); ++d) order.push_back(static_cast<int64_t>(d));
    kernel = to.transpose(to.reshape(kernel, apart), order);
    shape[0] /= groups;
    std::swap(shape[0], shape[1]);
    shape[0] *= groups;
    kernel = to.reshape(kernel, shape);
  } else {
    std::vector<int64_t> order{1, 0};
    for (size_t d = 2; d < shape.size(); ++d) order.push_back(static_cast<int64_t>(d));
    kernel = to.transpose(kernel, order);
  }
  Arguments by;
  std::vector<int64_t> made{sizes[0], sizes[1]}, turned;
  std::vector<PaddingDimension> edges(2);
  bool cut = false;
  size_t s = 2;
  for (const WindowDimension& w : i.find(AttributeKey::Window)->window()) {
    const int64_t reach = (w.size - 1) * w.window_dilation;
    const int64_t low = reach - w.padding_low, high = reach - w.padding_high;
    const bool fits =
        low >= 0 && low >= high && low - high < std::max(w.base_dilation, w.window_dilation);
    const int64_t padding = fits ? low : std::max<int64_t>(0, std::min(low, high));
    by.strides.push_back(w.base_dilation);
    by.dilations.push_back(w.window_dilation);
    by.paddings.push_back(padding);
    by.output_paddings.push_back(fits ? low - high : 0);
    edges.push_back(fits ? PaddingDimension{} : PaddingDimension{padding - low, padding - high, 0});
    made.push_back(sizes[s] - edges.back().low - edges.back().high);
    cut = cut || made.back() != sizes[s] || edges.back().low != 0;
    if (!w.reversal && w.size > 1) turned.push_back(static_cast<int64_t>(s));
    ++s;
  }
  if (!turned.empty()) {
    kernel = to.add(Opcode::Reverse, *kernel->shape, {kernel},
                    {to.integers(AttributeKey::Dimensions, turned)});
  }
  Instruction* result = called(to, i, input, kernel, made, by, true);
  return cut ? padded(to, result, edges) : result;
}

// The replacement of one convolution.
Instruction* as_operator(Rewriter& to, const Instruction& i) {
  const ConvolutionDimensions& d = *i.find(AttributeKey::DimLabels)->convolution;
  auto window = i.find(AttributeKey::Window)->window();
  Instruction* input =
      to.transpose(i.operands[0], in_order(d.input_batch, d.input_feature, d.input_spatial));
  Instruction* kernel = to.transpose(
      i.operands[1], in_order(d.kernel_output_feature, d.kernel_input_feature, d.kernel_spatial));
  std::vector<int64_t> order = in_order(d.output_batch, d.output_feature, d.output_spatial);
  std::vector<int64_t> sizes, back(order.size());
  for (size_t n = 0; n < order.size(); ++n) {
    sizes.push_back(i.shape->dimension(order[n]));
    back[static_cast<size_t>(order[n])] = static_cast<int64_t>(n);
  }
  Arguments by;
  std::vector<PaddingDimension> pads(2);
  std::vector<int64_t> turned;
  bool pad = false, holes = false, steps = false;
  for (const WindowDimension& w : window) {
    pad = pad || w.padding_low != w.padding_high || w.padding_low < 0 || w.base_dilation != 1;
    holes = holes || w.base_dilation != 1;
    steps = steps || w.stride != 1;
  }
  if (holes && !steps) {
    return to.transpose(as_transposed(to, i, input, kernel, sizes), back);
  }
  for (const WindowDimension& w : window) {
    by.strides.push_back(w.stride);
    by.paddings.push_back(pad ? 0 : w.padding_low);
    by.dilations.push_back(w.window_dilation);
    by.output_paddings.push_back(0);
    if (w.reversal) turned.push_back(static_cast<int64_t>(pads.size()));
    pads.push_back({w.padding_low, w.padding_high, w.base_dilation - 1});
  }
  if (pad) input = padded(to, input, pads);
  if (!turned.empty()) {
    kernel = to.add(Opcode::Reverse, *kernel->shape, {kernel},
                    {to.integers(AttributeKey::Dimensions, turned)});
  }
  return to.transpose(called(to, i, input, kernel, sizes, by, false), back);
}

}  // namespace

int64_t convolutions_to_operators(Module& module, bool native) {
  int64_t changed = 0;
  for (Computation* computation : module.computations) {
    Rewriter rewriter(module, *computation);
    changed += rewriter.rewrite([&](Instruction* i) -> Instruction* {
      return is_wanted(*i, native) ? as_operator(rewriter, *i) : nullptr;
    });
  }
  return changed;
}

}  // namespace lamella::hlo
