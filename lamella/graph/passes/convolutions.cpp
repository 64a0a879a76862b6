// Convolutions as calls of Lamella's operator.
#include "lamella/graph/passes/convolutions.h"

#include <string>
#include <unordered_map>
#include <vector>

#include "lamella/core/error.h"
#include "lamella/graph/hlo/infer.h"

namespace lamella::hlo {
namespace {

bool is_wanted(const Instruction& i) {
  if (i.opcode != Opcode::Convolution) return false;
  ElementType type = i.shape->element_type();
  if (type != ElementType::F32 && type != ElementType::F64) return false;
  for (size_t n = 0; n < 2; ++n) {
    if (i.operand_shape(n).element_type() != type || i.operand_shape(n).elements() == 0)
      return false;
  }
  size_t spatial = i.find(AttributeKey::DimLabels)->convolution->input_spatial.size();
  return i.shape->elements() != 0 && spatial >= 1 && spatial <= 3 && i.has(AttributeKey::Window) &&
         i.integer(AttributeKey::BatchGroupCount, 1) == 1 &&
         !i.has(AttributeKey::ControlPredecessors);
}

// The instructions that stand for one convolution, added at the end of its computation.
class Writer {
 public:
  Writer(Module& module, Computation& to, const Instruction& convolution, int number)
      : module_(module), to_(to), i_(convolution), number_(number) {}

  Instruction* write(Instruction* input, Instruction* kernel) {
    const ConvolutionDimensions& d = *i_.find(AttributeKey::DimLabels)->convolution;
    auto window = i_.find(AttributeKey::Window)->window();
    auto in_order = [](int64_t first, int64_t second, const std::vector<int64_t>& rest) {
      std::vector<int64_t> order{first, second};
      order.insert(order.end(), rest.begin(), rest.end());
      return order;
    };
    input = transposed(input, in_order(d.input_batch, d.input_feature, d.input_spatial));
    kernel = transposed(
        kernel, in_order(d.kernel_output_feature, d.kernel_input_feature, d.kernel_spatial));
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
    if (pad) input = padded(input, pads);
    if (!turned.empty()) {
      Attribute dimensions{AttributeKey::Dimensions};
      set(dimensions, turned);
      kernel = add(Opcode::Reverse, "reverse", *kernel->shape, {kernel}, {dimensions});
    }
    std::string arguments =
        str("\"(%0, %1, None, [", strides, "], [", paddings, "], [", dilations, "], False, [",
            zeros, "], ", i_.integer(AttributeKey::FeatureGroupCount, 1), ")\"");
    Attribute target{AttributeKey::CustomCallTarget}, config{AttributeKey::BackendConfig};
    set(target, "aten::convolution");
    set(config, arguments);
    std::vector<int64_t> order = in_order(d.output_batch, d.output_feature, d.output_spatial);
    std::vector<int64_t> sizes, back(order.size());
    for (size_t n = 0; n < order.size(); ++n) {
      sizes.push_back(i_.shape->dimension(order[n]));
      back[static_cast<size_t>(order[n])] = static_cast<int64_t>(n);
    }
    Instruction* made =
        add(Opcode::CustomCall, "call", Shape::array(i_.shape->element_type(), sizes),
            {input, kernel}, {target, config});
    return transposed(made, back);
  }

 private:
  void set(Attribute& attribute, std::string_view text) {
    std::string_view kept = module_.arena().copy(text);
    attribute.size = static_cast<uint32_t>(kept.size());
    attribute.text_data = kept.data();
  }
  void set(Attribute& attribute, const std::vector<int64_t>& numbers) {
    std::span<int64_t> kept = module_.arena().copy(std::span<const int64_t>(numbers));
    attribute.size = static_cast<uint32_t>(kept.size());
    attribute.integer_data = kept.data();
  }
  Instruction* add(Opcode opcode, const char* suffix, Shape shape,
                   const std::vector<Instruction*>& operands,
                   const std::vector<Attribute>& attributes) {
    std::string name = str(i_.name, ".", number_, ".", suffix, ".", to_.instructions.size());
    return module_.add_instruction(&to_, opcode, name, module_.intern(std::move(shape)), operands,
                                   attributes);
  }
  Instruction* transposed(Instruction* x, const std::vector<int64_t>& order) {
    std::vector<int64_t> sizes;
    bool same = true;
    for (size_t n = 0; n < order.size(); ++n) {
      sizes.push_back(x->shape->dimension(order[n]));
      same = same && order[n] == static_cast<int64_t>(n);
    }
    if (same) return x;
    Attribute dimensions{AttributeKey::Dimensions};
    set(dimensions, order);
    return add(Opcode::Transpose, "transpose", Shape::array(x->shape->element_type(), sizes), {x},
               {dimensions});
  }
  Instruction* padded(Instruction* x, const std::vector<PaddingDimension>& pads) {
    ElementType type = x->shape->element_type();
    Instruction* zero = add(Opcode::Constant, "zero", Shape::scalar(type), {}, {});
    zero->literal = module_.arena().make<Literal>(Literal::scalar(type, 0));
    std::vector<int64_t> sizes;
    for (size_t d = 0; d < pads.size(); ++d) {
      int64_t size = x->shape->dimension(static_cast<int64_t>(d));
      sizes.push_back(pads[d].low + pads[d].high + size + (size - 1) * pads[d].interior);
    }
    Attribute padding{AttributeKey::Padding};
    std::span<PaddingDimension> kept =
        module_.arena().copy(std::span<const PaddingDimension>(pads));
    padding.size = static_cast<uint32_t>(kept.size());
    padding.padding_data = kept.data();
    return add(Opcode::Pad, "pad", Shape::array(type, sizes), {x, zero}, {padding});
  }

  Module& module_;
  Computation& to_;
  const Instruction& i_;
  int number_;
};

}  // namespace

bool convolutions_to_operators(Module& module) {
  bool changed = false;
  int number = 0;
  for (Computation* computation : module.computations) {
    std::vector<Instruction*> before = std::move(computation->instructions);
    computation->instructions.clear();
    std::unordered_map<const Instruction*, Instruction*> replaced;
    for (Instruction* i : before) {
      for (Instruction*& operand : i->operands) {
        auto found = replaced.find(operand);
        if (found != replaced.end()) operand = found->second;
      }
      if (is_wanted(*i)) {
        replaced[i] =
            Writer(module, *computation, *i, number++).write(i->operands[0], i->operands[1]);
        changed = true;
        continue;
      }
      i->index = static_cast<int64_t>(computation->instructions.size());
      computation->instructions.push_back(i);
    }
    auto root = replaced.find(computation->root);
    if (root != replaced.end()) computation->root = root->second;
  }
  return changed;
}

}  // namespace lamella::hlo
