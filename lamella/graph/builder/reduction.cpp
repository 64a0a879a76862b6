// Builder functions for reductions, windows, scatters and sorts.
#include "lamella/graph/builder/reduction.h"

#include <numeric>

#include "lamella/graph/builder/emission.h"
#include "lamella/graph/builder/windows.h"

namespace lamella::hlo {
namespace {

std::vector<Op> joined(std::span<const Op> first, std::span<const Op> second) {
  std::vector<Op> ops(first.begin(), first.end());
  ops.insert(ops.end(), second.begin(), second.end());
  return ops;
}
void require_pairs(std::span<const Op> operands, std::span<const Op> init_values) {
  LAMELLA_EXPECT(!operands.empty(), "'operands' to hold an op, got none");
  LAMELLA_EXPECT(operands.size() == init_values.size(), "an initial value for each of ",
                 operands.size(), " operands, got ", init_values.size());
}
Op reduce(Emission& e, std::span<const Op> operands, std::span<const Op> init_values,
          const BuiltComputation& computation, std::span<const int64_t> dimensions) {
  require_pairs(operands, init_values);
  AttributeList attributes = e.attributes();
  attributes.integers(AttributeKey::Dimensions, dimensions);
  attributes.computation(AttributeKey::ToApply, e.import(computation, "computation"));
  return e.add(Opcode::Reduce, joined(operands, init_values), std::move(attributes));
}
Op reduce_window(Emission& e, std::span<const Op> operands, std::span<const Op> init_values,
                 const BuiltComputation& computation, std::span<const WindowDimension> window) {
  require_pairs(operands, init_values);
  AttributeList attributes = e.attributes();
  attributes.window(window);
  attributes.computation(AttributeKey::ToApply, e.import(computation, "computation"));
  return e.add(Opcode::ReduceWindow, joined(operands, init_values), std::move(attributes));
}
std::vector<WindowDimension> padded_window(Emission& e, Op operand, Span<int64_t> sizes,
                                           Span<int64_t> strides, Padding padding) {
  auto edges = MakePadding(e.array(operand, "operand").dimensions(), sizes, strides, padding);
  return make_window(sizes, strides, edges, {}, {});
}
Op select_and_scatter(Emission& e, Op operand, const BuiltComputation& select,
                      std::span<const WindowDimension> window, Op source, Op init_value,
                      const BuiltComputation& scatter) {
  AttributeList attributes = e.attributes();
  attributes.window(window);
  attributes.computation(AttributeKey::Select, e.import(select, "select"));
  attributes.computation(AttributeKey::Scatter, e.import(scatter, "scatter"));
  return e.add(Opcode::SelectAndScatter, {operand, source, init_value}, std::move(attributes));
}

}  // namespace

std::vector<WindowDimension> make_window(std::span<const int64_t> sizes,
                                         std::span<const int64_t> strides,
                                         std::span<const std::pair<int64_t, int64_t>> padding,
                                         std::span<const int64_t> base_dilations,
                                         std::span<const int64_t> window_dilations) {
  auto require = [&](size_t count, const char* name) {
    LAMELLA_EXPECT(count == 0 || count == sizes.size(), "'", name, "' for ", sizes.size(),
                   " dimensions of the window, got ", count);
  };
  require(strides.size(), "window_strides");
  require(padding.size(), "padding");
  require(base_dilations.size(), "base_dilations");
  require(window_dilations.size(), "window_dilations");
  std::vector<WindowDimension> window(sizes.size());
  for (size_t d = 0; d < sizes.size(); ++d) {
    window[d].size = sizes[d];
    if (!strides.empty()) window[d].stride = strides[d];
    if (!padding.empty()) {
      window[d].padding_low = padding[d].first;
      window[d].padding_high = padding[d].second;
    }
    if (!base_dilations.empty()) window[d].base_dilation = base_dilations[d];
    if (!window_dilations.empty()) window[d].window_dilation = window_dilations[d];
  }
  return window;
}

std::vector<std::pair<int64_t, int64_t>> MakePadding(Span<int64_t> input_dimensions,
                                                     Span<int64_t> window_dimensions,
                                                     Span<int64_t> window_strides,
                                                     Padding padding) {
  LAMELLA_EXPECT(window_dimensions.size() == input_dimensions.size() &&
                     window_strides.size() == input_dimensions.size(),
                 input_dimensions.size(), " window dimensions and strides, got ",
                 window_dimensions.size(), " and ", window_strides.size());
  std::vector<std::pair<int64_t, int64_t>> edges;
  for (size_t d = 0; d < input_dimensions.size(); ++d) {
    LAMELLA_EXPECT(window_strides[d] > 0, "'window_strides' to be positive, got ",
                   braced(window_strides));
    int64_t total = 0;
    if (padding == Padding::kSame) {
      int64_t windows = (input_dimensions[d] + window_strides[d] - 1) / window_strides[d];
      total = std::max<int64_t>(
          0, (windows - 1) * window_strides[d] + window_dimensions[d] - input_dimensions[d]);
    }
    edges.emplace_back(total / 2, total - total / 2);
  }
  return edges;
}

Op Reduce(Operand operand, Op init_value, const BuiltComputation& computation,
          Span<int64_t> dimensions_to_reduce) {
  return emit("Reduce", operand, [&](Emission& e) {
    return reduce(e, Span<Op>{operand}, Span<Op>{init_value}, computation, dimensions_to_reduce);
  });
}
Op Reduce(Within builder, Span<Op> operands, Span<Op> init_values,
          const BuiltComputation& computation, Span<int64_t> dimensions_to_reduce) {
  return emit("Reduce", builder, [&](Emission& e) {
    return reduce(e, operands, init_values, computation, dimensions_to_reduce);
  });
}
Op ReduceAll(Operand operand, Op init_value, const BuiltComputation& computation) {
  return emit("ReduceAll", operand, [&](Emission& e) {
    std::vector<int64_t> all(static_cast<size_t>(e.array(operand, "operand").rank()));
    std::iota(all.begin(), all.end(), 0);
    return reduce(e, Span<Op>{operand}, Span<Op>{init_value}, computation, all);
  });
}

Op ReduceWindow(Operand operand, Op init_value, const BuiltComputation& computation,
                Span<int64_t> window_dimensions, Span<int64_t> window_strides, Padding padding) {
  return emit("ReduceWindow", operand, [&](Emission& e) {
    return reduce_window(e, Span<Op>{operand}, Span<Op>{init_value}, computation,
                         padded_window(e, operand, window_dimensions, window_strides, padding));
  });
}
Op ReduceWindow(Operands operands, Span<Op> init_values, const BuiltComputation& computation,
                Span<int64_t> window_dimensions, Span<int64_t> window_strides, Padding padding) {
  return emit("ReduceWindow", operands, [&](Emission& e) {
    return reduce_window(e, operands, init_values, computation,
                         padded_window(e, operands[0], window_dimensions, window_strides, padding));
  });
}
Op ReduceWindowWithGeneralPadding(Operand operand, Op init_value,
                                  const BuiltComputation& computation,
                                  Span<int64_t> window_dimensions, Span<int64_t> window_strides,
                                  Span<int64_t> base_dilations, Span<int64_t> window_dilations,
                                  Span<std::pair<int64_t, int64_t>> padding) {
  return emit("ReduceWindowWithGeneralPadding", operand, [&](Emission& e) {
    return reduce_window(
        e, Span<Op>{operand}, Span<Op>{init_value}, computation,
        make_window(window_dimensions, window_strides, padding, base_dilations, window_dilations));
  });
}
Op ReduceWindowWithGeneralPadding(Operands operands, Span<Op> init_values,
                                  const BuiltComputation& computation,
                                  Span<int64_t> window_dimensions, Span<int64_t> window_strides,
                                  Span<int64_t> base_dilations, Span<int64_t> window_dilations,
                                  Span<std::pair<int64_t, int64_t>> padding) {
  return emit("ReduceWindowWithGeneralPadding", operands, [&](Emission& e) {
    return reduce_window(
        e, operands, init_values, computation,
        make_window(window_dimensions, window_strides, padding, base_dilations, window_dilations));
  });
}

Op SelectAndScatter(Operand operand, const BuiltComputation& select,
                    Span<int64_t> window_dimensions, Span<int64_t> window_strides, Padding padding,
                    Op source, Op init_value, const BuiltComputation& scatter) {
  return emit("SelectAndScatter", operand, [&](Emission& e) {
    return select_and_scatter(e, operand, select,
                              padded_window(e, operand, window_dimensions, window_strides, padding),
                              source, init_value, scatter);
  });
}
Op SelectAndScatterWithGeneralPadding(Operand operand, const BuiltComputation& select,
                                      Span<int64_t> window_dimensions, Span<int64_t> window_strides,
                                      Span<std::pair<int64_t, int64_t>> padding, Op source,
                                      Op init_value, const BuiltComputation& scatter) {
  return emit("SelectAndScatterWithGeneralPadding", operand, [&](Emission& e) {
    return select_and_scatter(e, operand, select,
                              make_window(window_dimensions, window_strides, padding, {}, {}),
                              source, init_value, scatter);
  });
}

namespace {

Op scatter(Emission& e, std::span<const Op> inputs, Op indices, std::span<const Op> updates,
           const BuiltComputation& computation, const ScatterDimensionNumbers& numbers,
           bool indices_are_sorted, bool unique_indices) {
  LAMELLA_EXPECT(inputs.size() == updates.size(), "an update for each of ", inputs.size(),
                 " inputs, got ", updates.size());
  AttributeList a = e.attributes();
  a.integers(AttributeKey::UpdateWindowDims, numbers.update_window_dims());
  a.integers(AttributeKey::InsertedWindowDims, numbers.inserted_window_dims());
  a.integers(AttributeKey::ScatterDimsToOperandDims, numbers.scatter_dims_to_operand_dims());
  if (numbers.input_batching_dims_size() != 0) {
    a.integers(AttributeKey::InputBatchingDims, numbers.input_batching_dims());
    a.integers(AttributeKey::ScatterIndicesBatchingDims, numbers.scatter_indices_batching_dims());
  }
  a.integer(AttributeKey::IndexVectorDim, numbers.index_vector_dim());
  if (indices_are_sorted) a.flag(AttributeKey::IndicesAreSorted, true);
  if (unique_indices) a.flag(AttributeKey::UniqueIndices, true);
  a.computation(AttributeKey::ToApply, e.import(computation, "update_computation"));
  std::vector<Op> ops(inputs.begin(), inputs.end());
  ops.push_back(indices);
  ops.insert(ops.end(), updates.begin(), updates.end());
  return e.add(Opcode::Scatter, ops, std::move(a));
}

}  // namespace

Op Scatter(Operand input, Op scatter_indices, Op updates,
           const BuiltComputation& update_computation,
           const ScatterDimensionNumbers& dimension_numbers, bool indices_are_sorted,
           bool unique_indices) {
  return emit("Scatter", input, [&](Emission& e) {
    return scatter(e, Span<Op>{input}, scatter_indices, Span<Op>{updates}, update_computation,
                   dimension_numbers, indices_are_sorted, unique_indices);
  });
}
Op Scatter(Operands inputs, Op scatter_indices, Span<Op> updates,
           const BuiltComputation& update_computation,
           const ScatterDimensionNumbers& dimension_numbers, bool indices_are_sorted,
           bool unique_indices) {
  return emit("Scatter", inputs, [&](Emission& e) {
    return scatter(e, inputs, scatter_indices, updates, update_computation, dimension_numbers,
                   indices_are_sorted, unique_indices);
  });
}

Op Sort(Operands operands, const BuiltComputation& comparator, int64_t dimension, bool is_stable) {
  return emit("Sort", operands, [&](Emission& e) {
    int64_t rank = e.array(operands[0], "operands").rank();
    AttributeList attributes = e.attributes();
    attributes.integers(AttributeKey::Dimensions,
                        std::vector<int64_t>{dimension == -1 ? rank - 1 : dimension});
    if (is_stable) attributes.flag(AttributeKey::IsStable, true);
    attributes.computation(AttributeKey::ToApply, e.import(comparator, "comparator"));
    return e.add(Opcode::Sort, operands, std::move(attributes));
  });
}
Op TopK(Operand operand, int64_t k, bool largest) {
  return emit("TopK", operand, [&](Emission& e) {
    AttributeList attributes = e.attributes();
    attributes.integer(AttributeKey::K, k);
    attributes.flag(AttributeKey::Largest, largest);
    return e.add(Opcode::TopK, {operand}, std::move(attributes));
  });
}

}  // namespace lamella::hlo
