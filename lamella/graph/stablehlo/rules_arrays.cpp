// Operations whose attributes HLO writes in another form: slices, padding, windows, products.
#include <algorithm>

#include "lamella/graph/stablehlo/export.h"
#include "lamella/graph/stablehlo/translation.h"

namespace lamella::hlo::stablehlo {
namespace {

size_t rank_of(const Translation&, const Instruction* one) {
  return static_cast<size_t>(one->shape->rank());
}

}  // namespace

void translate_slice(Translation& t, const Operation& op) {
  Instructions operands = t.operands(op, 1);
  const size_t rank = rank_of(t, operands[0]);
  auto starts = t.integers(op, "start_indices", rank, 0);
  auto limits = t.integers(op, "limit_indices", rank, 0);
  auto strides = t.integers(op, "strides", rank, 1);
  std::vector<SliceDimension> dimensions;
  for (size_t d = 0; d < rank; ++d) dimensions.push_back({starts[d], limits[d], strides[d]});
  AttributeList list = t.attributes(op);
  list.slice(dimensions);
  t.emit(op, operands, std::move(list));
}

void translate_pad(Translation& t, const Operation& op) {
  Instructions operands = t.operands(op, 2);
  const size_t rank = rank_of(t, operands[0]);
  auto low = t.integers(op, "edge_padding_low", rank, 0);
  auto high = t.integers(op, "edge_padding_high", rank, 0);
  auto interior = t.integers(op, "interior_padding", rank, 0);
  std::vector<PaddingDimension> dimensions;
  for (size_t d = 0; d < rank; ++d) dimensions.push_back({low[d], high[d], interior[d]});
  AttributeList list = t.attributes(op);
  list.padding(dimensions);
  t.emit(op, operands, std::move(list));
}

// broadcast adds dimensions in front.
void translate_broadcast(Translation& t, const Operation& op) {
  Instructions operands = t.operands(op, 1);
  const auto added = static_cast<int64_t>(t.integers(op, "broadcast_sizes").size());
  std::vector<int64_t> dimensions;
  for (int64_t d = 0; d < operands[0]->shape->rank(); ++d) dimensions.push_back(added + d);
  AttributeList list = t.attributes(op);
  list.integers(AttributeKey::Dimensions, dimensions);
  t.emit(op, operands, std::move(list));
}

// Dimensions of size 1 are repeated as well, which HLO's broadcast does not do: they go first.
void broadcast_in_dim(Translation& t, const Operation& op, Instruction* operand) {
  std::vector<int64_t> dimensions = t.integers(op, "broadcast_dimensions"), kept, sizes;
  const Shape& from = *operand->shape;
  const Shape to = t.result_shape(op);
  if (dimensions.size() != static_cast<size_t>(from.rank())) {
    t.fail(op, "expected 'broadcast_dimensions' for ", from.to_string(false), ", got ",
           braced(dimensions));
  }
  for (size_t d = 0; d < dimensions.size(); ++d) {
    const int64_t size = from.dimension(static_cast<int64_t>(d)), into = dimensions[d];
    if (into < 0 || into >= to.rank()) {
      t.fail(op, "expected 'broadcast_dimensions' to name dimensions of ", to.to_string(false),
             ", got ", into);
    }
    if (size == 1 && to.dimension(into) != 1) continue;
    kept.push_back(into);
    sizes.push_back(size);
  }
  if (kept.size() != dimensions.size()) {
    operand = t.add(Opcode::Reshape, {operand}, from.with_dimensions(sizes));
  }
  AttributeList list = t.attributes(op);
  list.integers(AttributeKey::Dimensions, kept);
  t.give(op, {t.add(Opcode::Broadcast, std::span(&operand, 1), std::move(list), to)});
}
void translate_broadcast_in_dim(Translation& t, const Operation& op) {
  broadcast_in_dim(t, op, t.operands(op, 1)[0]);
}

// ---- Windows -----------------------------------------------------------------------------------

namespace {

struct WindowNames {
  const char *strides, *base, *window;
};
std::vector<WindowDimension> window_of(const Translation& t, const Operation& op,
                                       const std::vector<int64_t>& sizes,
                                       const WindowNames& names) {
  const size_t rank = sizes.size();
  auto strides = t.integers(op, names.strides, rank, 1);
  auto base = t.integers(op, names.base, rank, 1);
  auto window = t.integers(op, names.window, rank, 1);
  auto padding = t.integers(op, "padding", rank * 2, 0);
  std::vector<WindowDimension> made(rank);
  for (size_t d = 0; d < rank; ++d) {
    made[d] = {sizes[d], strides[d], padding[2 * d], padding[2 * d + 1], window[d], base[d], false};
  }
  return made;
}

}  // namespace

void translate_reduce_window(Translation& t, const Operation& op) {
  t.require_regions(op, 1);
  AttributeList list = t.attributes(op);
  list.window(window_of(t, op, t.integers(op, "window_dimensions"),
                        {"window_strides", "base_dilations", "window_dilations"}));
  list.computation(AttributeKey::ToApply, t.computation(op, 0));
  t.emit(op, t.operands(op), std::move(list));
}
void translate_select_and_scatter(Translation& t, const Operation& op) {
  t.require_regions(op, 2);
  Instructions operands = t.operands(op, 3);
  AttributeList list = t.attributes(op);
  list.window(window_of(t, op, t.integers(op, "window_dimensions", rank_of(t, operands[0]), 1),
                        {"window_strides", "", ""}));
  list.computation(AttributeKey::Select, t.computation(op, 0));
  list.computation(AttributeKey::Scatter, t.computation(op, 1));
  t.emit(op, operands, std::move(list));
}

// {highest,default}; nothing if all are the default.
void add_precision(Translation& t, const Operation& op, AttributeList& list) {
  const Attribute* found = op.find("precision_config");
  if (found == nullptr) return;
  std::string text = "{";
  bool any = false;
  for (const Attribute* one : found->list) {
    std::string word(one->text);
    any |= word != "DEFAULT";
    std::ranges::transform(word, word.begin(), [](char c) { return static_cast<char>(c | 32); });
    text += (text.size() > 1 ? "," : "") + word;
  }
  if (any) list.text(AttributeKey::OperandPrecision, text + "}");
}

void translate_convolution(Translation& t, const Operation& op) {
  Instructions operands = t.operands(op, 2);
  ConvolutionDimensions labels;
  labels.input_batch = t.integer(op, "input_batch_dimension");
  labels.input_feature = t.integer(op, "input_feature_dimension");
  labels.input_spatial = t.integers(op, "input_spatial_dimensions");
  labels.kernel_input_feature = t.integer(op, "kernel_input_feature_dimension");
  labels.kernel_output_feature = t.integer(op, "kernel_output_feature_dimension");
  labels.kernel_spatial = t.integers(op, "kernel_spatial_dimensions");
  labels.output_batch = t.integer(op, "output_batch_dimension");
  labels.output_feature = t.integer(op, "output_feature_dimension");
  labels.output_spatial = t.integers(op, "output_spatial_dimensions");
  const Shape& kernel = *operands[1]->shape;
  std::vector<int64_t> sizes;
  for (int64_t d : labels.kernel_spatial) {
    if (d < 0 || d >= kernel.rank()) {
      t.fail(op, "expected 'kernel_spatial_dimensions' to name dimensions of ",
             kernel.to_string(false), ", got ", d);
    }
    sizes.push_back(kernel.dimension(d));
  }
  auto window = window_of(t, op, sizes, {"window_strides", "lhs_dilation", "rhs_dilation"});
  auto reversal = t.integers(op, "window_reversal", sizes.size(), 0);
  for (size_t d = 0; d < sizes.size(); ++d) window[d].reversal = reversal[d] != 0;
  AttributeList list = t.attributes(op);
  list.window(window);
  list.dim_labels(std::move(labels));
  add_precision(t, op, list);
  t.emit(op, operands, std::move(list));
}

// ---- Products ----------------------------------------------------------------------------------

namespace {

// Algorithms by the types that they round to, that they add up in, and how many products they make.
struct Algorithm {
  std::string_view lhs, accumulation;
  int64_t products;
  std::string_view name;
};
constexpr Algorithm kAlgorithms[] = {
    {"f16", "f16", 1, "dot_f16_f16_f16"},       {"f16", "f32", 1, "dot_f16_f16_f32"},
    {"bf16", "bf16", 1, "dot_bf16_bf16_bf16"},  {"bf16", "f32", 1, "dot_bf16_bf16_f32"},
    {"bf16", "f32", 3, "dot_bf16_bf16_f32_x3"}, {"bf16", "f32", 6, "dot_bf16_bf16_f32_x6"},
    {"bf16", "f32", 9, "dot_bf16_bf16_f32_x9"}, {"tf32", "f32", 1, "dot_tf32_tf32_f32"},
    {"tf32", "f32", 3, "dot_tf32_tf32_f32_x3"}, {"f32", "f32", 1, "dot_f32_f32_f32"},
    {"f64", "f64", 1, "dot_f64_f64_f64"},
};
std::string_view type_name(const Attribute* type) {
  if (type == nullptr || type->type == nullptr) return {};
  if (type->type->kind == Type::Kind::Element) return element_name(type->type->element);
  return type->type->name;
}
void add_algorithm(Translation& t, const Operation& op, AttributeList& list) {
  std::string_view lhs = type_name(op.find("lhs_precision_type"));
  if (lhs.empty() || lhs == "none") return;
  std::string_view accumulation = type_name(op.find("accumulation_type"));
  if (lhs.starts_with("f8")) {
    const bool is_fast = t.integer(op, "allow_imprecise_accumulation", 0) != 0;
    list.text(AttributeKey::Algorithm,
              is_fast ? "dot_any_f8_any_f8_f32_fast_accum" : "dot_any_f8_any_f8_f32");
    return;
  }
  const int64_t products = t.integer(op, "num_primitive_operations", 1);
  for (const Algorithm& one : kAlgorithms) {
    if (one.lhs == lhs && one.accumulation == accumulation && one.products == products) {
      list.text(AttributeKey::Algorithm, one.name);
      return;
    }
  }
  t.fail(op, "expected an algorithm that HLO has, got ", products, " products of ", lhs,
         " added up in ", accumulation);
}

}  // namespace

std::vector<Named> algorithm_attributes(std::string_view word, TreeMaker& make) {
  auto other = [&](std::string_view name) {
    auto* one = make.arena().make<Type>();
    one->name = name;
    return one;
  };
  const Algorithm* found = nullptr;
  for (const Algorithm& one : kAlgorithms) {
    if (one.name == word) found = &one;
  }
  static constexpr const char* kNames[] = {
      "lhs_precision_type",          "rhs_precision_type",  "accumulation_type",
      "lhs_component_count",         "rhs_component_count", "num_primitive_operations",
      "allow_imprecise_accumulation"};
  std::vector<Named> made;
  if (found == nullptr) {
    if (!word.empty() && word != "dot_unset") {
      throw Error(str("to_stablehlo: expected an algorithm that StableHLO has, got '", word, "'"));
    }
    for (const char* name : kNames) made.push_back({name, make.type_of(other("none"))});
    return made;
  }
  auto type = [&](std::string_view name) {
    Type* one = other(name);
    if (name == "tf32") return make.type_of(one);
    one->kind = Type::Kind::Element;
    one->name = {};
    one->element = *element_from_name(name);
    return make.type_of(one);
  };
  const Attribute* one = make.integer(1);
  return {{kNames[0], type(found->lhs)},
          {kNames[1], type(found->lhs)},
          {kNames[2], type(found->accumulation)},
          {kNames[3], one},
          {kNames[4], one},
          {kNames[5], make.integer(found->products)},
          {kNames[6], make.boolean(false)}};
}

void translate_dot_general(Translation& t, const Operation& op) {
  AttributeList list = t.attributes(op);
  auto add = [&](AttributeKey key, const char* name) {
    auto numbers = t.integers(op, name);
    if (!numbers.empty()) list.integers(key, numbers);
  };
  add(AttributeKey::LhsBatchDims, "lhs_batching_dimensions");
  add(AttributeKey::RhsBatchDims, "rhs_batching_dimensions");
  add(AttributeKey::LhsContractingDims, "lhs_contracting_dimensions");
  add(AttributeKey::RhsContractingDims, "rhs_contracting_dimensions");
  add_precision(t, op, list);
  add_algorithm(t, op, list);
  t.emit(op, t.operands(op, 2), std::move(list));
}
// The last dimension of the left by the first of the right.
void translate_dot(Translation& t, const Operation& op) {
  Instructions operands = t.operands(op, 2);
  AttributeList list = t.attributes(op);
  const int64_t last = operands[0]->shape->rank() - 1, first = 0;
  if (last < 0) t.fail(op, "expected arrays of a dimension or more");
  list.integers(AttributeKey::LhsContractingDims, std::span(&last, 1));
  list.integers(AttributeKey::RhsContractingDims, std::span(&first, 1));
  add_precision(t, op, list);
  t.emit(op, operands, std::move(list));
}

// ---- Collectives -------------------------------------------------------------------------------

void translate_rng(Translation& t, const Operation& op) {
  if (op.operands.size() != 3) t.fail(op, "expected 3 operands, got ", op.operands.size());
  Instructions operands = t.operands(op);
  operands.pop_back();  // the shape, which the result states
  t.emit(op, operands, t.attributes(op));
}

}  // namespace lamella::hlo::stablehlo
