// Literal: an HLO value in memory. Arrays are stored row-major, whatever layout their shape has;
// elements narrower than a byte take one byte each.
#pragma once
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "lamella/core/complex.h"
#include "lamella/core/error.h"
#include "lamella/core/half.h"
#include "lamella/graph/hlo/native_type.h"
#include "lamella/graph/hlo/shape.h"

namespace lamella::hlo {

class Scanner;
template <class T>
class StatusOr;

class Literal {
 public:
  Literal() = default;
  // Zeros.
  explicit Literal(Shape shape);
  static Literal tuple(std::vector<Literal> elements);
  // A scalar of the element type nearest to the number.
  static Literal scalar(ElementType type, double value);

  const Shape& shape() const { return shape_; }
  void* data() {
    rest_is_zero_ = false;
    return data_.get();
  }
  const void* data() const { return data_.get(); }
  size_t bytes() const { return bytes_; }
  template <class T>
  std::span<T> values() {
    rest_is_zero_ = false;
    return {reinterpret_cast<T*>(data_.get()), bytes_ / sizeof(T)};
  }
  template <class T>
  std::span<const T> values() const {
    return {reinterpret_cast<const T*>(data_.get()), bytes_ / sizeof(T)};
  }
  const std::vector<Literal>& elements() const { return elements_; }
  std::vector<Literal>& elements() { return elements_; }
  Literal clone() const;

  // Access to elements by C++ type and index, under XLA's names. These throw if T is not the
  // element type or the index is out of range.
  template <class T>
  std::span<const T> data() const {
    require_type(NativeToPrimitiveType<T>());
    return values<T>();
  }
  template <class T>
  std::span<T> data() {
    require_type(NativeToPrimitiveType<T>());
    return values<T>();
  }
  template <class T>
  T Get(std::span<const int64_t> index) const {
    return data<T>()[place(index)];
  }
  template <class T>
  T Get(std::initializer_list<int64_t> index) const {
    return Get<T>(std::span<const int64_t>(index.begin(), index.size()));
  }
  template <class T>
  void Set(std::span<const int64_t> index, T value) {
    data<T>()[place(index)] = value;
  }
  template <class T>
  void Set(std::initializer_list<int64_t> index, T value) {
    Set<T>(std::span<const int64_t>(index.begin(), index.size()), value);
  }
  template <class T>
  T GetFirstElement() const {
    LAMELLA_CHECK(!data<T>().empty(), "Literal: expected an element, got ",
                  shape_.to_string(false));
    return data<T>()[0];
  }
  int64_t element_count() const { return shape_.elements(); }
  int64_t size_bytes() const { return static_cast<int64_t>(bytes_); }
  const void* untyped_data() const { return data_.get(); }
  void* untyped_data() { return data(); }
  Literal Clone() const { return clone(); }
  // A copy whose shape, or that of the part at the index, has the layout. Elements stay row-major.
  Literal Relayout(const Shape& shape_with_layout) const;
  Literal Relayout(const std::vector<int64_t>& minor_to_major,
                   const std::vector<int64_t>& index = {}) const;
  // A copy with values of another type, as ConvertElementType gives them.
  StatusOr<Literal> Convert(ElementType type) const;
  // Calls visit(index, value) for each element in row-major order.
  template <class T, class F>
  void EachCell(F&& visit) const {
    std::span<const T> all = data<T>();
    size_t n = 0;
    for_each_index(shape_.dimensions(), [&](auto index) { visit(index, all[n++]); });
  }
  // Sets each element to make(index).
  template <class T, class F>
  void Populate(F&& make) {
    std::span<T> all = data<T>();
    size_t n = 0;
    for_each_index(shape_.dimensions(), [&](auto index) { all[n++] = make(index); });
  }
  // Moves the elements out of the tuple, which is empty afterwards.
  std::vector<Literal> DecomposeTuple();
  // "f32[2] {1, 2}"; tuples element by element.
  std::string ToString() const;

  // One element by its row-major index, as the widest type of its kind.
  double real_at(int64_t i) const;
  int64_t integer_at(int64_t i) const;
  complex<double> complex_at(int64_t i) const;
  // Sets one element: real numbers are rounded, integers truncated to the type's bits.
  void set_real(int64_t i, double value);
  void set_integer(int64_t i, int64_t value);
  void set_complex(int64_t i, complex<double> value);

  // The values as XLA's text: "{ { 1, 2 }, { 3, 4 } }". Numbers have enough digits to be read back
  // exactly.
  std::string to_string() const;
  void append_to(std::string* text) const;
  // Reads the text of a literal of this shape.
  static Literal scan(Scanner& scanner, const Shape& shape);

  // An array whose values were left out when its text was printed, "{...}". It has a shape, no
  // data, and equals nothing.
  static Literal elided(Shape shape);
  // An array over memory that outlives it and is not written to.
  static Literal lent(Shape shape, const void* data);
  // Whether it, or an element of the tuple, is such an array.
  bool is_elided() const;

  // Same shape, and same bits.
  bool operator==(const Literal& other) const;

 private:
  void require_type(ElementType type) const;
  // The row-major index of an element.
  size_t place(std::span<const int64_t> index) const;
  void append_element(std::string* text, int64_t i) const;
  void append_array(std::string* text, int64_t dimension, int64_t* next) const;
  void scan_array(Scanner& scanner, int64_t dimension, int64_t* next);
  void scan_element(Scanner& scanner, int64_t i);
  double scan_real(Scanner& scanner, int64_t i, ElementType type);
  void set_nan(int64_t i, ElementType type, bool negative, uint64_t payload);

  // Large arrays are pages of zeros, which take memory when they are first written.
  struct Free {
    size_t mapped;  // bytes of pages, or 0
    bool is_lent;
    Free() : mapped(0), is_lent(false) {}
    Free(size_t bytes, bool lent) : mapped(bytes), is_lent(lent) {}
    void operator()(std::byte* p) const;
  };
  Shape shape_;
  std::unique_ptr<std::byte[], Free> data_;
  size_t bytes_ = 0;
  bool elided_ = false;
  bool rest_is_zero_ = false;  // all elements but the first, as a text with one number states
  std::vector<Literal> elements_;
};

}  // namespace lamella::hlo
