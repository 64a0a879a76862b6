// The table of shape inference rules, the helpers they share, and the verifier of modules.
#include "lamella/graph/hlo/infer.h"

#include <algorithm>
#include <array>
#include <deque>

#include "lamella/graph/hlo/effects.h"
#include "lamella/layers/profile/profile.h"

namespace lamella::hlo {

const Shape& array_operand(const Instruction& i, size_t operand) {
  LAMELLA_HLO_REQUIRE(operand < i.operands.size(), i, "expected an operand ", operand, ", got ",
                      i.operands.size(), " operands");
  const Shape& shape = i.operand_shape(operand);
  LAMELLA_HLO_REQUIRE(shape.is_array(), i, "expected operand ", operand, " to be an array, got ",
                      shape.to_string(false));
  return shape;
}
Computation& computation_of(const Instruction& i, AttributeKey key) {
  Computation* found = i.computation(key);
  LAMELLA_HLO_REQUIRE(found != nullptr, i, "expected the attribute ", attribute_name(key),
                      ", got none");
  return *found;
}
void require_dimensions(const Instruction& i, AttributeKey key, std::span<const int64_t> numbers,
                        int64_t rank) {
  for (size_t n = 0; n < numbers.size(); ++n) {
    LAMELLA_HLO_REQUIRE(numbers[n] >= 0 && numbers[n] < rank, i, "expected ", attribute_name(key),
                        " to name dimensions below ", rank, ", got ", braced(numbers));
    LAMELLA_HLO_REQUIRE(!contains(numbers.first(n), numbers[n]), i, "expected ",
                        attribute_name(key), " to name each dimension once, got ", braced(numbers));
  }
}
void require_parameters(const Instruction& i, const Computation& computation,
                        std::span<const Shape> shapes) {
  LAMELLA_HLO_REQUIRE(computation.parameters.size() == shapes.size(), i, "expected '",
                      computation.name, "' to have ", shapes.size(), " parameters, got ",
                      computation.parameters.size());
  for (size_t p = 0; p < shapes.size(); ++p) {
    LAMELLA_HLO_REQUIRE(computation.parameters[p]->shape->compatible(shapes[p]), i,
                        "expected parameter ", p, " of '", computation.name, "' to be ",
                        shapes[p].to_string(false), ", got ",
                        computation.parameters[p]->shape->to_string(false));
  }
}
void require_moderate(const Instruction& i, const char* what, int64_t number) {
  LAMELLA_HLO_REQUIRE(number >= -kMostElements && number <= kMostElements, i,
                      "expected numbers of ", what, " within 2^60, got ", number);
}
int64_t reach(const Instruction& i, int64_t size, int64_t apart) {
  if (size == 0) return 0;
  int64_t last = 0;
  bool overflows = __builtin_mul_overflow(size - 1, apart, &last);
  LAMELLA_HLO_REQUIRE(!overflows && last < kMostElements, i, "expected ", size,
                      " elements to reach over at most 2^60 places, got ", apart, " for each");
  return last + 1;
}
std::vector<int64_t> window_sizes(const Instruction& i, std::span<const int64_t> sizes,
                                  std::span<const WindowDimension> window) {
  LAMELLA_HLO_REQUIRE(window.size() == sizes.size(), i, "expected a window of ", sizes.size(),
                      " dimensions, got ", window.size());
  std::vector<int64_t> result(sizes.size());
  for (size_t d = 0; d < sizes.size(); ++d) {
    const WindowDimension& w = window[d];
    LAMELLA_HLO_REQUIRE(w.size > 0 && w.stride > 0 && w.base_dilation > 0 && w.window_dilation > 0,
                        i, "expected sizes, strides and dilations of the window to be positive");
    for (int64_t number :
         {w.size, w.stride, w.base_dilation, w.window_dilation, w.padding_low, w.padding_high}) {
      require_moderate(i, "the window", number);
    }
    int64_t base = reach(i, sizes[d], w.base_dilation) + w.padding_low + w.padding_high;
    int64_t span = reach(i, w.size, w.window_dilation);
    result[d] = base < span ? 0 : (base - span) / w.stride + 1;
  }
  return result;
}

namespace {

constexpr std::array kShapeRules = {
#define LAMELLA_HLO_OPCODE(name, text, operands, family, takes, shape, ...) infer_##shape,
#include "lamella/graph/hlo/opcode.def"
};

}  // namespace

Shape infer_shape(const Instruction& i) {
  try {
    int operands = opcode_operands(i.opcode);
    LAMELLA_HLO_REQUIRE(operands < 0 || i.operands.size() == static_cast<size_t>(operands), i,
                        "expected ", operands, " operands, got ", i.operands.size());
    return kShapeRules[static_cast<size_t>(i.opcode)](i);
  } catch (const Error& error) {
    // Errors about the bounds of a shape do not name the instruction; add its name.
    constexpr std::string_view kShape = "shape: ";
    std::string_view text = error.what();
    if (!text.starts_with(kShape)) throw;
    fail(i, text.substr(kShape.size()));
  }
}

bool can_infer_shape(Opcode opcode) {
  if (opcode_family(opcode) == Family::Collective) return false;
  switch (opcode) {
    case Opcode::AsyncDone:
    case Opcode::AsyncStart:
    case Opcode::AsyncUpdate:
    case Opcode::Bitcast:
    case Opcode::BitcastConvert:
    case Opcode::Constant:
    case Opcode::Convert:
    case Opcode::CopyDone:
    case Opcode::CopyStart:
    case Opcode::CustomCall:
    case Opcode::DynamicReshape:
    case Opcode::DynamicSlice:
    case Opcode::DynamicUpdateSlice:
    case Opcode::Fusion:
    case Opcode::Infeed:
    case Opcode::Iota:
    case Opcode::Outfeed:
    case Opcode::Parameter:
    case Opcode::ReducePrecision:
    case Opcode::Reshape:
    case Opcode::Rng:
    case Opcode::RngBitGenerator:
    case Opcode::RngGetAndUpdateState:
    case Opcode::StochasticConvert:
      return false;
    default:
      return true;
  }
}

Shape infer_missing_shape(Instruction& i) {
  // Rules that take a part of the stated shape, such as the element type of a sum, get it from the
  // operands.
  Shape stated = Shape::scalar(ElementType::F32);
  std::vector<int64_t> sizes;
  switch (i.opcode) {
    case Opcode::Dot:
    case Opcode::RaggedDot:
    case Opcode::ScaledDot:
    case Opcode::Convolution: {
      ElementType left = array_operand(i, 0).element_type();
      ElementType right = array_operand(i, 1).element_type();
      stated = Shape::scalar(element_bits(right) > element_bits(left) ? right : left);
      break;
    }
    case Opcode::Broadcast:  // new dimensions of these sizes come first
      for (int64_t size : i.integers(AttributeKey::Dimensions)) sizes.push_back(size);
      for (int64_t size : array_operand(i, 0).dimensions()) sizes.push_back(size);
      return array_operand(i, 0).with_dimensions(std::move(sizes));
    case Opcode::Scan:
      stated = *computation_of(i, AttributeKey::ToApply).root->shape;
      break;
    default:
      break;
  }
  i.shape = &stated;
  Shape inferred = infer_shape(i);
  i.shape = nullptr;
  return inferred;
}

bool is_well_formed(const Instruction& i) {
  try {
    return infer_shape(i).compatible(*i.shape);
  } catch (const Error&) {
    return false;
  }
}

namespace {

// The shape with f32 for every type of floats.
Shape of_one_float(const Shape& shape) {
  if (shape.is_tuple()) {
    std::vector<Shape> elements;
    for (const Shape& element : shape.tuple_shapes()) elements.push_back(of_one_float(element));
    return Shape::tuple(std::move(elements));
  }
  return is_floating(shape.element_type()) ? shape.with_element_type(ElementType::F32) : shape;
}

// Note [What texts may state]
//   XLA's verifier takes some instructions that its backends rewrite before they run: operands and
//   computations of several types of floats, bitcasts to another number of bytes, complex
//   transforms whose fft_length is not the operand's sizes. Modules with these are read, printed
//   and drawn here, and refused by name when they are compiled.
bool is_read_only(const Instruction& i) {
  if (i.opcode == Opcode::Bitcast) {
    return i.operands.size() == 1 && i.operand_shape(0).is_array() && i.shape->is_array();
  }
  if (i.opcode == Opcode::Fft) {
    std::string_view kind = i.text(AttributeKey::FftType);
    return (kind == "FFT" || kind == "IFFT") && i.operands.size() == 1 &&
           i.operand_shape(0).compatible(*i.shape) && is_complex(i.shape->element_type());
  }
  bool is_mixed = false;
  std::deque<Shape> shapes;
  std::vector<Instruction> operands;
  operands.reserve(i.operands.size());
  std::vector<Instruction*> pointers;
  auto replace = [&](Instruction& one) {
    shapes.push_back(of_one_float(*one.shape));
    is_mixed |= !shapes.back().compatible(*one.shape);
    one.shape = &shapes.back();
  };
  for (const Instruction* operand : i.operands) {
    pointers.push_back(&operands.emplace_back(*operand));
    replace(operands.back());
  }
  Instruction alike = i;
  alike.operands = pointers;
  replace(alike);
  std::vector<Attribute> attributes(i.attributes.begin(), i.attributes.end());
  std::deque<Computation> called;
  std::deque<Instruction> parts;
  auto part = [&](const Instruction* one) {
    replace(parts.emplace_back(*one));
    return &parts.back();
  };
  for (Attribute& one : attributes) {
    if (attribute_kind(one.key) != AttributeKind::Computation || one.computation == nullptr)
      continue;
    Computation& copy = called.emplace_back();
    copy.name = one.computation->name;
    copy.parent = one.computation->parent;
    for (Instruction* parameter : one.computation->parameters) {
      copy.parameters.push_back(part(parameter));
    }
    copy.root = part(one.computation->root);
    one.computation = &copy;
  }
  alike.attributes = attributes;
  return is_mixed && is_well_formed(alike);
}

// Whether the verifier takes the instruction although infer_shape may not.
bool may_be_read_only(const Instruction& i) {
  if (i.opcode == Opcode::Bitcast || i.opcode == Opcode::Fft) return true;
  if (opcode_family(i.opcode) == Family::Collective) return false;
  ElementType type = i.shape->element_type();
  for (const Instruction* operand : i.operands) {
    ElementType other = operand->shape->element_type();
    if (is_floating(other) && other != type) return true;
  }
  bool calls = false;
  for_each_called(i, [&](const Computation&) { calls = true; });
  return calls;
}

void require_shape(const Instruction& i) {
  Shape inferred = infer_shape(i);
  LAMELLA_HLO_REQUIRE(inferred.compatible(*i.shape), i, "expected the shape to be ",
                      inferred.to_string(false), ", got ", i.shape->to_string(false));
}

}  // namespace

void require_runnable(const Module& module) {
  for (const Computation* computation : module.computations) {
    for (const Instruction* i : computation->instructions) {
      LAMELLA_HLO_REQUIRE(i->opcode != Opcode::Constant || !i->literal->is_elided(), *i,
                          "expected the values of the constant, got '{...}': they were left out ",
                          "when the text was printed");
      LAMELLA_HLO_REQUIRE(!i->shape->is_abstract(), *i,
                          "expected arrays with a bound for each dimension, got ",
                          i->shape->to_string(false));
      if (may_be_read_only(*i)) require_shape(*i);
    }
  }
}

void verify(const Module& module) {
  profile::Span span("compile");
  LAMELLA_CHECK(module.entry != nullptr, "hlo: expected the module to have an entry computation");
  for (const Computation* computation : module.computations) {
    int64_t index = 0;
    for (const Instruction* i : computation->instructions) {
      LAMELLA_HLO_REQUIRE(i->parent == computation && i->index == index++, *i,
                          "expected the instruction's index to be its position in its computation");
      for (const Instruction* operand : i->operands) {
        LAMELLA_HLO_REQUIRE(operand->parent == computation && operand->index < i->index, *i,
                            "expected operands to precede it in '", computation->name, "', got '",
                            operand->name, "'");
      }
      // The rules know arrays of sizes and bounds alone.
      bool is_abstract = i->shape->is_abstract();
      for (const Instruction* operand : i->operands) is_abstract |= operand->shape->is_abstract();
      if (is_abstract) continue;
      try {
        require_shape(*i);
      } catch (const Error&) {
        if (!is_read_only(*i)) throw;
      }
    }
  }
  const Computation& entry = *module.entry;
  const auto& layouts = module.entry_parameter_layouts;
  if (module.entry_result_layout != nullptr) {
    LAMELLA_CHECK(layouts.size() == entry.parameters.size(),
                  "hlo: expected entry_computation_layout to name ", entry.parameters.size(),
                  " parameters, got ", layouts.size());
    for (size_t p = 0; p < layouts.size(); ++p) {
      LAMELLA_CHECK(layouts[p]->compatible(*entry.parameters[p]->shape),
                    "hlo: expected entry_computation_layout to give parameter ", p, " as ",
                    entry.parameters[p]->shape->to_string(false), ", got ",
                    layouts[p]->to_string(false));
    }
    LAMELLA_CHECK(module.entry_result_layout->compatible(*entry.root->shape),
                  "hlo: expected entry_computation_layout to give the result as ",
                  entry.root->shape->to_string(false), ", got ",
                  module.entry_result_layout->to_string(false));
  }
  for (const InputOutputAlias& alias : module.input_output_aliases) {
    auto part = [](const Shape* shape, const std::vector<int64_t>& index) {
      for (int64_t n : index) {
        bool good = n >= 0 && static_cast<size_t>(n) < shape->tuple_shapes().size();
        LAMELLA_CHECK(good, "hlo: expected input_output_alias to name an element of ",
                      shape->to_string(false), ", got ", braced(index));
        shape = &shape->tuple_shapes()[static_cast<size_t>(n)];
      }
      return shape;
    };
    LAMELLA_CHECK(
        alias.parameter >= 0 && static_cast<size_t>(alias.parameter) < entry.parameters.size(),
        "hlo: expected input_output_alias to name a parameter below ", entry.parameters.size(),
        ", got ", alias.parameter);
    const Shape* output = part(entry.root->shape, alias.output);
    const Shape* input =
        part(entry.parameters[static_cast<size_t>(alias.parameter)]->shape, alias.parameter_index);
    LAMELLA_CHECK(alias.must ? output->compatible(*input) : output->is_array() && input->is_array(),
                  "hlo: expected input_output_alias to join ",
                  alias.must ? "equal shapes" : "arrays", ", got ", output->to_string(false),
                  " and ", input->to_string(false));
  }
  span.end([&] { return str(module.name, ": verify"); });
}

}  // namespace lamella::hlo
