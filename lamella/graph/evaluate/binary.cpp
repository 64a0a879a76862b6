// Binary elementwise operations.
//
// Note [Integers]
//   All integer operations are defined: sums wrap; x / 0 is all ones and x % 0 is x; the smallest
//   number divided by -1 is itself with remainder 0; shifts by the width or more give 0, or the
//   sign for an arithmetic right shift.
#include <cmath>
#include <complex>
#include <limits>

#include "lamella/graph/evaluate/numbers.h"
#include "lamella/graph/evaluate/rules.h"

namespace lamella::hlo {
namespace {

// The IEEE 754 maximum: NaN if either operand is NaN, and +0 is greater than -0.
double maximum(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) ? a : b;
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}
double minimum(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) ? a : b;
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}

using RealFunction = double (*)(double, double);
template <class F>
constexpr RealFunction function_of(F f) {
  if constexpr (std::is_invocable_v<F, double, double>) {
    return f;
  } else {
    return nullptr;
  }
}
// An opcode whose column `emitted` is Kernel(name) is the function `name` of the standard library.
#define LAMELLA_EMITTED_Kernel(name) \
  function_of([](auto... x) -> decltype(name(x...)) { return name(x...); })
#define LAMELLA_EMITTED_Intrinsic(name) nullptr
#define LAMELLA_EMITTED_Own nullptr
constexpr RealFunction kFunctions[] = {
#define LAMELLA_HLO_OPCODE(name, text, operands, family, takes, shape, rule, work, traffic, code, \
                           weight, complex, emitted, ...)                                         \
  LAMELLA_EMITTED_##emitted,
#include "lamella/graph/hlo/opcode.def"
};
RealFunction real_function(Opcode opcode) {
  switch (opcode) {
    case Opcode::Add:
      return [](double a, double b) { return a + b; };
    case Opcode::Divide:
      return [](double a, double b) { return a / b; };
    case Opcode::Maximum:
      return maximum;
    case Opcode::Minimum:
      return minimum;
    case Opcode::Multiply:
      return [](double a, double b) { return a * b; };
    case Opcode::Subtract:
      return [](double a, double b) { return a - b; };
    default:
      return kFunctions[static_cast<size_t>(opcode)];
  }
}

template <class T>
std::complex<double> widened(complex<T> z) {
  return {z.real(), z.imag()};
}
template <class T>
complex<T> narrowed(std::complex<double> z) {
  return {static_cast<T>(z.real()), static_cast<T>(z.imag())};
}
// The complex quotient, with infinities and zeros as in C99's Annex G.
template <class T>
complex<T> quotient(complex<T> a, complex<T> b) {
  std::complex<T> q = std::complex<T>(a.real(), a.imag()) / std::complex<T>(b.real(), b.imag());
  return {q.real(), q.imag()};
}
// Powers of 0: 0 for a positive real exponent, 1 for the exponent 0, and NaN for all others.
template <class T>
complex<T> power(complex<T> a, complex<T> b) {
  if (a == complex<T>(0)) {
    if (b == complex<T>(0)) return T(1);
    if (b.real() > 0 && b.imag() == 0) return T(0);
    T nan = std::numeric_limits<T>::quiet_NaN();
    return {nan, nan};
  }
  return narrowed<T>(std::pow(widened(a), widened(b)));
}
// -i log((x + iy) / sqrt(x^2 + y^2)), which is atan2(y, x) for real numbers.
template <class T>
complex<T> arc_tangent(complex<T> y, complex<T> x) {
  std::complex<double> i(0, 1), wide_x = widened(x), wide_y = widened(y);
  auto length = std::sqrt(wide_x * wide_x + wide_y * wide_y);
  return narrowed<T>(-i * std::log((wide_x + i * wide_y) / length));
}
template <class T>
using ComplexFunction = complex<T> (*)(complex<T>, complex<T>);
template <class T>
ComplexFunction<T> complex_function(Opcode opcode) {
  switch (opcode) {
    case Opcode::Add:
      return [](complex<T> a, complex<T> b) { return a + b; };
    case Opcode::Atan2:
      return arc_tangent<T>;
    case Opcode::Divide:
      return quotient<T>;
    case Opcode::Multiply:
      return [](complex<T> a, complex<T> b) { return a * b; };
    case Opcode::Power:
      return power<T>;
    case Opcode::Subtract:
      return [](complex<T> a, complex<T> b) { return a - b; };
    default:
      return nullptr;
  }
}

// W is int64_t or uint64_t. Operands are extended to W; storing truncates results to `bits` bits.
template <class W>
W wrapped(uint64_t word) {
  return static_cast<W>(word);
}
template <class W>
W divide(W a, W b, int) {
  if (b == 0) return wrapped<W>(~uint64_t{0});
  if (std::is_signed_v<W> && b == wrapped<W>(~uint64_t{0})) {
    return wrapped<W>(0 - static_cast<uint64_t>(a));
  }
  return a / b;
}
template <class W>
W remainder(W a, W b, int) {
  if (b == 0) return a;
  if (std::is_signed_v<W> && b == wrapped<W>(~uint64_t{0})) return 0;
  return a % b;
}
// Negative powers round to 0 unless a is 1 or -1; as in XLA, 0 to a negative power is 0 as well.
template <class W>
W integer_power(W a, W b, int) {
  if constexpr (std::is_signed_v<W>) {
    if (b < 0) {
      if (a == 1) return 1;
      if (a == -1) return b % 2 == 0 ? 1 : -1;
      return 0;
    }
  }
  uint64_t base = static_cast<uint64_t>(a), result = 1;
  for (auto left = static_cast<uint64_t>(b); left != 0; left >>= 1, base *= base) {
    if (left & 1) result *= base;
  }
  return wrapped<W>(result);
}
template <class W>
W high_product(W a, W b, int bits) {
  using Long = std::conditional_t<std::is_signed_v<W>, __int128, unsigned __int128>;
  return static_cast<W>(static_cast<Long>(a) * static_cast<Long>(b) >> bits);
}
// True if a shift by the amount, taken as unsigned, shifts out all bits.
template <class W>
bool beyond(W amount, int bits) {
  return static_cast<uint64_t>(amount) >= static_cast<uint64_t>(bits);
}
template <class W>
W shift_left(W a, W b, int bits) {
  return beyond(b, bits) ? 0 : wrapped<W>(static_cast<uint64_t>(a) << b);
}
template <class W>
W shift_right_logical(W a, W b, int bits) {
  uint64_t mask = ~uint64_t{0} >> (64 - bits);
  return beyond(b, bits) ? 0 : wrapped<W>((static_cast<uint64_t>(a) & mask) >> b);
}
template <class W>
W shift_right_arithmetic(W a, W b, int bits) {
  auto value = static_cast<int64_t>(static_cast<uint64_t>(a) << (64 - bits));
  return wrapped<W>(static_cast<uint64_t>((value >> (64 - bits)) >> (beyond(b, bits) ? 63 : b)));
}

template <class W>
using IntegerFunction = W (*)(W, W, int bits);
template <class W>
IntegerFunction<W> integer_function(Opcode opcode) {
  switch (opcode) {
    case Opcode::Add:
      return [](W a, W b, int) {
        return wrapped<W>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
      };
    case Opcode::And:
      return [](W a, W b, int) -> W { return a & b; };
    case Opcode::Divide:
      return divide<W>;
    case Opcode::Maximum:
      return [](W a, W b, int) { return a > b ? a : b; };
    case Opcode::Minimum:
      return [](W a, W b, int) { return a < b ? a : b; };
    case Opcode::Mulhi:
      return high_product<W>;
    case Opcode::Multiply:
      return [](W a, W b, int) {
        return wrapped<W>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
      };
    case Opcode::Or:
      return [](W a, W b, int) -> W { return a | b; };
    case Opcode::Power:
      return integer_power<W>;
    case Opcode::Remainder:
      return remainder<W>;
    case Opcode::ShiftLeft:
      return shift_left<W>;
    case Opcode::ShiftRightArithmetic:
      return shift_right_arithmetic<W>;
    case Opcode::ShiftRightLogical:
      return shift_right_logical<W>;
    case Opcode::Subtract:
      return [](W a, W b, int) {
        return wrapped<W>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
      };
    case Opcode::Xor:
      return [](W a, W b, int) -> W { return a ^ b; };
    default:
      return nullptr;
  }
}
[[noreturn]] void wrong_type(const Instruction& i, ElementType type) {
  fail(i, "expected a type that has this operation, got ", element_name(type));
}

template <class Number>
struct Elements {
  const Instruction& i;
  Opcode opcode;
  const void* a;
  const void* b;
  void* to;
  int64_t count;

  template <class F, class... Rest>
  void each(F f, Rest... rest) const {
    if (f == nullptr) wrong_type(i, Number::type);
    each_element(count, [&](int64_t n) {
      store_wide<Number>(to, n, f(load_wide<Number>(a, n), load_wide<Number>(b, n), rest...));
    });
  }
};

void combine(const Instruction& i, ElementType type, const void* a, const void* b, void* to,
             int64_t count) {
  Opcode opcode = i.opcode;
  // Truth values have sums ("or") and products ("and").
  if (type == ElementType::PRED && !takes_type(opcode, type)) wrong_type(i, type);
  visit_numbers(type, [&]<class Number>() {
    Elements<Number> elements{i, opcode, a, b, to, count};
    if constexpr (is_complex_type_v<typename Number::Work>) {
      elements.each(complex_function<typename Number::Work::value_type>(opcode));
    } else if constexpr (std::is_floating_point_v<typename Number::Work>) {
      elements.each(real_function(opcode));
    } else {
      elements.each(integer_function<Wide<Number>>(opcode), element_bits(type));
    }
  });
}

}  // namespace

Value evaluate_binary(Step& step) {
  const Instruction& i = step.instruction;
  const Value &a = step.operands[0], &b = step.operands[1];
  Value result = step.result();
  combine(i, a.shape().element_type(), a.data(), b.data(), result.data(), a.shape().elements());
  return result;
}

// complex(re, im).
Value evaluate_complex(Step& step) {
  const Value &re = step.operands[0], &im = step.operands[1];
  Value result = step.result();
  void* to = result.data();
  visit_bytes(re.shape().element_type(), [&]<class T>() {
    each_element(re.shape().elements(), [&](int64_t n) {
      static_cast<T*>(to)[2 * n] = static_cast<const T*>(re.data())[n];
      static_cast<T*>(to)[2 * n + 1] = static_cast<const T*>(im.data())[n];
    });
  });
  return result;
}

}  // namespace lamella::hlo
