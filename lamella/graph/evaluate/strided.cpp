// Copies between arrays with arbitrary strides.
#include "lamella/graph/evaluate/strided.h"

#include <algorithm>
#include <cstring>

#include "lamella/graph/evaluate/numbers.h"

namespace lamella::hlo {
namespace {

template <class T>
void copy_dimension(std::span<const int64_t> sizes, const T* from, const int64_t* from_strides,
                    T* to, const int64_t* to_strides) {
  if (sizes.empty()) {
    *to = *from;
    return;
  }
  int64_t size = sizes[0], from_step = from_strides[0], to_step = to_strides[0];
  if (sizes.size() == 1) {
    if (from_step == 1 && to_step == 1) {
      std::memcpy(to, from, static_cast<size_t>(size) * sizeof(T));
      return;
    }
    for (int64_t n = 0; n < size; ++n) to[n * to_step] = from[n * from_step];
    return;
  }
  for (int64_t n = 0; n < size; ++n) {
    copy_dimension(sizes.subspan(1), from + n * from_step, from_strides + 1, to + n * to_step,
                   to_strides + 1);
  }
}

}  // namespace

void copy_strided(ElementType type, std::span<const int64_t> sizes, const void* from,
                  std::span<const int64_t> from_strides, void* to,
                  std::span<const int64_t> to_strides) {
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return;
  visit_bytes(type, [&]<class T>() {
    copy_dimension(sizes, static_cast<const T*>(from), from_strides.data(), static_cast<T*>(to),
                   to_strides.data());
  });
}

const void* at_element(ElementType type, const void* data, int64_t offset) {
  return static_cast<const std::byte*>(data) + offset * element_bytes(type);
}
void* at_element(ElementType type, void* data, int64_t offset) {
  return static_cast<std::byte*>(data) + offset * element_bytes(type);
}

std::vector<int64_t> layout_strides(const Shape& shape) {
  if (shape.is_row_major()) return row_major_strides(shape.dimensions());
  std::vector<int64_t> strides(shape.dimensions().size());
  int64_t stride = 1;
  for (int64_t d : shape.minor_to_major()) {
    strides[static_cast<size_t>(d)] = stride;
    stride *= shape.dimension(d);
  }
  return strides;
}

void fill_elements(ElementType type, const void* value, void* to, int64_t count) {
  visit_bytes(type, [&]<class T>() {
    std::fill_n(static_cast<T*>(to), count, *static_cast<const T*>(value));
  });
}

}  // namespace lamella::hlo
