// Replaces convolutions by calls of Lamella's operator.
#include "lamella/graph/passes/convolutions.h"

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

// The replacement of one convolution.
Instruction* as_operator(Rewriter& to, const Instruction& i) {
  const ConvolutionDimensions& d = *i.find(AttributeKey::DimLabels)->convolution;
  auto window = i.find(AttributeKey::Window)->window();
  auto in_order = [](int64_t first, int64_t second, const std::vector<int64_t>& rest) {
    std::vector<int64_t> order{first, second};
    order.insert(order.end(), rest.begin(), rest.end());
    return order;
  };
  Instruction* input =
      to.transpose(i.operands[0], in_order(d.input_batch, d.input_feature, d.input_spatial));
  Instruction* kernel = to.transpose(
      i.operands[1], in_order(d.kernel_output_feature, d.kernel_input_feature, d.kernel_spatial));
  std::string strides, paddings, dilations, zeros;
  std::vector<PaddingDimension> pads(2);
  std::vector<int64_t> turned;
  bool pad = false;
  for (const WindowDimension& w : window) {
    pad = pad || w.padding_low != w.padding_high || w.padding_low < 0 || w.base_dilation != 1;
  }
  for (size_t s = 0; s < window.size(); ++s) {
    const WindowDimension& w = window[s];
    std::string comma = s == 0 ? "" : ", ";
    strides += str(comma, w.stride);
    paddings += str(comma, pad ? 0 : w.padding_low);
    dilations += str(comma, w.window_dilation);
    zeros += str(comma, 0);
    pads.push_back({w.padding_low, w.padding_high, w.base_dilation - 1});
    if (w.reversal) turned.push_back(static_cast<int64_t>(s) + 2);
  }
  if (pad) input = padded(to, input, pads);
  if (!turned.empty()) {
    kernel = to.add(Opcode::Reverse, *kernel->shape, {kernel},
                    {to.integers(AttributeKey::Dimensions, turned)});
  }
  std::string arguments =
      str("\"(%0, %1, None, [", strides, "], [", paddings, "], [", dilations, "], False, [", zeros,
          "], ", i.integer(AttributeKey::FeatureGroupCount, 1), ")\"");
  std::vector<int64_t> order = in_order(d.output_batch, d.output_feature, d.output_spatial);
  std::vector<int64_t> sizes, back(order.size());
  for (size_t n = 0; n < order.size(); ++n) {
    sizes.push_back(i.shape->dimension(order[n]));
    back[static_cast<size_t>(order[n])] = static_cast<int64_t>(n);
  }
  Instruction* made =
      to.add(Opcode::CustomCall, Shape::array(i.shape->element_type(), sizes), {input, kernel},
             {to.text(AttributeKey::CustomCallTarget, "aten::convolution"),
              to.text(AttributeKey::BackendConfig, arguments)});
  return to.transpose(made, back);
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
