// Makes the windows of instructions. Internal to lamella/graph/builder.
#pragma once
#include <utility>
#include <vector>

#include "lamella/graph/builder/op.h"
#include "lamella/graph/hlo/attribute.h"

namespace lamella::hlo {

// The other lists are as long as `sizes`, or empty, which means strides and dilations of 1 and no
// padding.
std::vector<WindowDimension> make_window(std::span<const int64_t> sizes,
                                         std::span<const int64_t> strides,
                                         std::span<const std::pair<int64_t, int64_t>> padding,
                                         std::span<const int64_t> base_dilations,
                                         std::span<const int64_t> window_dilations);

}  // namespace lamella::hlo
