// Pooling.
#include "lamella/graph/builder/lib/pooling.h"

#include "lamella/graph/builder/emission.h"
#include "lamella/graph/builder/functions.h"
#include "lamella/graph/builder/lib/arithmetic.h"
#include "lamella/graph/builder/lib/constants.h"
#include "lamella/graph/hlo/infer.h"

namespace lamella::hlo {
namespace {

using Pairs = std::vector<std::pair<int64_t, int64_t>>;

// The padding of all dimensions, none of batch and features.
Pairs all_padding(Span<std::pair<int64_t, int64_t>> spatial, const TensorFormat& format,
                  size_t rank) {
  LAMELLA_EXPECT(
      static_cast<int>(spatial.size()) == format.num_spatial_dims() && spatial.size() + 2 == rank,
      "padding of each of ", rank, " dimensions but two, got ", spatial.size(), " entries");
  Pairs all(rank);
  for (int i = 0; i < format.num_spatial_dims(); ++i) {
    all.at(static_cast<size_t>(format.spatial_dimension(i))) = spatial[static_cast<size_t>(i)];
  }
  return all;
}
Op sums(Emission& e, Op operand, ElementType type, Span<int64_t> kernel, Span<int64_t> stride,
        const Pairs& padding, Span<int64_t> dilation = {}) {
  return ReduceWindowWithGeneralPadding(e.at(operand), Zero(e.within(), type),
                                        CreateScalarAddComputation(type, e.builder()), kernel,
                                        stride, dilation, {}, padding);
}
// Divides each sum by the number of elements in its window.
Op divided(Emission& e, Op sum, ElementType type, Span<int64_t> sizes, Span<int64_t> kernel,
           Span<int64_t> stride, const Pairs& padding, bool counts_include_padding) {
  if (counts_include_padding) {
    int64_t count = 1;
    for (int64_t size : kernel) count *= size;
    return Div(e.at(sum), ConstantR0WithType(e.within(), type, count));
  }
  Op ones = Broadcast(e.at(One(e.within(), type)), sizes);
  return Div(e.at(sum), sums(e, ones, type, kernel, stride, padding));
}

}  // namespace

Op MaxPool(Operand operand, Span<int64_t> kernel_size, Span<int64_t> stride, Padding padding,
           const TensorFormat&) {
  return emit("MaxPool", operand, [&](Emission& e) {
    ElementType type = e.array(operand, "operand").element_type();
    return ReduceWindow(e.at(operand), MinValue(e.within(), type),
                        CreateScalarMaxComputation(type, e.builder()), kernel_size, stride,
                        padding);
  });
}
Op AvgPool(Operand operand, Span<int64_t> kernel_size, Span<int64_t> stride,
           Span<std::pair<int64_t, int64_t>> padding, const TensorFormat& data_format,
           bool counts_include_padding) {
  return emit("AvgPool", operand, [&](Emission& e) {
    const Shape shape = e.array(operand, "operand");
    Pairs all = all_padding(padding, data_format, kernel_size.size());
    Op sum = sums(e, operand, shape.element_type(), kernel_size, stride, all);
    return divided(e, sum, shape.element_type(), Span<int64_t>(shape.dimensions()), kernel_size,
                   stride, all, counts_include_padding);
  });
}
Op AvgPoolGrad(Operand out_backprop, Span<int64_t> gradients_size, Span<int64_t> kernel_size,
               Span<int64_t> stride, Span<std::pair<int64_t, int64_t>> spatial_padding,
               const TensorFormat& data_format, bool counts_include_padding) {
  return emit("AvgPoolGrad", out_backprop, [&](Emission& e) {
    const Shape shape = e.array(out_backprop, "out_backprop");
    size_t rank = kernel_size.size();
    LAMELLA_EXPECT(
        gradients_size.size() == rank && shape.dimensions().size() == rank && stride.size() == rank,
        "sizes, strides and gradients of ", rank, " dimensions, got ", gradients_size.size(), ", ",
        stride.size(), " and ", shape.rank());
    Pairs all = all_padding(spatial_padding, data_format, rank);
    ElementType type = shape.element_type();
    Op shares = divided(e, out_backprop, type, gradients_size, kernel_size, stride, all,
                        counts_include_padding);
    // Each element gets the shares of the windows that contain it: a sum over a window of the same
    // size, of the shares spread out by the strides.
    Pairs around(rank);
    for (size_t d = 0; d < rank; ++d) {
      int64_t reached =
          shape.dimensions()[d] == 0 ? 0 : (shape.dimensions()[d] - 1) * stride[d] + 1;
      around[d].first = kernel_size[d] - 1 - all[d].first;
      around[d].second = gradients_size[d] + kernel_size[d] - 1 - reached - around[d].first;
    }
    std::vector<int64_t> ones(rank, 1);
    return sums(e, shares, type, kernel_size, ones, around, stride);
  });
}
std::vector<std::pair<int64_t, int64_t>> MakeSpatialPadding(Span<int64_t> input_size,
                                                            Span<int64_t> kernel_size,
                                                            Span<int64_t> stride, Padding padding,
                                                            const TensorFormat& data_format) {
  std::vector<int64_t> sizes, kernels, strides;
  for (int i = 0; i < data_format.num_spatial_dims(); ++i) {
    auto d = static_cast<size_t>(data_format.spatial_dimension(i));
    LAMELLA_CHECK(d < input_size.size() && d < kernel_size.size() && d < stride.size(),
                  "MakeSpatialPadding: expected sizes of each dimension, got ", input_size.size(),
                  ", ", kernel_size.size(), " and ", stride.size());
    sizes.push_back(input_size[d]);
    kernels.push_back(kernel_size[d]);
    strides.push_back(stride[d]);
  }
  return MakePadding(sizes, kernels, strides, padding);
}

}  // namespace lamella::hlo
