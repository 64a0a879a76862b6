// Values with fewer elements than the bounds of their shape's dynamic dimensions state.
#pragma once
#include <span>

#include "lamella/graph/hlo/module.h"
#include "lamella/graph/runtime/value.h"

namespace lamella::hlo {

// Note [Dynamic sizes]
//   A dimension "<=N" has any size up to N. While a module runs, an array with such a dimension has
//   memory for all N indices, so that rules can read it as an array of the whole shape, and its
//   sizes follow the elements. Elements beyond the sizes are whatever their operations gave, as in
//   XLA. Arguments may have any size below the bound; results contain the valid elements alone.

// Whether any instruction of the module has or makes a dynamic dimension.
bool has_dynamic_sizes(const Module& module);
// Whether an array of these sizes may be given for a parameter of the shape.
bool is_within(const Shape& bound, std::span<const int64_t> sizes);

// The sizes of an array of a running module, and whether they follow the elements.
bool is_sized(const Value& value);
bool has_sizes(const Value& value);  // the value, or an element of its tuple
std::vector<int64_t> sizes_of(const Value& value);
// The same elements as an array of its whole shape, in shared memory.
Value without_sizes(const Value& value);
// An array of shape `bound` with these sizes and the elements of `whole`, which has no sizes.
Value with_sizes(const Shape* bound, const Value& whole, std::span<const int64_t> sizes);

// An array with the same elements and a shape that it owns, of as many bytes.
Value with_own_shape(Shape shape, Value value);
// The first elements in each dimension, up to the sizes, as an array that owns its shape.
Value cut_to(const Value& value, std::span<const int64_t> sizes);
// The reverse: an array of shape `bound` that begins with the given array, followed by zeros.
Value grown_to(const Shape* bound, const Value& value);
// The value of a running module as its caller sees it.
Value packed(const Value& value);
// An argument as the module sees it.
Value unpacked(const Shape* bound, const Value& argument);

}  // namespace lamella::hlo
