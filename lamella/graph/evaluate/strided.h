// Copies between arrays with arbitrary strides.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "lamella/graph/hlo/element_type.h"
#include "lamella/graph/hlo/shape.h"

namespace lamella::hlo {

// Copies the elements at all indices below `sizes`. Strides are in elements; those of `from` may be
// 0 or negative. The first element is at `from` and at `to`. The two must not overlap.
void copy_strided(ElementType type, std::span<const int64_t> sizes, const void* from,
                  std::span<const int64_t> from_strides, void* to,
                  std::span<const int64_t> to_strides);
// The address `offset` elements after `data`.
const void* at_element(ElementType type, const void* data, int64_t offset);
void* at_element(ElementType type, void* data, int64_t offset);
// The strides, in elements, of an array with the shape's layout.
std::vector<int64_t> layout_strides(const Shape& shape);
// Sets `count` elements to the one at `value`.
void fill_elements(ElementType type, const void* value, void* to, int64_t count);

}  // namespace lamella::hlo
