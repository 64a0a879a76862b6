// Operations on each element of one array.
//
// Note [Functions of a double]
//   Transcendental functions are taken in double precision and rounded to the element type, so that
//   those of F32 and smaller are as good as correctly rounded; exact operations (abs, floor, ...)
//   lose nothing on the way. Those of complex numbers are C99's, with its branch cuts.
#include <bit>
#include <cmath>
#include <complex>

#include "lamella/graph/evaluate/numbers.h"
#include "lamella/graph/evaluate/rules.h"

namespace lamella::hlo {
namespace {

using Complex = std::complex<double>;

double sign_of(double x) { return std::isnan(x) || x == 0 ? x : std::copysign(1.0, x); }
// Without the overflow of exp(-x).
double logistic(double x) {
  double e = std::exp(-std::fabs(x));
  return (x < 0 ? e : 1) / (1 + e);
}
double cube_root(double x) { return static_cast<double>(std::cbrt(static_cast<long double>(x))); }

using RealFunction = double (*)(double);
RealFunction real_function(Opcode opcode) {
  switch (opcode) {
    case Opcode::Abs:
      return [](double x) { return std::fabs(x); };
    case Opcode::Acos:
      return [](double x) { return std::acos(x); };
    case Opcode::Acosh:
      return [](double x) { return std::acosh(x); };
    case Opcode::Asin:
      return [](double x) { return std::asin(x); };
    case Opcode::Asinh:
      return [](double x) { return std::asinh(x); };
    case Opcode::Atan:
      return [](double x) { return std::atan(x); };
    case Opcode::Atanh:
      return [](double x) { return std::atanh(x); };
    case Opcode::Cbrt:
      return cube_root;
    case Opcode::Ceil:
      return [](double x) { return std::ceil(x); };
    case Opcode::Cos:
      return [](double x) { return std::cos(x); };
    case Opcode::Cosh:
      return [](double x) { return std::cosh(x); };
    case Opcode::Erf:
      return [](double x) { return std::erf(x); };
    case Opcode::Exp:
      return [](double x) { return std::exp(x); };
    case Opcode::Expm1:
      return [](double x) { return std::expm1(x); };
    case Opcode::Floor:
      return [](double x) { return std::floor(x); };
    case Opcode::Imag:
      return [](double) { return 0.0; };
    case Opcode::Log:
      return [](double x) { return std::log(x); };
    case Opcode::Log1p:
      return [](double x) { return std::log1p(x); };
    case Opcode::Logistic:
      return logistic;
    case Opcode::Negate:
      return [](double x) { return -x; };
    case Opcode::Real:
      return [](double x) { return x; };
    case Opcode::RoundNearestAfz:
      return [](double x) { return std::round(x); };
    case Opcode::RoundNearestEven:
      return [](double x) { return std::nearbyint(x); };
    case Opcode::Rsqrt:
      return [](double x) { return 1 / std::sqrt(x); };
    case Opcode::Sign:
      return sign_of;
    case Opcode::Sin:
      return [](double x) { return std::sin(x); };
    case Opcode::Sinh:
      return [](double x) { return std::sinh(x); };
    case Opcode::Sqrt:
      return [](double x) { return std::sqrt(x); };
    case Opcode::Tan:
      return [](double x) { return std::tan(x); };
    case Opcode::Tanh:
      return [](double x) { return std::tanh(x); };
    default:
      return nullptr;
  }
}

Complex complex_sign(Complex z) {
  double magnitude = std::abs(z);
  return magnitude == 0 ? z : z / magnitude;
}
// exp(x)cos(y) - 1 loses digits near 0; (exp(x) - 1)cos(y) - 2 sin(y/2)^2 does not.
Complex complex_expm1(Complex z) {
  double x = z.real(), y = z.imag();
  if (y == 0) return {std::expm1(x), y};
  double half = std::sin(y / 2);
  return {std::expm1(x) * std::cos(y) - 2 * half * half, std::exp(x) * std::sin(y)};
}
// |1 + z|^2 = 1 + x(2 + x) + y^2, which keeps the digits of a small z.
Complex complex_log1p(Complex z) {
  double x = z.real(), y = z.imag();
  if (!(std::fabs(x) < 0.5 && std::fabs(y) < 0.5)) return std::log(Complex(1 + x, y));
  return {0.5 * std::log1p(x * (2 + x) + y * y), std::atan2(y, 1 + x)};
}
Complex complex_cbrt(Complex z) {
  if (z == Complex(0)) return z;
  return std::polar(std::cbrt(std::abs(z)), std::arg(z) / 3);
}

using ComplexFunction = Complex (*)(Complex);
ComplexFunction complex_function(Opcode opcode) {
  switch (opcode) {
    case Opcode::Acos:
      return [](Complex z) { return std::acos(z); };
    case Opcode::Acosh:
      return [](Complex z) { return std::acosh(z); };
    case Opcode::Asin:
      return [](Complex z) { return std::asin(z); };
    case Opcode::Asinh:
      return [](Complex z) { return std::asinh(z); };
    case Opcode::Atan:
      return [](Complex z) { return std::atan(z); };
    case Opcode::Atanh:
      return [](Complex z) { return std::atanh(z); };
    case Opcode::Cbrt:
      return complex_cbrt;
    case Opcode::Cos:
      return [](Complex z) { return std::cos(z); };
    case Opcode::Cosh:
      return [](Complex z) { return std::cosh(z); };
    case Opcode::Exp:
      return [](Complex z) { return std::exp(z); };
    case Opcode::Expm1:
      return complex_expm1;
    case Opcode::Log:
      return [](Complex z) { return std::log(z); };
    case Opcode::Log1p:
      return complex_log1p;
    case Opcode::Logistic:
      return [](Complex z) { return 1.0 / (1.0 + std::exp(-z)); };
    case Opcode::Negate:
      return [](Complex z) { return -z; };
    case Opcode::Rsqrt:
      return [](Complex z) { return 1.0 / std::sqrt(z); };
    case Opcode::Sign:
      return complex_sign;
    case Opcode::Sin:
      return [](Complex z) { return std::sin(z); };
    case Opcode::Sinh:
      return [](Complex z) { return std::sinh(z); };
    case Opcode::Sqrt:
      return [](Complex z) { return std::sqrt(z); };
    case Opcode::Tan:
      return [](Complex z) { return std::tan(z); };
    case Opcode::Tanh:
      return [](Complex z) { return std::tanh(z); };
    default:
      return nullptr;
  }
}
// What gives a part of a complex number.
using PartFunction = double (*)(Complex);
PartFunction part_function(Opcode opcode) {
  switch (opcode) {
    case Opcode::Abs:
      return [](Complex z) { return std::abs(z); };
    case Opcode::Imag:
      return [](Complex z) { return z.imag(); };
    case Opcode::Real:
      return [](Complex z) { return z.real(); };
    default:
      return nullptr;
  }
}

// A function of the low `bits` of a word. Results are cut to them when stored.
using WordFunction = uint64_t (*)(uint64_t, int bits);
WordFunction word_function(Opcode opcode, bool is_signed) {
  switch (opcode) {
    case Opcode::Abs:
      if (!is_signed) return [](uint64_t x, int) { return x; };
      return [](uint64_t x, int) { return static_cast<int64_t>(x) < 0 ? 0 - x : x; };
    case Opcode::Clz:
      return [](uint64_t x, int bits) {
        uint64_t top = x << (64 - bits);
        return static_cast<uint64_t>(top == 0 ? bits : std::countl_zero(top));
      };
    case Opcode::Negate:
      return [](uint64_t x, int) { return 0 - x; };
    case Opcode::Not:
      return [](uint64_t x, int) { return ~x; };
    case Opcode::PopulationCount:
      return [](uint64_t x, int bits) {
        return static_cast<uint64_t>(std::popcount(x << (64 - bits)));
      };
    case Opcode::Sign:
      if (!is_signed) return [](uint64_t x, int) { return static_cast<uint64_t>(x != 0); };
      return [](uint64_t x, int) {
        auto value = static_cast<int64_t>(x);
        return static_cast<uint64_t>((value > 0) - (value < 0));
      };
    case Opcode::Real:
      return [](uint64_t x, int) { return x; };
    case Opcode::Imag:
      return [](uint64_t, int) { return uint64_t{0}; };
    default:
      return nullptr;
  }
}

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
  RealFunction f = real_function(i.opcode);
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
  if (PartFunction f = part_function(i.opcode)) {
    each_element(count,
                 [&](int64_t n) { static_cast<Part*>(to)[n] = static_cast<Part>(f(load(n))); });
    return;
  }
  ComplexFunction f = complex_function(i.opcode);
  if (f == nullptr) wrong_type(i, Number::type);
  each_element(count, [&](int64_t n) {
    Complex z = f(load(n));
    Number::store(to, n, {static_cast<Part>(z.real()), static_cast<Part>(z.imag())});
  });
}
template <class Number>
void integer_elements(const Instruction& i, const void* from, void* to, int64_t count) {
  constexpr bool is_signed = std::is_signed_v<typename Number::Work>;
  WordFunction f = word_function(i.opcode, is_signed);
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
