// Elements: addresses of single elements of values, for rules that call a computation per element.
#pragma once
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "lamella/graph/evaluate/numbers.h"
#include "lamella/graph/evaluate/rules.h"

namespace lamella::hlo {

// The base address and element size of an array.
struct Elements {
  std::byte* data = nullptr;
  size_t size = 0;  // bytes of one element

  Elements() = default;
  explicit Elements(const Value& value)
      : data(static_cast<std::byte*>(value.data())),
        size(static_cast<size_t>(element_bytes(value.shape().element_type()))) {}
  std::byte* at(int64_t place) const { return data + static_cast<size_t>(place) * size; }
};

// The offset of every index over `sizes`, in row-major order, with these strides.
inline std::vector<int64_t> offsets_of(std::span<const int64_t> sizes,
                                       std::span<const int64_t> strides) {
  std::vector<int64_t> offsets;
  for (Counter at(sizes); at.valid(); at.next()) offsets.push_back(place_of(at.index(), strides));
  return offsets;
}

// Allocates the result arrays of an instruction: one, or one for each element of its tuple.
inline std::vector<Value> make_results(const Step& step) {
  std::vector<Value> results;
  if (!step.shape().is_tuple()) {
    results.push_back(step.result());
    return results;
  }
  for (const Shape& shape : step.shape().tuple_shapes()) {
    results.push_back(Value::uninitialized(&shape));
  }
  return results;
}
inline Value join_results(const Step& step, std::vector<Value>& results) {
  if (!step.shape().is_tuple()) return std::move(results[0]);
  return Value::tuple(&step.shape(), results);
}

// Maps a float to an integer with the same total order: -NaN < -inf < ... < -0 < +0 < ... < NaN.
template <class W>
auto total_order(W value) {
  if constexpr (std::is_floating_point_v<W>) {
    using Bits = std::conditional_t<sizeof(W) == 4, int32_t, int64_t>;
    Bits bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits < 0 ? static_cast<Bits>(bits ^ std::numeric_limits<Bits>::max()) : bits;
  } else {
    return value;
  }
}
}  // namespace lamella::hlo
