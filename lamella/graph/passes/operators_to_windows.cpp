// Replaces calls of convolution and pooling operators by opcodes.
#include "lamella/graph/passes/operators_to_windows.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <vector>

#include "lamella/core/error.h"
#include "lamella/graph/custom_call/function_call.h"
#include "lamella/graph/custom_call/operator_plan.h"
#include "lamella/graph/passes/channels_last.h"
#include "lamella/graph/passes/convolution_problem.h"
#include "lamella/graph/passes/rewriter.h"

namespace lamella::hlo {
namespace {

// One number for each of `count` dimensions, from a list that may have a single one for all.
std::vector<int64_t> spread(const OperatorArgument& argument, size_t count) {
  std::vector<int64_t> numbers = argument.value.toIntVector();
  if (numbers.size() == 1) numbers.resize(count, numbers[0]);
  return numbers;
}
bool is_gradient(const Instruction& i) {
  if (i.opcode != Opcode::CustomCall) return false;
  std::string_view target = i.text(AttributeKey::CustomCallTarget);
  return target == "aten::convolution_backward" ||
         target == "aten::max_pool2d_with_indices_backward" ||
         target == "aten::max_pool3d_with_indices_backward";
}

class Maker {
 public:
  Maker(Rewriter& to, std::unordered_map<ElementType, Computation*>* maxima)
      : to_(to), maxima_(*maxima) {}

  Instruction* convolution(const Instruction& i) {
    std::vector<OperatorArgument> arguments = arguments_of_call(i, "aten::convolution");
    if (arguments.size() != 9 || !i.shape->is_array() || arguments[6].value.toBool()) {
      return nullptr;
    }
    const OperatorArgument* tensors = arguments.data();
    if (tensors[0].form != OperatorArgument::Form::Operand ||
        tensors[1].form != OperatorArgument::Form::Operand) {
      return nullptr;
    }
    auto operand = [&](size_t n) {
      return i.operands[static_cast<size_t>(tensors[n].operands[0])];
    };
    Instruction *input = operand(0), *kernel = operand(1);
    auto count = static_cast<size_t>(input->shape->rank()) - 2;
    std::vector<int64_t> stride = spread(arguments[3], count), pad = spread(arguments[4], count),
                         dilation = spread(arguments[5], count);
    ConvolutionDimensions d{0, 1, {}, 1, 0, {}, 0, 1, {}};
    std::vector<WindowDimension> window;
    for (size_t s = 0; s < count; ++s) {
      auto at = static_cast<int64_t>(s) + 2;
      for (auto* list : {&d.input_spatial, &d.kernel_spatial, &d.output_spatial}) {
        list->push_back(at);
      }
      window.push_back(
          {kernel->shape->dimension(at), stride[s], pad[s], pad[s], dilation[s], 1, false});
    }
    std::vector<Attribute> attributes{to_.window(window), to_.dim_labels(std::move(d))};
    int64_t groups = arguments[8].value.toInt();
    if (groups != 1) {
      attributes.push_back(Rewriter::integer(AttributeKey::FeatureGroupCount, groups));
    }
    Instruction* made = to_.add(Opcode::Convolution, *i.shape, {input, kernel}, attributes);
    if (!convolution_problem(*made)) return nullptr;
    if (tensors[2].form != OperatorArgument::Form::Operand) return made;
    return to_.add(Opcode::Add, *i.shape, {made, to_.broadcast(operand(2), *i.shape, {1})});
  }

  // Takes a reversal of the kernel into the convolution's window.
  Instruction* turned(const Instruction& i) {
    const Instruction& reverse = *i.operands[1];
    if (reverse.opcode != Opcode::Reverse || !i.has(AttributeKey::Window)) return nullptr;
    auto given = i.find(AttributeKey::Window)->window();
    std::vector<WindowDimension> window(given.begin(), given.end());
    const auto& spatial = i.find(AttributeKey::DimLabels)->convolution->kernel_spatial;
    for (int64_t d : reverse.integers(AttributeKey::Dimensions)) {
      auto at = std::ranges::find(spatial, d);
      if (at == spatial.end()) return nullptr;
      WindowDimension& w = window[static_cast<size_t>(at - spatial.begin())];
      w.reversal = !w.reversal;
    }
    std::vector<Attribute> attributes;
    for (const Attribute& one : i.attributes) {
      attributes.push_back(one.key == AttributeKey::Window ? to_.window(window) : one);
    }
    Instruction* made =
        to_.add(Opcode::Convolution, *i.shape, {i.operands[0], reverse.operands[0]}, attributes);
    return convolution_problem(*made) ? made : nullptr;
  }

  // The first result of a pooling operator whose second result, the indices, is not used.
  Instruction* max_pool(const Instruction& i) {
    if (i.opcode != Opcode::GetTupleElement || i.integer(AttributeKey::Index) != 0) return nullptr;
    const Instruction& call = *i.operands[0];
    if (to_.uses(&call) != 1) return nullptr;
    std::vector<OperatorArgument> arguments;
    size_t count = 2;
    for (const char* name : {"aten::max_pool2d_with_indices", "aten::max_pool3d_with_indices"}) {
      arguments = arguments_of_call(call, name);
      if (!arguments.empty()) break;
      ++count;
    }
    if (arguments.size() != 6 || arguments[0].form != OperatorArgument::Form::Operand) {
      return nullptr;
    }
    Instruction* input = call.operands[0];
    ElementType type = i.shape->element_type();
    if (!follows_fast_convolution(input)) return nullptr;
    auto rank = static_cast<size_t>(i.shape->rank());
    if (!is_floating(type) || input->shape->elements() == 0 || i.shape->elements() == 0 ||
        rank < count) {
      return nullptr;
    }
    std::vector<int64_t> kernel = spread(arguments[1], count), pad = spread(arguments[3], count),
                         stride = arguments[2].value.toIntVector().empty()
                                      ? kernel
                                      : spread(arguments[2], count),
                         dilation = spread(arguments[4], count);
    std::vector<WindowDimension> window(rank);
    for (size_t s = 0; s < count; ++s) {
      auto d = rank - count + s;
      auto at = static_cast<int64_t>(d);
      int64_t end = (i.shape->dimension(at) - 1) * stride[s] + (kernel[s] - 1) * dilation[s] + 1 -
                    input->shape->dimension(at) - pad[s];
      window[d] = {kernel[s], stride[s], pad[s], std::max<int64_t>(end, 0), dilation[s], 1, false};
    }
    Attribute by{};
    by.key = AttributeKey::ToApply;
    by.computation = maximum_of(type);
    Instruction* first = to_.constant(Literal::scalar(type, -INFINITY));
    std::vector<Attribute> attributes{to_.window(window), by};
    if (Instruction* made = maximum_behind(i, input, first, attributes)) return made;
    return to_.add(Opcode::ReduceWindow, *i.shape, {input, first}, attributes);
  }
  // Maxima of windows, of an operand that is itself the maximum of an array and a scalar.
  Instruction* windows(const Instruction& i) {
    if (i.operands.size() != 2 || !i.has(AttributeKey::Window)) return nullptr;
    const Instruction* by = i.computation(AttributeKey::ToApply)->root;
    const Literal* first = repeated_constant(i.operands[1]);
    bool is_largest = by->opcode == Opcode::Maximum && by->operands[0] != by->operands[1] &&
                      by->operands[0]->opcode == Opcode::Parameter &&
                      by->operands[1]->opcode == Opcode::Parameter;
    if (!is_largest || first == nullptr || !is_floating(i.shape->element_type()) ||
        first->real_at(0) != -INFINITY) {
      return nullptr;
    }
    return maximum_behind(i, i.operands[0], i.operands[1],
                          std::vector<Attribute>(i.attributes.begin(), i.attributes.end()));
  }

 private:
  // Without channels last the operator's own loops are as fast.
  static bool follows_fast_convolution(const Instruction* i) {
    constexpr int kMaxSteps = 16;
    for (int n = 0; n < kMaxSteps; ++n) {
      if (i->opcode == Opcode::Convolution) return is_fast_last(*i);
      bool goes_on =
          i->opcode == Opcode::ReduceWindow || (is_elementwise(*i) && !i->operands.empty());
      if (!goes_on) return false;
      bool repeats = i->operands[0]->opcode == Opcode::Broadcast && i->operands.size() > 1;
      i = i->operands[repeats ? 1 : 0];
    }
    return false;
  }
  // True if every window has an element of the operand.
  static bool all_have_elements(const Shape& operand, const Shape& result,
                                std::span<const WindowDimension> window) {
    constexpr int64_t kLimit = 1 << 20;
    for (size_t d = 0; d < window.size(); ++d) {
      const WindowDimension& w = window[d];
      const auto at = static_cast<int64_t>(d);
      const int64_t size = operand.dimension(at), places = result.dimension(at);
      if (w.base_dilation != 1 || places > kLimit || w.size > kLimit / places) return false;
      for (int64_t n = 0; n < places; ++n) {
        bool has = false;
        for (int64_t k = 0; k < w.size && !has; ++k) {
          int64_t from = n * w.stride - w.padding_low + k * w.window_dilation;
          has = from >= 0 && from < size;
        }
        if (!has) return false;
      }
    }
    return true;
  }
  // A maximum with a scalar before windows are reduced by maximum equals one after that, on fewer
  // elements.
  Instruction* maximum_behind(const Instruction& i, Instruction* input, Instruction* first,
                              const std::vector<Attribute>& attributes) {
    if (input->opcode != Opcode::Maximum || to_.uses(input) != 1) return nullptr;
    auto window = std::ranges::find(attributes, AttributeKey::Window, &Attribute::key)->window();
    for (size_t side = 0; side < 2; ++side) {
      const Literal* least = repeated_constant(input->operands[side]);
      if (least == nullptr || std::isnan(least->real_at(0)) ||
          !all_have_elements(*input->shape, *i.shape, window)) {
        continue;
      }
      Instruction* made =
          to_.add(Opcode::ReduceWindow, *i.shape, {input->operands[1 - side], first}, attributes);
      return to_.add(Opcode::Maximum, *i.shape, {made, to_.full(*i.shape, least->real_at(0))});
    }
    return nullptr;
  }
  Computation* maximum_of(ElementType type) {
    Computation*& made = maxima_[type];
    if (made != nullptr) return made;
    Module& module = to_.module();
    std::string name = str("windows_max_", element_name(type));
    while (module.find_computation(name) != nullptr) name += "_";
    made = module.add_computation(module.arena().copy(std::string_view(name)));
    const Shape* scalar = module.intern(Shape::scalar(type));
    Instruction* of[2];
    for (int n = 0; n < 2; ++n) {
      of[n] = module.add_instruction(made, Opcode::Parameter, n == 0 ? "x" : "y", scalar, {});
      of[n]->parameter_number = n;
      made->parameters.push_back(of[n]);
    }
    made->root = module.add_instruction(made, Opcode::Maximum, "larger", scalar, of);
    return made;
  }

  Rewriter& to_;
  std::unordered_map<ElementType, Computation*>& maxima_;
};

}  // namespace

int64_t operators_to_windows(Module& module) {
  int64_t changed = 0;
  std::unordered_map<ElementType, Computation*> maxima;
  const std::vector<Computation*> given = module.computations;
  for (Computation* computation : given) {
    if (std::ranges::any_of(computation->instructions,
                            [](const Instruction* i) { return is_gradient(*i); })) {
      continue;
    }
    Rewriter rewriter(module, *computation);
    Maker maker(rewriter, &maxima);
    changed += rewriter.rewrite([&](Instruction* i) -> Instruction* {
      switch (i->opcode) {
        case Opcode::CustomCall:
          return maker.convolution(*i);
        case Opcode::Convolution:
          return maker.turned(*i);
        case Opcode::ReduceWindow:
          return maker.windows(*i);
        default:
          return maker.max_pool(*i);
      }
    });
  }
  if (!maxima.empty()) order_computations(module);
  return changed;
}

}  // namespace lamella::hlo
