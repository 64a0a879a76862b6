// Attributes and regions of the operations that are made of instructions.
#include <algorithm>

#include "lamella/graph/stablehlo/export.h"
#include "lamella/graph/stablehlo/names.h"
#include "lamella/graph/stablehlo/text_reader.h"

namespace lamella::hlo::stablehlo {

void Export::mapped_attributes(const Instruction& i, Operation* op, std::string_view words) {
  for_each_word(words, [&](std::string_view word) {
    const size_t arrow = word.find('>');
    if (arrow == std::string_view::npos) return;
    std::string_view name = word.substr(0, arrow), key = word.substr(arrow + 1);
    if (op->find(name) != nullptr) return;
    auto found = attribute_from_name(key.empty() ? name : key, i.opcode);
    if (found) add(op, name, mapped(i, name, *found));
  });
}

const Attribute* Export::mapped(const Instruction& i, std::string_view name, AttributeKey key) {
  switch (attribute_kind(key)) {
    case AttributeKind::Integer: {
      const bool is_count = name.ends_with("_count"), is_narrow = name.ends_with("_bits");
      return make_.integer(i.integer(key, is_count ? 1 : 0),
                           is_narrow ? ElementType::S32 : ElementType::S64);
    }
    case AttributeKind::Boolean:
      return make_.boolean(i.flag(key));
    case AttributeKind::Real:
      return make_.real(i.find(key)->real);
    case AttributeKind::Integers: {
      const bool is_one = name.ends_with("dimension") || name.ends_with("_dim");
      return is_one ? make_.integer(i.integers(key)[0]) : make_.integers(i.integers(key));
    }
    case AttributeKind::Word: {
      std::string word(i.text(key));
      if (word.starts_with("rng_")) {
        word.erase(0, 4);
        std::ranges::transform(word, word.begin(), [](char c) {
          return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
        });
      }
      if (word.empty()) {
        word = key == AttributeKey::Type         ? "NOTYPE"
               : key == AttributeKey::TransposeA ? "NO_TRANSPOSE"
               : key == AttributeKey::ApiVersion ? "API_VERSION_ORIGINAL"
                                                 : "DEFAULT";
      }
      return make_.word(word);
    }
    case AttributeKind::String:
      return make_.string(i.text(key));
    default:
      return key == AttributeKey::ResultAccuracy ? accuracy(i) : groups(i, key);
  }
}

// {{0,1},{2,3}}, as a matrix; shorter rows are filled up by -1.
const Attribute* Export::groups(const Instruction& i, AttributeKey key) {
  std::vector<std::vector<int64_t>> rows;
  if (i.has(key)) {
    Scanner s(i.text(key), "to_stablehlo");
    if (s.peek() != '{') refuse(i, "expected groups of devices that are listed");
    s.expect('{');
    while (!s.take('}')) {
      auto& row = rows.emplace_back();
      s.expect('{');
      while (!s.take('}')) {
        row.push_back(s.integer());
        if (s.peek() != '}') s.expect(',');
      }
      if (s.peek() != '}') s.expect(',');
    }
  }
  size_t width = key == AttributeKey::SourceTargetPairs ? 2 : 0;
  for (const auto& row : rows) width = std::max(width, row.size());
  std::vector<int64_t> numbers;
  for (auto& row : rows) {
    row.resize(width, -1);
    numbers.insert(numbers.end(), row.begin(), row.end());
  }
  return make_.matrix(numbers, static_cast<int64_t>(rows.size()), static_cast<int64_t>(width));
}

const Attribute* Export::accuracy(const Instruction& i) {
  auto number = [&](double value) {
    auto* made = const_cast<Attribute*>(make_.real(value));
    return made;
  };
  double atol = 0, rtol = 0;
  int64_t ulps = 0;
  std::string_view mode = "DEFAULT";
  if (i.has(AttributeKey::ResultAccuracy)) {
    std::string_view text = i.text(AttributeKey::ResultAccuracy);
    if (text.find("highest") != std::string_view::npos ||
        text.find("HIGHEST") != std::string_view::npos) {
      mode = "HIGHEST";
    } else if (text.find("tolerance") != std::string_view::npos) {
      mode = "TOLERANCE";
      Scanner s(text, "to_stablehlo");
      auto read = [&](std::string_view name) {
        const size_t at = text.find(name);
        if (at == std::string_view::npos) return 0.0;
        s.seek(at + name.size());
        return Literal::scan(s, Shape::scalar(ElementType::F64)).real_at(0);
      };
      atol = read("atol=");
      rtol = read("rtol=");
      ulps = static_cast<int64_t>(read("ulps="));
    }
  }
  return make_.dictionary({{"atol", number(atol)},
                           {"rtol", number(rtol)},
                           {"ulps", make_.integer(ulps)},
                           {"mode", make_.word(mode)}});
}

bool Export::special(const Instruction& i, Operation* op) {
  using enum AttributeKey;
  switch (i.opcode) {
    case Opcode::Call:
    case Opcode::Fusion: {
      const Computation* callee = i.computation(i.opcode == Opcode::Call ? ToApply : Calls);
      if (wanted_.emplace(callee, true).second) waiting_.push_back(callee);
      op->name = "call_v1";
      std::erase_if(op->attributes, [](const Named& one) { return one.name.starts_with("mhlo."); });
      add(op, "callee", make_.string(callee->name == "main" ? "main_" : callee->name));
      return true;
    }
    case Opcode::While: {
      for (AttributeKey key : {Condition, Body}) add_region(op, *i.computation(key), nullptr);
      return true;
    }
    case Opcode::Conditional: {
      std::vector<const Computation*> branches;
      if (i.has(TrueComputation)) {
        branches = {i.computation(TrueComputation), i.computation(FalseComputation)};
      } else {
        auto all = i.find(BranchComputations)->computations();
        branches.assign(all.begin(), all.end());
      }
      const bool is_if = i.operand_shape(0).element_type() == ElementType::PRED;
      op->name = is_if ? "if_v1" : "case_v1";
      op->operands.resize(1);
      for (size_t b = 0; b < branches.size(); ++b) {
        const std::vector<Values> parameters = {values(i.operands[b + 1])};
        add_region(op, *branches[b], &parameters);
      }
      return true;
    }
    case Opcode::Bitcast:
      op->name = i.shape->element_type() == i.operand_shape(0).element_type()
                     ? "reshape_v1"
                     : "bitcast_convert_v1";
      return true;
    case Opcode::Broadcast:
      add(op, "broadcast_dimensions", make_.integers(i.integers(Dimensions)));
      return true;
    case Opcode::Slice: {
      std::vector<int64_t> starts, limits, strides;
      for (const SliceDimension& d : i.find(Slice)->slices()) {
        starts.push_back(d.start);
        limits.push_back(d.limit);
        strides.push_back(d.stride);
      }
      add(op, "start_indices", make_.integers(starts));
      add(op, "limit_indices", make_.integers(limits));
      add(op, "strides", make_.integers(strides));
      return true;
    }
    case Opcode::Pad: {
      std::vector<int64_t> low, high, interior;
      for (const PaddingDimension& d : i.find(Padding)->padding()) {
        low.push_back(d.low);
        high.push_back(d.high);
        interior.push_back(d.interior);
      }
      add(op, "edge_padding_low", make_.integers(low));
      add(op, "edge_padding_high", make_.integers(high));
      add(op, "interior_padding", make_.integers(interior));
      return true;
    }
    case Opcode::ReduceWindow:
      window(i, op, "window_strides", "base_dilations", "window_dilations");
      add_region(op, *i.computation(ToApply), nullptr);
      return true;
    case Opcode::SelectAndScatter:
      window(i, op, "window_strides", nullptr, nullptr);
      for (AttributeKey key : {Select, Scatter}) add_region(op, *i.computation(key), nullptr);
      return true;
    case Opcode::Convolution:
      convolution(i, op);
      return true;
    case Opcode::Dot:
      dot(i, op);
      return true;
    case Opcode::Rng: {
      hlo::Literal sizes(Shape::array(ElementType::S64, {i.shape->rank()}));
      std::ranges::copy(i.shape->dimensions(), sizes.values<int64_t>().begin());
      Operation* shape = operation("constant_v1");
      add(shape, "value", make_.elements(sizes));
      shape->results = results_of(sizes.shape());
      block_->operations.push_back(shape);
      op->operands.push_back(shape->results[0]);
      return true;
    }
    case Opcode::AllToAll: {
      if (!i.has(Dimensions)) refuse(i, "expected an array that is split along a dimension");
      const int64_t dimension = i.integers(Dimensions)[0];
      const Attribute* all = groups(i, ReplicaGroups);
      add(op, "split_dimension", make_.integer(dimension));
      add(op, "concat_dimension", make_.integer(dimension));
      add(op, "split_count", make_.integer(all->type->sizes[1]));
      return true;
    }
    case Opcode::CustomCall:
      custom_call(i, op);
      return true;
    case Opcode::Infeed:
    case Opcode::Outfeed:
    case Opcode::Send:
    case Opcode::Recv:
    case Opcode::AsyncStart:
    case Opcode::AsyncDone:
    case Opcode::DynamicReshape:
    case Opcode::CollectiveReduce:
      refuse(i, "expected an opcode that is exported");
    case Opcode::Acos:
    case Opcode::Acosh:
    case Opcode::Asin:
    case Opcode::Asinh:
    case Opcode::Atanh:
    case Opcode::Cosh:
    case Opcode::Sinh:
    case Opcode::Erf:
    case Opcode::TopK:
      by_name(i, op);
      return true;
    default:
      return false;
  }
}

// A function that MHLO has, as a custom call of its name.
void Export::by_name(const Instruction& i, Operation* op) {
  op->name = "custom_call_v1";
  std::vector<Named> entries;
  if (i.opcode == Opcode::TopK) {
    entries = {{"k", make_.integer(i.integer(AttributeKey::K))},
               {"largest", make_.boolean(i.flag(AttributeKey::Largest, true))}};
  }
  add(op, "call_target_name", make_.string(str("mhlo.", opcode_name(i.opcode))));
  add(op, "has_side_effect", make_.boolean(false));
  add(op, "backend_config", make_.string(""));
  add(op, "api_version", make_.word("API_VERSION_ORIGINAL"));
  for (const char* name :
       {"called_computations", "operand_layouts", "result_layouts", "output_operand_aliases"}) {
    add(op, name, make_.list({}));
  }
  add(op, "mhlo.attributes", make_.dictionary(std::move(entries)));
  add(op, "mhlo.version", make_.integer(1));
}

void Export::custom_call(const Instruction& i, Operation* op) {
  using enum AttributeKey;
  std::string_view config = i.text(BackendConfig);
  TextReader reader(config, make_.arena());
  if (config.starts_with('{')) {
    std::vector<Named> entries;
    reader.dictionary(entries);
    add(op, "mhlo.backend_config", make_.dictionary(std::move(entries)));
    add(op, "api_version", make_.word("API_VERSION_ORIGINAL"));
    config = {};
  } else if (i.text(ApiVersion) == "API_VERSION_TYPED_FFI") {
    add(op, "mhlo.backend_config", make_.dictionary({}));
    add(op, "api_version", make_.word("API_VERSION_ORIGINAL"));
  }
  add(op, "backend_config", make_.string(config.starts_with('"') ? reader.quoted() : config));
  std::vector<const Attribute*> called, operands, results, aliases;
  auto add_called = [&](const Computation* one) {
    if (wanted_.emplace(one, true).second) waiting_.push_back(one);
    called.push_back(make_.string(one->name));
  };
  if (const hlo::Attribute* found = i.find(CalledComputations)) {
    for (const Computation* one : found->computations()) add_called(one);
  }
  if (i.has(ToApply)) add_called(i.computation(ToApply));
  auto layout = [&](const Shape& shape) { return make_.layout(shape.minor_to_major()); };
  if (const hlo::Attribute* found = i.find(OperandLayoutConstraints)) {
    for (const Shape* one : found->shapes()) operands.push_back(layout(*one));
    if (i.shape->is_tuple()) {
      for (const Shape& one : i.shape->tuple_shapes()) results.push_back(layout(one));
    } else {
      results.push_back(layout(*i.shape));
    }
  }
  if (const hlo::Attribute* found = i.find(OutputToOperandAliasing)) {
    for (const OperandAlias& one : found->aliases()) {
      aliases.push_back(
          make_.dictionary({{"output_tuple_indices", make_.integers(one.output)},
                            {"operand_index", make_.integer(one.operand)},
                            {"operand_tuple_indices", make_.integers(one.operand_index)}}));
    }
  }
  add(op, "called_computations", make_.list(std::move(called)));
  add(op, "operand_layouts", make_.list(std::move(operands)));
  add(op, "result_layouts", make_.list(std::move(results)));
  add(op, "output_operand_aliases", make_.list(std::move(aliases)));
}

// ---- Windows and products ----------------------------------------------------------------------

void Export::window(const Instruction& i, Operation* op, const char* strides, const char* base,
                    const char* dilations) {
  std::vector<int64_t> sizes, steps, bases, apart, padding;
  if (const hlo::Attribute* found = i.find(AttributeKey::Window)) {
    for (const WindowDimension& d : found->window()) {
      sizes.push_back(d.size);
      steps.push_back(d.stride);
      bases.push_back(d.base_dilation);
      apart.push_back(d.window_dilation);
      padding.insert(padding.end(), {d.padding_low, d.padding_high});
    }
  }
  if (i.opcode != Opcode::Convolution) add(op, "window_dimensions", make_.integers(sizes));
  add(op, strides, make_.integers(steps));
  if (base != nullptr) add(op, base, make_.integers(bases));
  if (dilations != nullptr) add(op, dilations, make_.integers(apart));
  add(op, "padding", make_.matrix(padding, static_cast<int64_t>(sizes.size()), 2));
}

void Export::precision(const Instruction& i, Operation* op) {
  std::vector<const Attribute*> parts;
  if (i.has(AttributeKey::OperandPrecision)) {
    Scanner s(i.text(AttributeKey::OperandPrecision), "to_stablehlo");
    s.expect('{');
    while (!s.take('}')) {
      std::string_view word = s.word();
      parts.push_back(make_.word(word == "highest" ? "HIGHEST"
                                 : word == "high"  ? "HIGH"
                                                   : "DEFAULT"));
      if (s.peek() != '}') s.expect(',');
    }
  }
  while (parts.size() < 2) parts.push_back(make_.word("DEFAULT"));
  add(op, "precision_config", make_.list(std::move(parts)));
}

void Export::convolution(const Instruction& i, Operation* op) {
  window(i, op, "window_strides", "lhs_dilation", "rhs_dilation");
  const ConvolutionDimensions& d = *i.find(AttributeKey::DimLabels)->convolution;
  std::vector<bool> reversal;
  if (const hlo::Attribute* found = i.find(AttributeKey::Window)) {
    for (const WindowDimension& one : found->window()) reversal.push_back(one.reversal);
  }
  add(op, "window_reversal", make_.booleans(reversal));
  add(op, "input_batch_dimension", make_.integer(d.input_batch));
  add(op, "input_feature_dimension", make_.integer(d.input_feature));
  add(op, "input_spatial_dimensions", make_.integers(d.input_spatial));
  add(op, "kernel_input_feature_dimension", make_.integer(d.kernel_input_feature));
  add(op, "kernel_output_feature_dimension", make_.integer(d.kernel_output_feature));
  add(op, "kernel_spatial_dimensions", make_.integers(d.kernel_spatial));
  add(op, "output_batch_dimension", make_.integer(d.output_batch));
  add(op, "output_feature_dimension", make_.integer(d.output_feature));
  add(op, "output_spatial_dimensions", make_.integers(d.output_spatial));
  precision(i, op);
}

void Export::dot(const Instruction& i, Operation* op) {
  using enum AttributeKey;
  add(op, "lhs_batching_dimensions", make_.integers(i.integers(LhsBatchDims)));
  add(op, "rhs_batching_dimensions", make_.integers(i.integers(RhsBatchDims)));
  add(op, "lhs_contracting_dimensions", make_.integers(i.integers(LhsContractingDims)));
  add(op, "rhs_contracting_dimensions", make_.integers(i.integers(RhsContractingDims)));
  precision(i, op);
  const std::vector<Named> algorithm = algorithm_attributes(i.text(Algorithm), make_);
  op->attributes.insert(op->attributes.end(), algorithm.begin(), algorithm.end());
}

}  // namespace lamella::hlo::stablehlo
