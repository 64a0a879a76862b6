// Pooling (XLA's client/lib/pooling.h). Kernel sizes and strides have an entry for each dimension.
#pragma once
#include "lamella/graph/builder/builder.h"

namespace lamella::hlo {

// Which dimensions are the batch, the features, and the spatial ones.
class TensorFormat {
 public:
  TensorFormat(int batch_dimension, int feature_dimension, Span<int64_t> spatial_dimensions)
      : batch_dimension_(batch_dimension),
        feature_dimension_(feature_dimension),
        spatial_dimensions_(spatial_dimensions.begin(), spatial_dimensions.end()) {}
  int batch_dimension() const { return batch_dimension_; }
  int feature_dimension() const { return feature_dimension_; }
  int spatial_dimension(int i) const {
    return static_cast<int>(spatial_dimensions_.at(static_cast<size_t>(i)));
  }
  int num_spatial_dims() const { return static_cast<int>(spatial_dimensions_.size()); }

 private:
  int batch_dimension_, feature_dimension_;
  std::vector<int64_t> spatial_dimensions_;
};

Op MaxPool(Operand operand, Span<int64_t> kernel_size, Span<int64_t> stride, Padding padding,
           const TensorFormat& data_format);
// `padding` has an entry for each spatial dimension. Without counts_include_padding each sum is
// divided by the number of elements of the operand in its window.
Op AvgPool(Operand operand, Span<int64_t> kernel_size, Span<int64_t> stride,
           Span<std::pair<int64_t, int64_t>> padding, const TensorFormat& data_format,
           bool counts_include_padding);
// The gradient of AvgPool for an operand of size gradients_size.
Op AvgPoolGrad(Operand out_backprop, Span<int64_t> gradients_size, Span<int64_t> kernel_size,
               Span<int64_t> stride, Span<std::pair<int64_t, int64_t>> spatial_padding,
               const TensorFormat& data_format, bool counts_include_padding);
// The padding of each spatial dimension.
std::vector<std::pair<int64_t, int64_t>> MakeSpatialPadding(Span<int64_t> input_size,
                                                            Span<int64_t> kernel_size,
                                                            Span<int64_t> stride, Padding padding,
                                                            const TensorFormat& data_format);

}  // namespace lamella::hlo
