// Checked arithmetic on sizes, strides, offsets and counts that come from the caller: a result
// outside int64 is an error of the operator and never wraps. For products of sizes use
// checked_numel() in tensor_impl.h.
#pragma once
#include <cstdint>

#include "lamella/core/macros.h"

namespace lamella {

namespace detail {
// `op: expected sizes that fit int64, got a + b`.
[[noreturn]] LAMELLA_COLD void throw_size_overflow(const char* op, int64_t a, char sign, int64_t b);
}  // namespace detail

// An intermediate value of a size computation. `op` begins the message of an overflow and must
// outlive the object. Signs are not checked; the operator rejects negative numbers itself.
class CheckedSize {
 public:
  CheckedSize(int64_t value, const char* op) : value_(value), op_(op) {}
  int64_t value() const { return value_; }

  CheckedSize& operator+=(int64_t other) {
    int64_t before = value_;
    if (LAMELLA_UNLIKELY(__builtin_add_overflow(value_, other, &value_))) {
      detail::throw_size_overflow(op_, before, '+', other);
    }
    return *this;
  }
  CheckedSize& operator-=(int64_t other) {
    int64_t before = value_;
    if (LAMELLA_UNLIKELY(__builtin_sub_overflow(value_, other, &value_))) {
      detail::throw_size_overflow(op_, before, '-', other);
    }
    return *this;
  }
  CheckedSize& operator*=(int64_t other) {
    int64_t before = value_;
    if (LAMELLA_UNLIKELY(__builtin_mul_overflow(value_, other, &value_))) {
      detail::throw_size_overflow(op_, before, '*', other);
    }
    return *this;
  }
  friend CheckedSize operator+(CheckedSize a, int64_t b) { return a += b; }
  friend CheckedSize operator-(CheckedSize a, int64_t b) { return a -= b; }
  friend CheckedSize operator*(CheckedSize a, int64_t b) { return a *= b; }
  friend CheckedSize operator+(CheckedSize a, CheckedSize b) { return a += b.value_; }
  friend CheckedSize operator-(CheckedSize a, CheckedSize b) { return a -= b.value_; }
  friend CheckedSize operator*(CheckedSize a, CheckedSize b) { return a *= b.value_; }

 private:
  int64_t value_;
  const char* op_;
};

}  // namespace lamella
