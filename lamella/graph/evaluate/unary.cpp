// Unary elementwise operations.
//
// Note [Functions of a double]
//   Transcendental functions are computed in double and rounded to the element type, so they are
//   almost always correctly rounded for F32 and smaller types. Exact operations (abs, floor, ...)
//   stay exact. Functions of complex numbers are C99's, with its branch cuts.
#include <array>
#include <bit>
#include <cmath>
#include <complex>

#include "lamella/graph/evaluate/numbers.h"
#include "lamella/graph/evaluate/rules.h"

namespace lamella::hlo {
namespace {

using Complex = std::complex<double>;

double sign_of(double x) { return std::isnan(x) || x == 0 ? x : std::copysign(1.0, x); }
// Avoids the overflow of exp(-x).
double sigmoid(double x) {
  double e = std::exp(-std::fabs(x));
  return (x < 0 ? e : 1) / (1 + e);
}
Complex sigmoid(Complex z) { return 1.0 / (1.0 + std::exp(-z)); }
double cube_root(double x) { return static_cast<double>(std::cbrt(static_cast<long double>(x))); }

Complex complex_sign(Complex z) {
  double magnitude = std::abs(z);
  return magnitude == 0 ? z : z / magnitude;
}
using std::expm1, std::log1p;
// exp(x)cos(y) - 1 is inaccurate near 0; (exp(x) - 1)cos(y) - 2 sin(y/2)^2 is not.
Complex expm1(Complex z) {
  double x = z.real(), y = z.imag();
  if (y == 0) return {std::expm1(x), y};
  double half = std::sin(y / 2);
  return {std::expm1(x) * std::cos(y) - 2 * half * half, std::exp(x) * std::sin(y)};
}
// Uses |1 + z|^2 = 1 + x(2 + x) + y^2, which is accurate for small z.
Complex log1p(Complex z) {
  double x = z.real(), y = z.imag();
  if (!(std::fabs(x) < 0.5 && std::fabs(y) < 0.5)) return std::log(Complex(1 + x, y));
  return {0.5 * std::log1p(x * (2 + x) + y * y), std::atan2(y, 1 + x)};
}
Complex complex_cbrt(Complex z) {
  if (z == Complex(0)) return z;
  return std::polar(std::cbrt(std::abs(z)), std::arg(z) / 3);
}

// The functions of an opcode for each kind of number; null if the kind has no such operation.
struct Functions {
  double (*real)(double) = nullptr;
  Complex (*complex)(Complex) = nullptr;
  double (*part)(Complex) = nullptr;  // of complex numbers with a real result
  // Integers of `bits` bits, extended to 64 bits. Storing truncates results to `bits`.
  uint64_t (*word)(uint64_t, int bits) = nullptr;
  uint64_t (*signed_word)(uint64_t, int bits) = nullptr;
};
// The kinds of numbers that a function takes.
template <class F>
constexpr Functions inexact(F f) {
  Functions all;
  if constexpr (std::is_invocable_v<F, double>) all.real = f;
  if constexpr (std::is_invocable_v<F, Complex>) all.complex = f;
  return all;
}

// An opcode whose column `emitted` is Kernel(name) is the function `name` of the standard library,
// or of this file.
#define LAMELLA_EMITTED_Kernel(name) inexact([](auto x) -> decltype(name(x)) { return name(x); })
#define LAMELLA_EMITTED_Intrinsic(name) Functions()
#define LAMELLA_EMITTED_Own Functions()
constexpr auto kFunctions = [] {
  std::array<Functions, kOpcodeCount> all = {
#define LAMELLA_HLO_OPCODE(name, text, operands, family, takes, shape, rule, work, traffic, code, \
                           weight, complex, emitted, ...)                                         \
  LAMELLA_EMITTED_##emitted,
#include "lamella/graph/hlo/opcode.def"
  };
  auto of = [&](Opcode opcode) -> Functions& { return all[static_cast<size_t>(opcode)]; };
  auto same = [](uint64_t x, int) { return x; };
  of(Opcode::Cbrt) = {.real = cube_root, .complex = complex_cbrt};
  of(Opcode::Rsqrt) = inexact([](auto x) { return 1.0 / std::sqrt(x); });
  of(Opcode::Sqrt) = inexact([](auto x) { return std::sqrt(x); });

  of(Opcode::Ceil) = {.real = [](double x) { return std::ceil(x); }};
  of(Opcode::Floor) = {.real = [](double x) { return std::floor(x); }};
  of(Opcode::RoundNearestAfz) = {.real = [](double x) { return std::round(x); }};
  of(Opcode::RoundNearestEven) = {.real = [](double x) { return std::nearbyint(x); }};

  auto negated = [](uint64_t x, int) { return 0 - x; };
  of(Opcode::Negate) = {.real = [](double x) { return -x; },
                        .complex = [](Complex z) { return -z; },
                        .word = negated,
                        .signed_word = negated};
  of(Opcode::Abs) = {
      .real = [](double x) { return std::fabs(x); },
      .part = [](Complex z) { return std::abs(z); },
      .word = same,
      .signed_word = [](uint64_t x, int) { return static_cast<int64_t>(x) < 0 ? 0 - x : x; }};
  of(Opcode::Sign) = {.real = sign_of,
                      .complex = complex_sign,
                      .word = [](uint64_t x, int) { return static_cast<uint64_t>(x != 0); },
                      .signed_word =
                          [](uint64_t x, int) {
                            auto value = static_cast<int64_t>(x);
                            return static_cast<uint64_t>((value > 0) - (value < 0));
                          }};
  of(Opcode::Real) = {.real = [](double x) { return x; },
                      .part = [](Complex z) { return z.real(); },
                      .word = same,
                      .signed_word = same};
  auto zero = [](uint64_t, int) { return uint64_t{0}; };
  of(Opcode::Imag) = {.real = [](double) { return 0.0; },
                      .part = [](Complex z) { return z.imag(); },
                      .word = zero,
                      .signed_word = zero};

  auto leading_zeros = [](uint64_t x, int bits) {
    uint64_t top = x << (64 - bits);
    return static_cast<uint64_t>(top == 0 ? bits : std::countl_zero(top));
  };
  of(Opcode::Clz) = {.word = leading_zeros, .signed_word = leading_zeros};
  auto inverted = [](uint64_t x, int) { return ~x; };
  of(Opcode::Not) = {.word = inverted, .signed_word = inverted};
  auto ones = [](uint64_t x, int bits) {
    return static_cast<uint64_t>(std::popcount(x << (64 - bits)));
  };
  of(Opcode::PopulationCount) = {.word = ones, .signed_word = ones};
  return all;
}();

[[noreturn]] void wrong_type(const Instruction& i, ElementType type) {
  fail(i, "expected a type that has this operation, got ", element_name(type));
}

template <class Number>
void real_elements(const Instruction& i, const void* from, void* to, int64_t count) {
  if (i.opcode == Opcode::IsFinite) {
    each_element(count, [&](int64_t n) {
      static_cast<bool*>(to)[n] = std::isfinite(Number::load(from, n));
    });
    return;
  }
  auto f = kFunctions[static_cast<size_t>(i.opcode)].real;
  if (f == nullptr) wrong_type(i, Number::type);
  each_element(count, [&](int64_t n) { store_wide<Number>(to, n, f(load_wide<Number>(from, n))); });
}
template <class Number>
void complex_elements(const Instruction& i, const void* from, void* to, int64_t count) {
  using Part = typename Number::Work::value_type;
  auto load = [&](int64_t n) {
    auto z = Number::load(from, n);
    return Complex(z.real(), z.imag());
  };
  const Functions& functions = kFunctions[static_cast<size_t>(i.opcode)];
  if (auto f = functions.part) {
    each_element(count,
                 [&](int64_t n) { static_cast<Part*>(to)[n] = static_cast<Part>(f(load(n))); });
    return;
  }
  auto f = functions.complex;
  if (f == nullptr) wrong_type(i, Number::type);
  each_element(count, [&](int64_t n) {
    Complex z = f(load(n));
    Number::store(to, n, {static_cast<Part>(z.real()), static_cast<Part>(z.imag())});
  });
}
template <class Number>
void integer_elements(const Instruction& i, const void* from, void* to, int64_t count) {
  constexpr bool is_signed = std::is_signed_v<typename Number::Work>;
  const Functions& functions = kFunctions[static_cast<size_t>(i.opcode)];
  auto f = is_signed ? functions.signed_word : functions.word;
  if (f == nullptr) wrong_type(i, Number::type);
  int bits = element_bits(Number::type);
  each_element(count, [&](int64_t n) {
    uint64_t word = f(static_cast<uint64_t>(load_wide<Number>(from, n)), bits);
    store_wide<Number>(to, n, static_cast<Wide<Number>>(word));
  });
}

}  // namespace

Value evaluate_unary(Step& step) {
  const Instruction& i = step.instruction;
  const Value& operand = step.operands[0];
  ElementType type = operand.shape().element_type();
  int64_t count = operand.shape().elements();
  Value result = step.result();
  const void* from = operand.data();
  void* to = result.data();
  if (type == ElementType::PRED) {
    if (i.opcode != Opcode::Not) wrong_type(i, type);
    each_element(count, [&](int64_t n) {
      static_cast<bool*>(to)[n] = static_cast<const uint8_t*>(from)[n] == 0;
    });
  } else if (is_integral(type)) {
    visit_integers(type, [&]<class Number>() { integer_elements<Number>(i, from, to, count); });
  } else if (is_complex(type)) {
    visit_complex(type, [&]<class Number>() { complex_elements<Number>(i, from, to, count); });
  } else {
    visit_floats(type, [&]<class Number>() { real_elements<Number>(i, from, to, count); });
  }
  return result;
}

}  // namespace lamella::hlo
