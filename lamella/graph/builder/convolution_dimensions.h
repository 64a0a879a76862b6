// Converts XLA's ConvolutionDimensionNumbers to the module's ConvolutionDimensions. Internal to
// lamella/graph/builder.
#pragma once
#include "lamella/graph/builder/types.h"
#include "lamella/graph/hlo/attribute.h"

namespace lamella::hlo {

inline ConvolutionDimensions dimensions_of(const ConvolutionDimensionNumbers& d) {
  return {d.input_batch_dimension(),           d.input_feature_dimension(),
          d.input_spatial_dimensions(),        d.kernel_input_feature_dimension(),
          d.kernel_output_feature_dimension(), d.kernel_spatial_dimensions(),
          d.output_batch_dimension(),          d.output_feature_dimension(),
          d.output_spatial_dimensions()};
}

}  // namespace lamella::hlo
