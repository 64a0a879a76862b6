// Numbers: access to elements of every type as C++ numbers.
//
// Note [Working types]
//   Arithmetic uses a working type: bool for PRED, the C++ integer type for integers (int8_t and
//   uint8_t below a byte, truncated to the type's bits when stored), float for F32 and all smaller
//   floats, double, complex<float>, complex<double>. Storing rounds to the element type once, after
//   each instruction, as XLA's semantics require. visit_* call f.template operator()<Number>(),
//   where Number::Work is the working type, and Number::load(data, i) and
//   Number::store(data, i, value) access one element.
#pragma once
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "lamella/core/complex.h"
#include "lamella/core/error.h"
#include "lamella/core/half.h"
#include "lamella/core/interrupt.h"
#include "lamella/graph/hlo/element_type.h"
#include "lamella/graph/hlo/small_float.h"

namespace lamella::hlo {

// Elements that are stored as `Stored` and computed as `W`.
template <ElementType E, class Stored, class W = Stored>
struct PlainNumber {
  using Work = W;
  static constexpr ElementType type = E;
  static Work load(const void* data, int64_t i) {
    return static_cast<Work>(static_cast<const Stored*>(data)[i]);
  }
  static void store(void* data, int64_t i, Work value) {
    static_cast<Stored*>(data)[i] = static_cast<Stored>(value);
  }
};
// Integers of 1, 2 and 4 bits, one per byte.
template <ElementType E, class Stored, int Bits>
struct CutNumber {
  using Work = Stored;
  static constexpr ElementType type = E;
  static Work load(const void* data, int64_t i) { return static_cast<const Stored*>(data)[i]; }
  static void store(void* data, int64_t i, Work value) {
    constexpr int drop = 8 - Bits;
    auto up = static_cast<uint8_t>(static_cast<uint8_t>(value) << drop);
    static_cast<Stored*>(data)[i] = static_cast<Stored>(static_cast<Stored>(up) >> drop);
  }
};
template <ElementType E>
struct CodedNumber {
  using Work = float;
  static constexpr ElementType type = E;
  static Work load(const void* data, int64_t i) {
    return decode_small_float(E, static_cast<const uint8_t*>(data)[i]);
  }
  static void store(void* data, int64_t i, Work value) {
    static_cast<uint8_t*>(data)[i] = encode_small_float(E, static_cast<double>(value));
  }
};

template <class F>
decltype(auto) visit_integers(ElementType type, F&& f) {
  using enum ElementType;
  switch (type) {
    case S1:
      return f.template operator()<CutNumber<S1, int8_t, 1>>();
    case S2:
      return f.template operator()<CutNumber<S2, int8_t, 2>>();
    case S4:
      return f.template operator()<CutNumber<S4, int8_t, 4>>();
    case S8:
      return f.template operator()<PlainNumber<S8, int8_t>>();
    case S16:
      return f.template operator()<PlainNumber<S16, int16_t>>();
    case S32:
      return f.template operator()<PlainNumber<S32, int32_t>>();
    case S64:
      return f.template operator()<PlainNumber<S64, int64_t>>();
    case U1:
      return f.template operator()<CutNumber<U1, uint8_t, 1>>();
    case U2:
      return f.template operator()<CutNumber<U2, uint8_t, 2>>();
    case U4:
      return f.template operator()<CutNumber<U4, uint8_t, 4>>();
    case U8:
      return f.template operator()<PlainNumber<U8, uint8_t>>();
    case U16:
      return f.template operator()<PlainNumber<U16, uint16_t>>();
    case U32:
      return f.template operator()<PlainNumber<U32, uint32_t>>();
    case U64:
      return f.template operator()<PlainNumber<U64, uint64_t>>();
    default:
      LAMELLA_INTERNAL_ASSERT(false, "hlo: expected an integer type, got ", element_name(type));
  }
}
template <class F>
decltype(auto) visit_floats(ElementType type, F&& f) {
  using enum ElementType;
  switch (type) {
    case F16:
      return f.template operator()<PlainNumber<F16, Half, float>>();
    case BF16:
      return f.template operator()<PlainNumber<BF16, BFloat16, float>>();
    case F32:
      return f.template operator()<PlainNumber<F32, float>>();
    case F64:
      return f.template operator()<PlainNumber<F64, double>>();
    case F8E5M2:
      return f.template operator()<CodedNumber<F8E5M2>>();
    case F8E4M3FN:
      return f.template operator()<CodedNumber<F8E4M3FN>>();
    case F8E4M3B11FNUZ:
      return f.template operator()<CodedNumber<F8E4M3B11FNUZ>>();
    case F8E5M2FNUZ:
      return f.template operator()<CodedNumber<F8E5M2FNUZ>>();
    case F8E4M3FNUZ:
      return f.template operator()<CodedNumber<F8E4M3FNUZ>>();
    case F8E4M3:
      return f.template operator()<CodedNumber<F8E4M3>>();
    case F8E3M4:
      return f.template operator()<CodedNumber<F8E3M4>>();
    case F4E2M1FN:
      return f.template operator()<CodedNumber<F4E2M1FN>>();
    case F8E8M0FNU:
      return f.template operator()<CodedNumber<F8E8M0FNU>>();
    default:
      LAMELLA_INTERNAL_ASSERT(false, "hlo: expected a floating-point type, got ",
                              element_name(type));
  }
}
template <class F>
decltype(auto) visit_complex(ElementType type, F&& f) {
  if (type == ElementType::C64) {
    return f.template operator()<PlainNumber<ElementType::C64, complex<float>>>();
  }
  LAMELLA_INTERNAL_ASSERT(type == ElementType::C128, "hlo: expected a complex type, got ",
                          element_name(type));
  return f.template operator()<PlainNumber<ElementType::C128, complex<double>>>();
}
template <class F>
decltype(auto) visit_numbers(ElementType type, F&& f) {
  if (type == ElementType::PRED) {
    // Bytes of external memory may be other than 0 and 1; any nonzero byte is true.
    return f.template operator()<PlainNumber<ElementType::PRED, uint8_t, bool>>();
  }
  if (is_integral(type)) return visit_integers(type, f);
  if (is_complex(type)) return visit_complex(type, f);
  return visit_floats(type, f);
}
// Visits elements as integers or blocks of the same size, for rules that only move them.
template <class F>
decltype(auto) visit_bytes(ElementType type, F&& f) {
  struct Sixteen {
    uint64_t halves[2];
  };
  switch (element_bytes(type)) {
    case 1:
      return f.template operator()<uint8_t>();
    case 2:
      return f.template operator()<uint16_t>();
    case 4:
      return f.template operator()<uint32_t>();
    case 8:
      return f.template operator()<uint64_t>();
    default:
      return f.template operator()<Sixteen>();
  }
}

// Note [Wide numbers]
//   Rules that need only one function per kind of number use the widest type of the kind: uint64_t
//   (PRED as 0 and 1), int64_t, double, complex<float>, complex<double>. Sums, products, quotients
//   and roots of smaller floats are the same as if computed in their working type, because double
//   has at least 2 p + 2 digits for the p digits of float (S. A. Figueroa, When is double rounding
//   innocuous?, 1995).
template <class Number>
struct WideOf {
  using Work = typename Number::Work;
  using type = std::conditional_t<
      std::is_floating_point_v<Work>, double,
      std::conditional_t<is_complex_type_v<Work>, Work,
                         std::conditional_t<std::is_signed_v<Work>, int64_t, uint64_t>>>;
};
template <class Number>
using Wide = typename WideOf<Number>::type;
template <class Number>
Wide<Number> load_wide(const void* data, int64_t i) {
  return static_cast<Wide<Number>>(Number::load(data, i));
}
// Stores a wide number: integers are truncated, floats are rounded, and PRED is value != 0.
template <class Number>
void store_wide(void* data, int64_t i, Wide<Number> value) {
  if constexpr (std::is_same_v<typename Number::Work, bool>) {
    Number::store(data, i, value != 0);
  } else {
    Number::store(data, i, static_cast<typename Number::Work>(value));
  }
}

// Calls f(n) for each n of [0, count), and checks for interrupts.
template <class F>
void each_element(int64_t count, F&& f) {
  constexpr int64_t kBlock = 1 << 16;
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    if (begin != 0) check_interrupt();
    int64_t end = count - begin < kBlock ? count : begin + kBlock;
    for (int64_t n = begin; n < end; ++n) f(n);
  }
}

// Iterates over the indices of an array in row-major order.
class Counter {
 public:
  explicit Counter(std::span<const int64_t> sizes)
      : sizes_(sizes), index_(sizes.size(), 0), left_(1) {
    for (int64_t size : sizes) left_ *= size;
  }
  // False after the last index, and from the start if the array is empty.
  bool valid() const { return left_ > 0; }
  std::span<const int64_t> index() const { return index_; }
  int64_t operator[](size_t d) const { return index_[d]; }
  void next() {
    if ((--left_ & 0xfff) == 0) count_steps(0x8000);
    for (size_t d = sizes_.size(); d-- > 0;) {
      if (++index_[d] < sizes_[d]) return;
      index_[d] = 0;
    }
  }

 private:
  std::span<const int64_t> sizes_;
  std::vector<int64_t> index_;
  int64_t left_;
};
// The strides of a row-major array, in elements.
inline std::vector<int64_t> row_major_strides(std::span<const int64_t> sizes) {
  std::vector<int64_t> strides(sizes.size(), 1);
  for (size_t d = sizes.size(); d-- > 1;) strides[d - 1] = strides[d] * sizes[d];
  return strides;
}
inline int64_t place_of(std::span<const int64_t> index, std::span<const int64_t> strides) {
  int64_t place = 0;
  for (size_t d = 0; d < index.size(); ++d) place += index[d] * strides[d];
  return place;
}

}  // namespace lamella::hlo
