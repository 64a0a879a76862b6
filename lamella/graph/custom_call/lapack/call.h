// LapackCall: one typed custom call as linear algebra sees it: stacks of column-major matrices and
// of vectors, letters that choose, info numbers.
//
// Note [Stacks]
//   The last two dimensions of a matrix operand are its rows and columns, all before them count
//   matrices; its layout says that each matrix lies column by column, one behind the other. Every
//   other operand and result has the same leading dimensions. Shapes are checked here before LAPACK
//   sees a pointer: it would print and stop, or write past the end.
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
  // None where the batch is empty, as routines are asked for their work space even then.
  Spacious<T> spacious(int64_t i) const {
    return {i < batch ? at(i) : nullptr, static_cast<size_t>(rows), static_cast<size_t>(columns)};
  }
  int64_t elements() const { return batch * rows * columns; }
  // LAPACK wants one of at least 1.
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

// The element type of an operand that is known to be there.
ElementType element_type_of(const ffi::CallFrame& frame, size_t operand);

class LapackCall {
 public:
  // `operands` and `results`: how many there must be. The leading dimensions are those of operand
  // 0, whose last `inner` ones are its own.
  LapackCall(const ffi::CallFrame& frame, int64_t operands, int64_t results, int64_t inner = 2);

  int64_t batch() const { return batch_; }

  template <class T>
  Matrices<const T> matrices(int64_t operand) const {
    Place place = buffer(true, operand, element_of<T>, 2);
    return {static_cast<const T*>(place.data), batch_, place.sizes[0], place.sizes[1]};
  }
  template <class T>
  Vectors<const T> vectors(int64_t operand) const {
    Place place = buffer(true, operand, element_of<T>, 1);
    return {static_cast<const T*>(place.data), batch_, place.sizes[0]};
  }
  // Results, of any size (see require).
  template <class T>
  Matrices<T> result_matrices(int64_t result) const {
    Place place = buffer(false, result, element_of<T>, 2);
    return {static_cast<T*>(place.data), batch_, place.sizes[0], place.sizes[1]};
  }
  template <class T>
  Vectors<T> result_vectors(int64_t result) const {
    Place place = buffer(false, result, element_of<T>, 1);
    return {static_cast<T*>(place.data), batch_, place.sizes[0]};
  }
  // Results of these sizes.
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
  // One number for each matrix.
  Int* info(int64_t result) const {
    return static_cast<Int*>(buffer(false, result, ElementType::S32, 0).data);
  }
  // The result that begins as a copy of the operand; they may be the same memory.
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

  // An attribute of type ui8 that is one of these letters.
  char letter(std::string_view name, std::string_view allowed) const;
  bool flag(std::string_view name) const;
  Int integer(std::string_view name) const;

  // Throws: expected operand 1 to have 4 rows, got 3.
  static void require_size(const char* what, int64_t number, const char* of, Int expected,
                           Int got) {
    LAMELLA_CHECK(expected == got, "expected ", what, " ", number, " to have ", expected, " ", of,
                  ", got ", got);
  }

 private:
  struct Place {
    void* data;
    Int sizes[2];
  };
  // Operand or result whose dimensions after the leading ones are `inner`.
  Place buffer(bool operand, int64_t number, ElementType type, int64_t inner) const;
  const ffi::Scalar& scalar(std::string_view name, ElementType type) const;
  static void copy(const void* from, void* to, size_t bytes);

  const ffi::CallFrame& frame_;
  std::span<const int64_t> leading_;
  int64_t batch_ = 1;
};

// The iterations for eigenvalues and singular values need not end on infinities and NaNs.
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
// Throws where work space has more elements than LAPACK, which adds them up in 32 bits, counts.
inline void require_countable(double elements) {
  LAMELLA_CHECK(elements <= std::numeric_limits<Int>::max(),
                "expected smaller matrices, got some that need more work space than LAPACK counts "
                "in 32 bits");
}
// LAPACK's answer to a query of work space.
template <class T>
Int wanted(const T& answer) {
  // Answers of float32 may have been rounded down.
  auto size = std::real(answer);
  double whole = size + size * std::numeric_limits<decltype(size)>::epsilon();
  require_countable(whole);
  return whole > 1 ? static_cast<Int>(whole) : 1;
}

// Work space that a routine asks for itself: call(work, count) is made once with count -1, then
// with what it wanted, for each matrix.
template <class T>
class Work {
 public:
  // `room`: elements behind those asked for, for Note [A column to spare].
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
