// complex<T>: two numbers side by side, laid out as std::complex<T>, without its header.
// It has arithmetic only; elementary functions are in the kernels.
#pragma once
#include <type_traits>

#include "lamella/core/half.h"

namespace lamella {

template <class T>
struct complex {
  using value_type = T;
  T real_ = T(0);
  T imag_ = T(0);

  complex() = default;
  constexpr complex(const T& re, const T& im = T(0)) : real_(re), imag_(im) {}  // NOLINT
  template <class U>
    requires(!__is_same(U, T))
  constexpr explicit(sizeof(U) > sizeof(T)) complex(const complex<U>& other)
      : real_(static_cast<T>(other.real_)), imag_(static_cast<T>(other.imag_)) {}

  constexpr T real() const { return real_; }
  constexpr T imag() const { return imag_; }
  constexpr void real(T value) { real_ = value; }
  constexpr void imag(T value) { imag_ = value; }
  constexpr explicit operator bool() const { return real_ != T(0) || imag_ != T(0); }

  constexpr complex& operator=(T re) {
    real_ = re;
    imag_ = T(0);
    return *this;
  }
  constexpr complex& operator+=(const complex& b) { return *this = *this + b; }
  constexpr complex& operator-=(const complex& b) { return *this = *this - b; }
  constexpr complex& operator*=(const complex& b) { return *this = *this * b; }
  constexpr complex& operator/=(const complex& b) { return *this = *this / b; }

  constexpr complex operator+() const { return *this; }
  constexpr complex operator-() const { return {-real_, -imag_}; }

  friend constexpr complex operator+(const complex& a, const complex& b) {
    return {static_cast<T>(a.real_ + b.real_), static_cast<T>(a.imag_ + b.imag_)};
  }
  friend constexpr complex operator-(const complex& a, const complex& b) {
    return {static_cast<T>(a.real_ - b.real_), static_cast<T>(a.imag_ - b.imag_)};
  }
  friend constexpr complex operator*(const complex& a, const complex& b) {
    return {static_cast<T>(a.real_ * b.real_ - a.imag_ * b.imag_),
            static_cast<T>(a.real_ * b.imag_ + a.imag_ * b.real_)};
  }
  // Scaled by the larger part of the divisor, so that |b|^2 neither overflows nor vanishes
  // (R. L. Smith, Algorithm 116: Complex division, CACM 5 (1962) 435).
  friend constexpr complex operator/(const complex& a, const complex& b) {
    T re = b.real_ < T(0) ? static_cast<T>(-b.real_) : b.real_;
    T im = b.imag_ < T(0) ? static_cast<T>(-b.imag_) : b.imag_;
    if (re >= im) {
      if (re == T(0) && im == T(0)) {  // of either sign
        const auto zero = static_cast<T>(re * re);
        return {static_cast<T>(a.real_ / zero), static_cast<T>(a.imag_ / zero)};
      }
      T ratio = static_cast<T>(b.imag_ / b.real_);
      T scale = static_cast<T>(T(1) / (b.real_ + b.imag_ * ratio));
      return {static_cast<T>((a.real_ + a.imag_ * ratio) * scale),
              static_cast<T>((a.imag_ - a.real_ * ratio) * scale)};
    }
    T ratio = static_cast<T>(b.real_ / b.imag_);
    T scale = static_cast<T>(T(1) / (b.real_ * ratio + b.imag_));
    return {static_cast<T>((a.real_ * ratio + a.imag_) * scale),
            static_cast<T>((a.imag_ * ratio - a.real_) * scale)};
  }
  friend constexpr bool operator==(const complex& a, const complex& b) {
    return a.real_ == b.real_ && a.imag_ == b.imag_;
  }
};

template <class T>
constexpr T real(const complex<T>& z) {
  return z.real_;
}
template <class T>
constexpr T imag(const complex<T>& z) {
  return z.imag_;
}
template <class T>
constexpr complex<T> conj(const complex<T>& z) {
  return {z.real_, static_cast<T>(-z.imag_)};
}
// The squared magnitude.
template <class T>
constexpr T norm(const complex<T>& z) {
  return static_cast<T>(z.real_ * z.real_ + z.imag_ * z.imag_);
}
inline float abs(const complex<float>& z) { return __builtin_hypotf(z.real_, z.imag_); }
inline double abs(const complex<double>& z) { return __builtin_hypot(z.real_, z.imag_); }

template <class T>
inline constexpr bool is_complex_type_v = false;
template <class T>
inline constexpr bool is_complex_type_v<complex<T>> = true;

static_assert(sizeof(complex<float>) == 8 && sizeof(complex<double>) == 16);

}  // namespace lamella
