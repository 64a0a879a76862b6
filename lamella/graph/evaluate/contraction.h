// The wide types in which contractions sum products.
//
// Note [Sums of products]
//   Operand types may differ from the result type (s8 by s8 into s32, bf16 by bf16 into f32).
//   Elements are first converted to the wide type of the result's kind: double for floats, which
//   holds products of f32 exactly; wrapping 64-bit integers; complex<double>; and for PRED, bool
//   with "or" as sum and "and" as product. The sum is rounded to the result's type once.
#pragma once
#include <type_traits>
#include <vector>

#include "lamella/graph/evaluate/numbers.h"
#include "lamella/graph/evaluate/rules.h"

namespace lamella::hlo {

struct WidePredicate {
  bool value = false;
  friend WidePredicate operator*(WidePredicate a, WidePredicate b) { return {a.value && b.value}; }
  WidePredicate& operator+=(WidePredicate b) {
    value = value || b.value;
    return *this;
  }
};

// Calls f.operator()<Wide>() with the type in which sums of this element type are accumulated.
template <class F>
decltype(auto) visit_wide(ElementType type, F&& f) {
  if (type == ElementType::PRED) return f.template operator()<WidePredicate>();
  if (is_integral(type)) return f.template operator()<uint64_t>();
  if (is_complex(type)) return f.template operator()<complex<double>>();
  return f.template operator()<double>();
}

template <class Wide, class Work>
Wide widened(const Work& value) {
  if constexpr (std::is_same_v<Wide, WidePredicate>) {
    return {static_cast<bool>(value)};
  } else if constexpr (std::is_same_v<Wide, complex<double>>) {
    if constexpr (std::is_arithmetic_v<Work>) {
      return complex<double>(static_cast<double>(value), 0.0);
    } else {
      return complex<double>(value.real(), value.imag());
    }
  } else if constexpr (std::is_arithmetic_v<Work>) {
    return static_cast<Wide>(value);
  } else {
    return static_cast<Wide>(value.real());
  }
}
// An array's elements in the wide type.
template <class Wide>
std::vector<Wide> widened(const Value& value) {
  auto count = static_cast<size_t>(value.shape().elements());
  std::vector<Wide> all(count);
  visit_numbers(value.shape().element_type(), [&]<class Number>() {
    for (size_t e = 0; e < count; ++e) {
      all[e] = widened<Wide>(Number::load(value.data(), static_cast<int64_t>(e)));
    }
  });
  return all;
}
template <class Work, class Wide>
Work narrowed(const Wide& value) {
  if constexpr (std::is_same_v<Wide, WidePredicate>) {
    return static_cast<Work>(value.value);
  } else if constexpr (std::is_same_v<Wide, complex<double>>) {
    if constexpr (std::is_arithmetic_v<Work>) {
      return static_cast<Work>(value.real());
    } else {
      using Part = typename Work::value_type;
      return Work(static_cast<Part>(value.real()), static_cast<Part>(value.imag()));
    }
  } else if constexpr (std::is_arithmetic_v<Work>) {
    return static_cast<Work>(value);
  } else {
    return Work(static_cast<typename Work::value_type>(value));
  }
}
// Rounds wide elements to the array's element type and stores them.
template <class Wide>
void store_wide(const std::vector<Wide>& all, const Value& result) {
  visit_numbers(result.shape().element_type(), [&]<class Number>() {
    using Work = typename Number::Work;
    for (size_t e = 0; e < all.size(); ++e) {
      Number::store(result.data(), static_cast<int64_t>(e), narrowed<Work>(all[e]));
    }
  });
}

}  // namespace lamella::hlo
