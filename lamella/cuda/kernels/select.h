// Elements that masks choose, triangles, ranges, elements that only move, and searches.
#pragma once
#include "lamella/cuda/kernels/walk.h"

namespace lamella::cuda {

struct MaskParameters {
  // fill: self, mask. select: source, mask, positions. spread: target, mask, positions.
  // triangle: result, self.
  Walk<3> walk;
  alignas(16) char number[16];
  uint64_t number_at;  // if not 0, the number is there
  uint64_t to;         // of selected elements, or the values that are spread
  int64_t step;        // bytes between those
  int64_t limit;       // values to spread
  int64_t rows, columns, diagonal;
  int32_t lower;
  uint64_t slot, any;
};

template <class T>
LAMELLA_DEVICE void fill_masked(const MaskParameters& p, int64_t thread, int64_t threads) {
  const T value = *reinterpret_cast<const T*>(p.number_at != 0 ? memory_at(p.number_at) : p.number);
  walk_elements<2>(p.walk, thread, threads, [&](int64_t, const int64_t* offsets) {
    if (element<char>(p.walk, 1, offsets) != 0) element<T>(p.walk, 0, offsets) = value;
  });
}
// Positions are numbers of set elements up to and with each one.
template <class T>
LAMELLA_DEVICE void select(const MaskParameters& p, int64_t thread, int64_t threads) {
  walk_elements<3>(p.walk, thread, threads, [&](int64_t, const int64_t* offsets) {
    if (element<char>(p.walk, 1, offsets) == 0) return;
    const int64_t at = element<int64_t>(p.walk, 2, offsets) - 1;
    *reinterpret_cast<T*>(device_pointer<char>(p.to) + at * p.step) =
        element<T>(p.walk, 0, offsets);
  });
}
template <class T>
LAMELLA_DEVICE void spread(const MaskParameters& p, int64_t thread, int64_t threads) {
  const auto* positions = device_pointer<const int64_t>(p.walk.data[2]);
  const int64_t needed = positions[p.walk.numel - 1];
  if (needed > p.limit) {
    if (thread == 0) report_index(p.slot, p.any, needed);
    return;
  }
  walk_elements<2>(p.walk, thread, threads, [&](int64_t i, const int64_t* offsets) {
    if (element<char>(p.walk, 1, offsets) == 0) return;
    element<T>(p.walk, 0, offsets) =
        *reinterpret_cast<const T*>(memory_at(p.to) + (positions[i] - 1) * p.step);
  });
}
// Elements of matrices on one side of a diagonal; the others become 0.
template <class T>
LAMELLA_DEVICE void triangle(const MaskParameters& p, int64_t thread, int64_t threads) {
  walk_elements<2>(p.walk, thread, threads, [&](int64_t i, const int64_t* offsets) {
    const int64_t column = i % p.columns, edge = i / p.columns % p.rows + p.diagonal;
    T value{};
    if (p.lower != 0 ? column <= edge : column >= edge) value = element<T>(p.walk, 1, offsets);
    element<T>(p.walk, 0, offsets) = value;
  });
}
// Moves operand 1 to operand 0; strides may be negative.
template <class T>
LAMELLA_DEVICE void move(const MaskParameters& p, int64_t thread, int64_t threads) {
  walk_elements<2>(p.walk, thread, threads, [&](int64_t, const int64_t* offsets) {
    element<T>(p.walk, 0, offsets) = element<T>(p.walk, 1, offsets);
  });
}

// The coordinates of the set elements of a contiguous mask.
struct CoordinateParameters {
  int64_t numel;
  int32_t ndim;
  int64_t sizes[64];
  uint64_t mask, positions, to;
  int64_t row_stride, column_stride;  // of int64 elements
};
LAMELLA_DEVICE void coordinates(const CoordinateParameters& p, int64_t thread, int64_t threads) {
  for (int64_t i = thread; i < p.numel; i += threads) {
    if (*(memory_at(p.mask) + i) == 0) continue;
    const int64_t row = device_pointer<const int64_t>(p.positions)[i] - 1;
    auto* to = device_pointer<int64_t>(p.to) + row * p.row_stride;
    int64_t rest = i;
    for (int d = p.ndim; d-- > 0;) {
      to[d * p.column_stride] = rest % p.sizes[d];
      rest /= p.sizes[d];
    }
  }
}

// first + step * i, or points that meet `last` exactly. Integers of any width wrap.
struct RangeParameters {
  Walk<1> walk;
  double first, step, last;
  int64_t first_whole, step_whole;
  int32_t meets;  // linspace
};
template <class T>
LAMELLA_DEVICE void range(const RangeParameters& p, int64_t thread, int64_t threads) {
  using C = computed_as<T>;
  using S = std::conditional_t<std::is_integral_v<C>, double, C>;
  walk_elements<1>(p.walk, thread, threads, [&](int64_t i, const int64_t* offsets) {
    C value;
    if (p.meets != 0) {
      const S step = static_cast<S>(p.step);
      const S point = i < p.walk.numel / 2
                          ? static_cast<S>(p.first) + step * static_cast<S>(static_cast<double>(i))
                          : static_cast<S>(p.last) -
                                step * static_cast<S>(static_cast<double>(p.walk.numel - i - 1));
      if constexpr (std::is_integral_v<C>) {
        value = static_cast<C>(static_cast<int64_t>(point));
      } else {
        value = point;
      }
    } else if constexpr (std::is_integral_v<C>) {
      value = static_cast<C>(static_cast<uint64_t>(p.first_whole) +
                             static_cast<uint64_t>(p.step_whole) * static_cast<uint64_t>(i));
    } else {
      value = static_cast<C>(p.first + p.step * static_cast<double>(i));
    }
    element<T>(p.walk, 0, offsets) = stored_as<T>(value);
  });
}

// The places of values among sorted numbers, in which NaN comes last.
struct SearchParameters {
  int64_t numel, length;              // values; numbers in a line
  int64_t each;                       // values for a line
  uint64_t lines, values, order, to;  // order: 0, or int64 positions of the sorted numbers
  int32_t right, narrow;              // narrow: results are int32
};
template <class T>
LAMELLA_DEVICE void search(const SearchParameters& p, int64_t thread, int64_t threads) {
  for (int64_t i = thread; i < p.numel; i += threads) {
    const int64_t start = i / p.each * p.length;
    const T* line = device_pointer<const T>(p.lines) + start;
    const int64_t* order = p.order == 0 ? nullptr : device_pointer<const int64_t>(p.order) + start;
    const auto value = loaded(device_pointer<const T>(p.values)[i]);
    int64_t low = 0, high = p.length;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      int64_t at = order != nullptr ? order[middle] : middle;
      if (at < 0 || at >= p.length) at = 0;
      const auto number = loaded(line[at]);
      if (p.right != 0 ? !is_before(value, number) : is_before(number, value)) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    if (p.narrow != 0) {
      device_pointer<int32_t>(p.to)[i] = static_cast<int32_t>(low);
    } else {
      device_pointer<int64_t>(p.to)[i] = low;
    }
  }
}

// f(kernel, Parameters, body)
#define LAMELLA_SELECT_KERNELS(f)            \
  LAMELLA_EACH_SIZE(LAMELLA_MASK_KERNELS, f) \
  LAMELLA_EACH_TYPE(LAMELLA_RANGE_KERNELS, f) f(coordinates_of, CoordinateParameters, coordinates)
#define LAMELLA_MASK_KERNELS(f, T, suffix)                                                        \
  f(fill_masked_##suffix, MaskParameters, fill_masked<T>)                                         \
      f(select_##suffix, MaskParameters, select<T>) f(spread_##suffix, MaskParameters, spread<T>) \
          f(triangle_##suffix, MaskParameters, triangle<T>)                                       \
              f(move_##suffix, MaskParameters, move<T>)
#define LAMELLA_RANGE_KERNELS(f, T, suffix) \
  f(range_##suffix, RangeParameters, range<T>) f(search_##suffix, SearchParameters, search<T>)

}  // namespace lamella::cuda
