// Scalar: one number of any kind, as operators take it beside tensors.
#pragma once
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include "lamella/abi/abi.h"
#include "lamella/core/error.h"
#include "lamella/core/scalar_type.h"

namespace lamella {

class Scalar;
void append(std::string& out, const Scalar& value);

namespace detail {
template <class T>
concept Number = Arithmetic<T> || is_small_float_v<T> || is_complex_type_v<T>;
// True if a real number is out of range for To. Negative integers wrap into unsigned types,
// infinities and NaN fit floating-point types, and any number fits bool.
template <class To, class From>
constexpr bool overflows_real(From value) {
  using Limits = std::numeric_limits<To>;
  if constexpr (std::is_same_v<To, bool> || std::is_same_v<From, bool>) {
    return false;
  } else if constexpr (std::is_integral_v<To> && std::is_integral_v<From>) {
    if constexpr (std::is_unsigned_v<To>) {
      uint64_t magnitude =
          value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
      return magnitude > static_cast<uint64_t>(Limits::max());
    } else {
      return value < static_cast<From>(Limits::min()) || value > static_cast<From>(Limits::max());
    }
  } else if constexpr (std::is_integral_v<To>) {
    // The bounds are powers of two, which are exact in double; NaN fails both comparisons.
    double upper = 2.0 * static_cast<double>(uint64_t{1} << (Limits::digits - 1));
    double lower = std::is_unsigned_v<To> ? -upper : static_cast<double>(Limits::min()) - 1.0;
    if (sizeof(To) == 8 && std::is_signed_v<To>) return !(value < upper && value >= -upper);
    return !(value < upper && value > lower);
  } else {
    auto wide = static_cast<double>(value);
    if (wide != wide) return !Limits::has_quiet_NaN;
    if constexpr (std::is_same_v<To, double>) return false;
    auto most = static_cast<double>(Limits::max());
    bool infinite =
        wide > std::numeric_limits<double>::max() || wide < std::numeric_limits<double>::lowest();
    if (infinite) return !Limits::has_infinity;
    return wide > most || wide < -most;
  }
}
}  // namespace detail

class Scalar {
 public:
  constexpr Scalar() : Scalar(int64_t{0}) {}
  // Any integer, floating-point, small floating-point or complex number; uint64 beyond int64 is an
  // error.
  template <detail::Number T>
  constexpr Scalar(T value) : value_{} {  // NOLINT: implicit as in PyTorch
    if constexpr (std::is_same_v<T, bool>) {
      value_.as.i = value ? 1 : 0;
      value_.tag = LAMELLA_BOOL;
    } else if constexpr (is_complex_type_v<T>) {
      value_.as.z[0] = static_cast<double>(value.real());
      value_.as.z[1] = static_cast<double>(value.imag());
      value_.tag = LAMELLA_COMPLEX;
    } else if constexpr (std::is_integral_v<T>) {
      if constexpr (std::is_unsigned_v<T> && sizeof(T) == 8) {
        LAMELLA_CHECK(value <= static_cast<T>(std::numeric_limits<int64_t>::max()),
                      "Scalar: expected a value that fits int64, got ", value);
      }
      value_.as.i = static_cast<int64_t>(value);
      value_.tag = LAMELLA_INT;
    } else {
      value_.as.d = static_cast<double>(value);
      value_.tag = LAMELLA_DOUBLE;
    }
  }
  // The C form, as the typed convention passes it.
  constexpr explicit Scalar(const lamella_scalar& value) : value_(value) {}
  constexpr const lamella_scalar& abi() const { return value_; }

  constexpr bool isFloatingPoint() const { return value_.tag == LAMELLA_DOUBLE; }
  constexpr bool isIntegral(bool include_bool) const {
    return value_.tag == LAMELLA_INT || (include_bool && isBoolean());
  }
  constexpr bool isBoolean() const { return value_.tag == LAMELLA_BOOL; }
  constexpr bool isComplex() const { return value_.tag == LAMELLA_COMPLEX; }
  constexpr bool isSymbolic() const { return false; }

  // Long, Double, Bool or ComplexDouble.
  constexpr ScalarType type() const {
    return isIntegral(false)   ? ScalarType::Long
           : isFloatingPoint() ? ScalarType::Double
           : isBoolean()       ? ScalarType::Bool
                               : ScalarType::ComplexDouble;
  }

  // The number as a T. Throws if it does not fit: out of range, or complex with an imaginary part
  // for a real T. A fraction is cut off for an integer T.
  template <class T>
  T to() const {
    if constexpr (is_complex_type_v<T>) {
      using R = typename T::value_type;
      if (isComplex()) {
        return T(real_to<R>(value_.as.z[0]), real_to<R>(value_.as.z[1]));
      }
      return T(isFloatingPoint() ? real_to<R>(value_.as.d) : real_to<R>(value_.as.i));
    } else {
      if (isFloatingPoint()) return real_to<T>(value_.as.d);
      if (isComplex()) {
        if (LAMELLA_UNLIKELY(value_.as.z[1] != 0.0)) throw_no_fit<T>();
        return real_to<T>(value_.as.z[0]);
      }
      return real_to<T>(value_.as.i);
    }
  }
  LAMELLA_LAZY double toDouble() const { return to<double>(); }
  LAMELLA_LAZY float toFloat() const { return to<float>(); }
  LAMELLA_LAZY int64_t toLong() const { return to<int64_t>(); }
  LAMELLA_LAZY int toInt() const { return to<int>(); }
  LAMELLA_LAZY int64_t toSymInt() const { return toLong(); }
  LAMELLA_LAZY uint16_t toUInt16() const { return to<uint16_t>(); }
  LAMELLA_LAZY uint32_t toUInt32() const { return to<uint32_t>(); }
  LAMELLA_LAZY uint64_t toUInt64() const { return to<uint64_t>(); }
  LAMELLA_LAZY bool toBool() const { return to<bool>(); }
  LAMELLA_LAZY Half toHalf() const { return to<Half>(); }
  LAMELLA_LAZY BFloat16 toBFloat16() const { return to<BFloat16>(); }
  LAMELLA_LAZY complex<float> toComplexFloat() const { return to<complex<float>>(); }
  LAMELLA_LAZY complex<double> toComplexDouble() const { return to<complex<double>>(); }

  Scalar operator-() const {
    LAMELLA_CHECK(!isBoolean(), "Scalar: expected a number to negate, got a bool");
    if (isFloatingPoint()) return Scalar(-value_.as.d);
    if (isComplex()) return Scalar(complex<double>(-value_.as.z[0], -value_.as.z[1]));
    return Scalar(static_cast<int64_t>(0 - static_cast<uint64_t>(value_.as.i)));
  }
  Scalar conj() const {
    return isComplex() ? Scalar(complex<double>(value_.as.z[0], -value_.as.z[1])) : *this;
  }

  // Whether the number is the same, whatever its kind; a bool equals only a bool.
  template <class T>
  bool equal(T other) const {
    if constexpr (is_complex_type_v<T>) {
      complex<double> z(static_cast<double>(other.real()), static_cast<double>(other.imag()));
      return !isBoolean() && to<complex<double>>() == z;
    } else if constexpr (std::is_same_v<T, bool>) {
      return isBoolean() && (value_.as.i != 0) == other;
    } else {
      if (isBoolean()) return false;
      if (isComplex()) {
        return value_.as.z[1] == 0.0 && value_.as.z[0] == static_cast<double>(other);
      }
      if (isFloatingPoint()) return value_.as.d == static_cast<double>(other);
      if constexpr (std::is_integral_v<T>) {
        if constexpr (!detail::has_negatives<T>) {
          return value_.as.i >= 0 && static_cast<uint64_t>(value_.as.i) == other;
        } else {
          return value_.as.i == static_cast<int64_t>(other);
        }
      } else {
        return static_cast<double>(value_.as.i) == static_cast<double>(other);
      }
    }
  }

 private:
  template <class T, class From>
  T real_to(From value) const {
    if (LAMELLA_UNLIKELY((detail::overflows_real<T, From>(value)))) throw_no_fit<T>();
    if constexpr (std::is_same_v<T, bool>) {
      return value != From(0);
    } else if constexpr (std::is_unsigned_v<T> && std::is_floating_point_v<From>) {
      // A negative number wraps, which a direct conversion leaves undefined.
      return value < 0 ? static_cast<T>(0 - static_cast<uint64_t>(-value)) : static_cast<T>(value);
    } else if constexpr (detail::is_small_float_v<T>) {
      return T(static_cast<float>(value));
    } else {
      return static_cast<T>(value);
    }
  }
  template <class T>
  [[noreturn]] LAMELLA_COLD void throw_no_fit() const {
    throw Error(str("Scalar: expected a value that fits ",
                    dtype_name(CppTypeToScalarType<T>::value), ", got ", *this));
  }

  lamella_scalar value_;
};

inline void append(std::string& out, const Scalar& value) {
  const lamella_scalar& v = value.abi();
  if (value.isBoolean()) {
    append(out, v.as.i != 0);
  } else if (value.isFloatingPoint()) {
    append(out, v.as.d);
  } else if (value.isComplex()) {
    append(out, '(');
    append(out, v.as.z[0]);
    if (!(v.as.z[1] < 0)) append(out, '+');
    append(out, v.as.z[1]);
    append(out, "j)");
  } else {
    append(out, v.as.i);
  }
}

// The type that a number takes part with in type promotion.
inline constexpr ScalarType scalar_type_of(const Scalar& value) { return value.type(); }

}  // namespace lamella
