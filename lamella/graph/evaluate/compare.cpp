// Comparisons, select and clamp.
#include <bit>
#include <cmath>
#include <cstring>

#include "lamella/graph/evaluate/numbers.h"
#include "lamella/graph/evaluate/rules.h"

namespace lamella::hlo {
namespace {

enum class Direction { Eq, Ne, Lt, Le, Gt, Ge };
Direction direction_of(const Instruction& i) {
  std::string_view text = i.text(AttributeKey::Direction);
  if (text == "EQ") return Direction::Eq;
  if (text == "NE") return Direction::Ne;
  if (text == "LT") return Direction::Lt;
  if (text == "LE") return Direction::Le;
  if (text == "GT") return Direction::Gt;
  return Direction::Ge;
}

template <class W>
bool holds(Direction direction, const W& a, const W& b) {
  if (direction == Direction::Eq) return a == b;
  if (direction == Direction::Ne) return !(a == b);
  if constexpr (!is_complex_type_v<W>) {
    switch (direction) {
      case Direction::Lt:
        return a < b;
      case Direction::Le:
        return a <= b;
      case Direction::Gt:
        return a > b;
      default:
        return a >= b;
    }
  }
  return false;  // unreachable: the verifier allows only Eq and Ne for complex numbers
}

// Maps a float's code to an integer such that integers are ordered like floats in total order.
int64_t total_order(ElementType type, uint64_t code) {
  if (type == ElementType::F8E8M0FNU) return static_cast<int64_t>(code);  // has no sign
  int drop = 64 - element_bits(type);
  auto word = static_cast<int64_t>(code << drop);
  constexpr int64_t magnitude = INT64_MAX;
  return word < 0 ? word ^ magnitude : word;
}
void compare_totally(ElementType type, Direction direction, const Value& a, const Value& b,
                     bool* to, int64_t count) {
  visit_bytes(type, [&]<class T>() {
    if constexpr (std::is_integral_v<T>) {
      auto *left = static_cast<const T*>(a.data()), *right = static_cast<const T*>(b.data());
      each_element(count, [&](int64_t n) {
        to[n] = holds(direction, total_order(type, left[n]), total_order(type, right[n]));
      });
    }
  });
}

}  // namespace

Value evaluate_compare(Step& step) {
  const Instruction& i = step.instruction;
  const Value &a = step.operands[0], &b = step.operands[1];
  ElementType type = a.shape().element_type();
  int64_t count = a.shape().elements();
  Value result = step.result();
  auto* to = static_cast<bool*>(result.data());
  Direction direction = direction_of(i);
  if (is_floating(type) && i.text(AttributeKey::Type) == "TOTALORDER") {
    compare_totally(type, direction, a, b, to, count);
    return result;
  }
  visit_numbers(type, [&]<class Number>() {
    each_element(count, [&](int64_t n) {
      to[n] = holds(direction, load_wide<Number>(a.data(), n), load_wide<Number>(b.data(), n));
    });
  });
  return result;
}

Value evaluate_select(Step& step) {
  const Value& which = step.operands[0];
  auto* choice = static_cast<const uint8_t*>(which.data());
  if (which.shape().is_scalar()) {
    return Value::reshaped(std::move(step.operands[choice[0] != 0 ? 1 : 2]),
                           step.instruction.shape);
  }
  const void *yes = step.operands[1].data(), *no = step.operands[2].data();
  int64_t count = which.shape().elements();
  Value result = step.result();
  visit_bytes(step.shape().element_type(), [&]<class T>() {
    each_element(count, [&](int64_t n) {
      static_cast<T*>(result.data())[n] = static_cast<const T*>(choice[n] != 0 ? yes : no)[n];
    });
  });
  return result;
}

namespace {

// min(max(low, x), high); NaN if any of them is NaN.
template <class W>
W clamped(W low, W x, W high) {
  if constexpr (std::is_floating_point_v<W>) {
    if (std::isnan(x)) return x;
    if (std::isnan(low)) return low;
    if (std::isnan(high)) return high;
  }
  W at_least = x < low ? low : x;
  return high < at_least ? high : at_least;
}
}  // namespace

Value evaluate_clamp(Step& step) {
  const Value &low = step.operands[0], &x = step.operands[1], &high = step.operands[2];
  ElementType type = x.shape().element_type();
  if (is_complex(type)) {
    fail(step.instruction, "expected numbers that have an order, got ", element_name(type));
  }
  int64_t count = x.shape().elements();
  int64_t low_step = low.shape().is_scalar() ? 0 : 1, high_step = high.shape().is_scalar() ? 0 : 1;
  Value result = step.result();
  visit_numbers(type, [&]<class Number>() {
    if constexpr (!is_complex_type_v<typename Number::Work>) {
      each_element(count, [&](int64_t n) {
        store_wide<Number>(
            result.data(), n,
            clamped(load_wide<Number>(low.data(), n * low_step), load_wide<Number>(x.data(), n),
                    load_wide<Number>(high.data(), n * high_step)));
      });
    }
  });
  return result;
}

}  // namespace lamella::hlo
