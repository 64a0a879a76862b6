// LapackCall: decodes a typed custom call into the arguments of LAPACK routines: stacks of
// column-major matrices and of vectors, option letters, and info numbers.
//
// Note [Stacks]
//   The last two dimensions of a matrix operand are its rows and columns, and all dimensions before
//   them are the batch. Its layout makes each matrix column-major, one after the other. Every other
//   operand and result has the same leading dimensions. Shapes are checked here before LAPACK gets
//   a pointer, because LAPACK would print a message and stop, or write out of bounds.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lamella/core/column_to_spare.h"
#include "lamella/core/error.h"
#include "lamella/graph/custom_call/ffi/abi.h"
#include "lamella/graph/custom_call/lapack/routines.h"
#include "lamella/graph/hlo/element_type.h"

namespace lamella::hlo::lapack {

template <class T>
inline constexpr ElementType element_of = ElementType::Invalid;
template <>
inline constexpr ElementType element_of<Int> = ElementType::S32;
template <>
inline constexpr ElementType element_of<float> = ElementType::F32;
template <>
inline constexpr ElementType element_of<double> = ElementType::F64;
template <>
inline constexpr ElementType element_of<c64> = ElementType::C64;
template <>
inline constexpr ElementType element_of<c128> = ElementType::C128;

template <class T>
struct Matrices {
  T* data;
  int64_t batch;
  Int rows, columns;
  T* at(int64_t i) const { return data + i * rows * columns; }
  // The data pointer is null for an empty batch, because workspace queries are made even then.
  Spacious<T> spacious(int64_t i) const {
    return {i < batch ? at(i) : nullptr, static_cast<size_t>(rows), static_cast<size_t>(columns)};
  }
  int64_t elements() const { return batch * rows * columns; }
  // The leading dimension, which LAPACK requires to be at least 1.
  Int leading() const { return rows > 1 ? rows : 1; }
};
template <class T>
struct Vectors {
  T* data;
  int64_t batch;
  Int size;
  T* at(int64_t i) const { return data + i * size; }
  int64_t elements() const { return batch * size; }
};

// The element type of an operand, which must exist.
ElementType element_type_of(const ffi::CallFrame& frame, size_t operand);

class LapackCall {
 public:
  // `operands` and `results` are the required numbers. The batch dimensions are those of operand 0
  // without its last `inner` dimensions.
  LapackCall(const ffi::CallFrame& frame, int64_t operands, int64_t results, int64_t inner = 2);

  int64_t batch() const { return batch_; }

  template <class T>
  Matrices<const T> matrices(int64_t operand) const {
    DecodedBuffer place = buffer(true, operand, element_of<T>, 2);
    return {static_cast<const T*>(place.data), batch_, place.sizes[0], place.sizes[1]};
  }
  template <class T>
  Vectors<const T> vectors(int64_t operand) const {
    DecodedBuffer place = buffer(true, operand, element_of<T>, 1);
    return {static_cast<const T*>(place.data), batch_, place.sizes[0]};
  }
  // Results of any size.
  template <class T>
  Matrices<T> result_matrices(int64_t result) const {
    DecodedBuffer place = buffer(false, result, element_of<T>, 2);
    return {static_cast<T*>(place.data), batch_, place.sizes[0], place.sizes[1]};
  }
  template <class T>
  Vectors<T> result_vectors(int64_t result) const {
    DecodedBuffer place = buffer(false, result, element_of<T>, 1);
    return {static_cast<T*>(place.data), batch_, place.sizes[0]};
  }
  // Results that must have these sizes.
  template <class T>
  Matrices<T> result_matrices(int64_t result, Int rows, Int columns) const {
    Matrices<T> made = result_matrices<T>(result);
    require_size("result", result, "rows", rows, made.rows);
    require_size("result", result, "columns", columns, made.columns);
    return made;
  }
  template <class T>
  Vectors<T> result_vectors(int64_t result, Int size) const {
    Vectors<T> made = result_vectors<T>(result);
    require_size("result", result, "elements", size, made.size);
    return made;
  }
  // The info result: one number for each matrix.
  Int* info(int64_t result) const {
    return static_cast<Int*>(buffer(false, result, ElementType::S32, 0).data);
  }
  // A result that is initialized with a copy of the operand; both may be the same memory.
  template <class T>
  Matrices<T> taken_matrices(int64_t operand, int64_t result) const {
    Matrices<const T> from = matrices<T>(operand);
    Matrices<T> to = result_matrices<T>(result, from.rows, from.columns);
    copy(from.data, to.data, sizeof(T) * static_cast<size_t>(from.elements()));
    return to;
  }
  template <class T>
  Vectors<T> taken_vectors(int64_t operand, int64_t result) const {
    Vectors<const T> from = vectors<T>(operand);
    Vectors<T> to = result_vectors<T>(result, from.size);
    copy(from.data, to.data, sizeof(T) * static_cast<size_t>(from.elements()));
    return to;
  }

  // An attribute of type ui8, which must be one of the allowed letters.
  char letter(std::string_view name, std::string_view allowed) const;
  bool flag(std::string_view name) const;
  Int integer(std::string_view name) const;

  // Throws an Error such as "expected operand 1 to have 4 rows, got 3".
  static void require_size(const char* what, int64_t number, const char* of, Int expected,
                           Int got) {
    LAMELLA_CHECK(expected == got, "expected ", what, " ", number, " to have ", expected, " ", of,
                  ", got ", got);
  }

 private:
  struct DecodedBuffer {
    void* data;
    Int sizes[2];
  };
  // An operand or result with `inner` dimensions after the batch dimensions.
  DecodedBuffer buffer(bool operand, int64_t number, ElementType type, int64_t inner) const;
  const ffi::Scalar& scalar(std::string_view name, ElementType type) const;
  static void copy(const void* from, void* to, size_t bytes);

  const ffi::CallFrame& frame_;
  std::span<const int64_t> leading_;
  int64_t batch_ = 1;
};

// The iterations for eigenvalues and singular values may not terminate on infinities and NaNs, so
// callers check for them with this function.
template <class T>
bool all_finite(const T* values, size_t count) {
  return std::all_of(values, values + count, [](const T& value) {
    return std::isfinite(std::real(value)) && std::isfinite(std::imag(value));
  });
}
template <class T>
T not_a_number() {
  return T(std::numeric_limits<Real<T>>::quiet_NaN());
}

inline void require_square(Int rows, Int columns) {
  LAMELLA_CHECK(rows == columns, "expected operand 0 to be square matrices, got ", rows, " x ",
                columns);
}
// Throws if a workspace has more elements than LAPACK's 32-bit integers can count.
inline void require_countable(double elements) {
  LAMELLA_CHECK(elements <= std::numeric_limits<Int>::max(),
                "expected smaller matrices, got matrices whose work space has more elements than "
                "LAPACK counts in 32 bits");
}
// The workspace size from LAPACK's answer to a query.
template <class T>
Int wanted(const T& answer) {
  // A float32 answer may have been rounded down.
  auto size = std::real(answer);
  double whole = size + size * std::numeric_limits<decltype(size)>::epsilon();
  require_countable(whole);
  return whole > 1 ? static_cast<Int>(whole) : 1;
}

// The workspace of a routine. The constructor calls query(work, count) with count -1 to get the
// size; the routine is then called with data() and that size for each matrix.
template <class T>
class Work {
 public:
  // `room` is the number of extra elements at the end: see Note [A column to spare].
  template <class Query>
  explicit Work(Query&& query, Int room = 0) {
    T answer{};
    Int count = -1;
    query(&answer, &count);
    count_ = wanted(answer);
    space_.resize(static_cast<size_t>(count_) + static_cast<size_t>(room) + 1);
  }
  T* data() { return space_.data(); }
  const Int* count() const { return &count_; }

 private:
  std::vector<T> space_;
  Int count_ = 0;
};

}  // namespace lamella::hlo::lapack
