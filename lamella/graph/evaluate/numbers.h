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

template <ElementType E>
constexpr auto number_of() {
  constexpr int kBits = element_bits(E);
  constexpr ElementKind kKind = element_kind(E);
  if constexpr (is_small_float(E)) {
    return CodedNumber<E>();
  } else if constexpr (kKind == ElementKind::Predicate) {
    // Foreign memory holds bytes that no bool has; whatever is not 0 is true.
    return PlainNumber<E, uint8_t, bool>();
  } else if constexpr (kBits < 8) {
    return CutNumber<E, std::conditional_t<kKind == ElementKind::Signed, int8_t, uint8_t>, kBits>();
  } else {
    using Stored = ScalarTypeToCppTypeT<element_row(E).scalar>;
    return PlainNumber<
        E, Stored, std::conditional_t<lamella::detail::is_small_float_v<Stored>, float, Stored>>();
  }
}

// Of the types of one of these kinds.
template <ElementKind... Kinds, class F>
decltype(auto) visit_kinds(ElementType type, const char* expected, F&& f) {
  switch (type) {
#define LAMELLA_HLO_ELEMENT(name, text, number, bits, kind, ...)                \
  case ElementType::name:                                                       \
    if constexpr (((ElementKind::kind == Kinds) || ...)) {                      \
      return f.template operator()<decltype(number_of<ElementType::name>())>(); \
    } else {                                                                    \
      break;                                                                    \
    }
#include "lamella/graph/hlo/element_type.def"
    default:
      break;
  }
  LAMELLA_INTERNAL_ASSERT(false, "hlo: expected ", expected, ", got ", element_name(type));
}
template <class F>
decltype(auto) visit_integers(ElementType type, F&& f) {
  return visit_kinds<ElementKind::Signed, ElementKind::Unsigned>(type, "an integer type", f);
}
template <class F>
decltype(auto) visit_floats(ElementType type, F&& f) {
  return visit_kinds<ElementKind::Float>(type, "a floating-point type", f);
}
template <class F>
decltype(auto) visit_complex(ElementType type, F&& f) {
  return visit_kinds<ElementKind::Complex>(type, "a complex type", f);
}
template <class F>
decltype(auto) visit_numbers(ElementType type, F&& f) {
  using enum ElementKind;
  return visit_kinds<Predicate, Signed, Unsigned, Float, Complex>(type, "a type of numbers", f);
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
