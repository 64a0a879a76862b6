// Operations whose attributes HLO writes in another form: slices, padding, windows, products.
#include <algorithm>

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

namespace {
// Each dimension of an operand is one of these.
void require_places(const Translation& t, const Operation& op, int64_t first, int64_t second,
                    std::vector<int64_t> all) {
  all.insert(all.end(), {first, second});
  std::ranges::sort(all);
  for (size_t d = 0; d < all.size(); ++d) {
    if (all[d] != static_cast<int64_t>(d))
      t.fail(op, "expected each dimension once, got ", braced(all));
  }
}
}  // namespace

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
  require_places(t, op, labels.input_batch, labels.input_feature, labels.input_spatial);
  require_places(t, op, labels.kernel_input_feature, labels.kernel_output_feature,
                 labels.kernel_spatial);
  require_places(t, op, labels.output_batch, labels.output_feature, labels.output_spatial);
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

// Slices of the first operand along one dimension, by numbers of the second.
void translate_torch_index_select(Translation& t, const Operation& op) {
  Instructions operands = t.operands(op, 2);
  const Shape &from = *operands[0]->shape, &indices = *operands[1]->shape;
  const int64_t dim = t.integer(op, "dim"), batch = t.integer(op, "batch_dims", 0);
  if (dim < 0 || dim >= from.rank() || batch < 0 || batch > dim || batch > indices.rank()) {
    t.fail(op, "expected 'dim' and 'batch_dims' of ", from.to_string(false), ", got ", dim, " and ",
           batch);
  }
  std::vector<int64_t> batches, offsets, sizes;
  for (int64_t d = 0; d < from.rank(); ++d) {
    const bool is_single = d < batch || d == dim;
    sizes.push_back(is_single ? 1 : from.dimension(d));
    if (d < batch) batches.push_back(d);
    if (!is_single) offsets.push_back(d < dim ? d : d - 1 + indices.rank() - batch);
  }
  AttributeList list = t.attributes(op);
  list.integers(AttributeKey::OffsetDims, offsets);
  list.integers(AttributeKey::CollapsedSliceDims, std::span(&dim, 1));
  list.integers(AttributeKey::StartIndexMap, std::span(&dim, 1));
  if (batch > 0) {
    list.integers(AttributeKey::OperandBatchingDims, batches);
    list.integers(AttributeKey::StartIndicesBatchingDims, batches);
  }
  list.integer(AttributeKey::IndexVectorDim, indices.rank());
  list.integers(AttributeKey::SliceSizes, sizes);
  t.emit(op, operands, std::move(list));
}

void translate_sort(Translation& t, const Operation& op) {
  t.require_regions(op, 1);
  Instructions operands = t.operands(op);
  AttributeList list = t.attributes(op);
  int64_t dimension = t.integer(op, "dimension", -1);
  if (dimension < 0 && !operands.empty()) dimension += operands[0]->shape->rank();
  list.integers(AttributeKey::Dimensions, std::span(&dimension, 1));
  list.computation(AttributeKey::ToApply, t.computation(op, 0));
  t.emit(op, operands, std::move(list));
}

void translate_rng(Translation& t, const Operation& op) {
  if (op.operands.size() != 3) t.fail(op, "expected 3 operands, got ", op.operands.size());
  Instructions operands = t.operands(op);
  operands.pop_back();  // the shape, which the result states
  t.emit(op, operands, t.attributes(op));
}

}  // namespace lamella::hlo::stablehlo
