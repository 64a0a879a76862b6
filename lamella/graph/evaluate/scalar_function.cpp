// The most common instructions as functions of scalars.
#include <cmath>
#include <cstring>
#include <functional>
#include <type_traits>

#include "lamella/graph/evaluate/elements.h"
#include "lamella/graph/evaluate/numbers.h"
#include "lamella/graph/evaluate/scalar_call.h"

namespace lamella::hlo {
namespace {

template <class W>
constexpr bool kInteger = std::is_integral_v<W> && !std::is_same_v<W, bool>;

// Integers are computed as unsigned types of at least int's width, because they must wrap.
template <class W>
using Wide = std::conditional_t<sizeof(W) <= 4, uint32_t, uint64_t>;

template <class W>
bool is_negative(W value) {
  if constexpr (std::is_floating_point_v<W>) {
    return std::signbit(value);
  } else {
    return false;
  }
}

struct AddOf {
  template <class W>
  static W apply(W a, W b) {
    if constexpr (std::is_same_v<W, bool>) {
      return a || b;
    } else if constexpr (kInteger<W>) {
      return static_cast<W>(static_cast<Wide<W>>(a) + static_cast<Wide<W>>(b));
    } else {
      return a + b;
    }
  }
};
struct SubtractOf {
  template <class W>
  static W apply(W a, W b) {
    if constexpr (kInteger<W>) {
      return static_cast<W>(static_cast<Wide<W>>(a) - static_cast<Wide<W>>(b));
    } else {
      return a - b;
    }
  }
};
struct MultiplyOf {
  template <class W>
  static W apply(W a, W b) {
    if constexpr (std::is_same_v<W, bool>) {
      return a && b;
    } else if constexpr (kInteger<W>) {
      return static_cast<W>(static_cast<Wide<W>>(a) * static_cast<Wide<W>>(b));
    } else {
      return a * b;
    }
  }
};
template <class W>
bool is_nan(W a) {
  if constexpr (std::is_floating_point_v<W>) {
    return std::isnan(a);
  } else {
    return false;
  }
}
// NaN if either operand is NaN; +0 is greater than -0.
struct MaximumOf {
  template <class W>
  static W apply(W a, W b) {
    if (is_nan(a) || is_nan(b)) return is_nan(a) ? a : b;
    if (a == b) return is_negative(a) ? b : a;
    return a > b ? a : b;
  }
};
struct MinimumOf {
  template <class W>
  static W apply(W a, W b) {
    if (is_nan(a) || is_nan(b)) return is_nan(a) ? a : b;
    if (a == b) return is_negative(a) ? a : b;
    return a < b ? a : b;
  }
};
template <class F>
struct BitsOf {
  template <class W>
  static W apply(W a, W b) {
    return static_cast<W>(F()(a, b));
  }
};
using AndOf = BitsOf<std::bit_and<>>;
using OrOf = BitsOf<std::bit_or<>>;
using XorOf = BitsOf<std::bit_xor<>>;

template <class Number, class Operation>
void binary(const void* a, const void* b, const void*, void* out) {
  Number::store(
      out, 0,
      Operation::template apply<typename Number::Work>(Number::load(a, 0), Number::load(b, 0)));
}

template <class Number, bool Total, class Direction>
void compare(const void* a, const void* b, const void*, void* out) {
  auto left = Number::load(a, 0);
  auto right = Number::load(b, 0);
  bool yes;
  if constexpr (Total) {
    yes = Direction::holds(total_order(left), total_order(right));
  } else {
    yes = Direction::holds(left, right);
  }
  *static_cast<uint8_t*>(out) = yes ? 1 : 0;
}
#define LAMELLA_HLO_DIRECTION(Name, operation)  \
  struct Name {                                 \
    template <class W>                          \
    static bool holds(const W& a, const W& b) { \
      return a operation b;                     \
    }                                           \
  };
LAMELLA_HLO_DIRECTION(Equal, ==)
LAMELLA_HLO_DIRECTION(NotEqual, !=)
LAMELLA_HLO_DIRECTION(Less, <)
LAMELLA_HLO_DIRECTION(LessEqual, <=)
LAMELLA_HLO_DIRECTION(Greater, >)
LAMELLA_HLO_DIRECTION(GreaterEqual, >=)
#undef LAMELLA_HLO_DIRECTION

template <class Number, bool Total>
ScalarFunction compare_of(std::string_view direction) {
  if (direction == "EQ") return compare<Number, Total, Equal>;
  if (direction == "NE") return compare<Number, Total, NotEqual>;
  if (direction == "LT") return compare<Number, Total, Less>;
  if (direction == "LE") return compare<Number, Total, LessEqual>;
  if (direction == "GT") return compare<Number, Total, Greater>;
  if (direction == "GE") return compare<Number, Total, GreaterEqual>;
  return nullptr;
}

template <size_t Bytes>
void select(const void* yes, const void* a, const void* b, void* out) {
  std::memcpy(out, *static_cast<const uint8_t*>(yes) != 0 ? a : b, Bytes);
}

// Only bool, integers and floats above 8 bits have functions, because reducers and comparators
// rarely use other types; those use the rules.
template <class F>
ScalarFunction with_common_number(ElementType type, F&& f) {
  if (is_small_float(type) || is_complex(type)) return nullptr;
  return visit_numbers(type, [&]<class Number>() -> ScalarFunction {
    if constexpr (std::is_arithmetic_v<typename Number::Work>) {
      return f.template operator()<Number>();
    } else {
      return nullptr;
    }
  });
}

}  // namespace

ScalarFunction scalar_function(const Instruction& i) {
  if (i.operands.empty()) return nullptr;
  ElementType type = i.operand_shape(0).element_type();
  switch (i.opcode) {
    case Opcode::Compare: {
      bool total = i.text(AttributeKey::Type) == "TOTALORDER";
      return with_common_number(type, [&]<class Number>() -> ScalarFunction {
        std::string_view direction = i.text(AttributeKey::Direction);
        if constexpr (std::is_floating_point_v<typename Number::Work>) {
          return total ? compare_of<Number, true>(direction) : compare_of<Number, false>(direction);
        } else {
          return compare_of<Number, false>(direction);
        }
      });
    }
    case Opcode::Select:
      switch (i.shape->bytes()) {
        case 1:
          return select<1>;
        case 2:
          return select<2>;
        case 4:
          return select<4>;
        case 8:
          return select<8>;
        default:
          return select<16>;
      }
    case Opcode::Add:
    case Opcode::Subtract:
    case Opcode::Multiply:
      return with_common_number(type, [&]<class Number>() -> ScalarFunction {
        if (i.opcode == Opcode::Add) return binary<Number, AddOf>;
        if (i.opcode == Opcode::Multiply) return binary<Number, MultiplyOf>;
        if constexpr (std::is_same_v<typename Number::Work, bool>) {
          return nullptr;
        } else {
          return binary<Number, SubtractOf>;
        }
      });
    case Opcode::And:
    case Opcode::Or:
    case Opcode::Xor:
      return with_common_number(type, [&]<class Number>() -> ScalarFunction {
        if constexpr (std::is_integral_v<typename Number::Work>) {
          if (i.opcode == Opcode::And) return binary<Number, AndOf>;
          if (i.opcode == Opcode::Or) return binary<Number, OrOf>;
          return binary<Number, XorOf>;
        } else {
          return nullptr;
        }
      });
    case Opcode::Maximum:
    case Opcode::Minimum:
      return with_common_number(type, [&]<class Number>() -> ScalarFunction {
        if (i.opcode == Opcode::Maximum) return binary<Number, MaximumOf>;
        return binary<Number, MinimumOf>;
      });
    default:
      return nullptr;
  }
}

}  // namespace lamella::hlo
