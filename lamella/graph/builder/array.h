// Array2D, Array3D, Array4D: dense row-major C++ arrays from which constants can be made.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <numeric>
#include <span>
#include <vector>

#include "lamella/core/error.h"
#include "lamella/graph/hlo/shape.h"

namespace lamella::hlo {

template <class T>
class Array {
 public:
  explicit Array(std::vector<int64_t> sizes, T value = T())
      : sizes_(std::move(sizes)),
        values_(static_cast<size_t>(
                    std::accumulate(sizes_.begin(), sizes_.end(), int64_t{1}, std::multiplies<>())),
                value) {}
  Array(std::initializer_list<T> values)
      : sizes_{static_cast<int64_t>(values.size())}, values_(values) {}
  Array(std::initializer_list<std::initializer_list<T>> rows) { append(rows, 0); }
  Array(std::initializer_list<std::initializer_list<std::initializer_list<T>>> planes) {
    append(planes, 0);
  }
  Array(
      std::initializer_list<std::initializer_list<std::initializer_list<std::initializer_list<T>>>>
          blocks) {
    append(blocks, 0);
  }

  int64_t num_dimensions() const { return static_cast<int64_t>(sizes_.size()); }
  int64_t num_elements() const { return static_cast<int64_t>(values_.size()); }
  const std::vector<int64_t>& dimensions() const { return sizes_; }
  int64_t dim(int64_t d) const { return sizes_.at(static_cast<size_t>(d)); }
  std::span<const T> values() const { return values_; }
  const T* data() const { return values_.data(); }
  T* data() { return values_.data(); }
  auto begin() { return values_.begin(); }
  auto end() { return values_.end(); }
  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }

  // One index for each dimension; throws if the count is wrong or an index is out of range.
  template <class... I>
  const T& operator()(I... index) const {
    return values_[place({static_cast<int64_t>(index)...})];
  }
  template <class... I>
  T& operator()(I... index) {
    return values_[place({static_cast<int64_t>(index)...})];
  }

  // Calls visit(index, pointer to the element), or visit(index, value) if the array is const, in
  // row-major order.
  template <class F>
  void Each(F&& visit) {
    size_t n = 0;
    for_each_index(sizes_, [&](auto index) { visit(index, &values_[n++]); });
  }
  template <class F>
  void Each(F&& visit) const {
    size_t n = 0;
    for_each_index(sizes_, [&](auto index) { visit(index, values_[n++]); });
  }
  // The elements from `starts` up to, but not including, `limits`.
  Array Slice(std::span<const int64_t> starts, std::span<const int64_t> limits) const {
    LAMELLA_CHECK(starts.size() == sizes_.size() && limits.size() == sizes_.size(),
                  "Slice: expected ", sizes_.size(), " starts and limits, got ", starts.size(),
                  " and ", limits.size());
    std::vector<int64_t> sizes(starts.size());
    for (size_t d = 0; d < sizes.size(); ++d) {
      LAMELLA_CHECK(starts[d] >= 0 && starts[d] <= limits[d] && limits[d] <= sizes_[d],
                    "Slice: expected a range within ", sizes_[d], " in dimension ", d, ", got ",
                    starts[d], " to ", limits[d]);
      sizes[d] = limits[d] - starts[d];
    }
    Array made(std::move(sizes));
    made.Each([&](std::span<const int64_t> index, T* value) {
      int64_t at = 0;
      for (size_t d = 0; d < index.size(); ++d) at = at * sizes_[d] + starts[d] + index[d];
      *value = values_[static_cast<size_t>(at)];
    });
    return made;
  }
  Array Slice(std::initializer_list<int64_t> starts, std::initializer_list<int64_t> limits) const {
    return Slice(std::span(starts.begin(), starts.size()),
                 std::span(limits.begin(), limits.size()));
  }

  void Fill(const T& value) { values_.assign(values_.size(), value); }
  // value, value + 1, ...
  void FillIota(const T& value) { std::iota(values_.begin(), values_.end(), value); }
  bool operator==(const Array& other) const = default;

 protected:
  size_t place(std::initializer_list<int64_t> index) const {
    LAMELLA_CHECK(index.size() == sizes_.size(), "Array: expected ", sizes_.size(),
                  " indices, got ", index.size());
    int64_t at = 0;
    size_t d = 0;
    for (int64_t i : index) {
      LAMELLA_CHECK(i >= 0 && i < sizes_[d], "Array: expected an index below ", sizes_[d],
                    " in dimension ", d, ", got ", i);
      at = at * sizes_[d++] + i;
    }
    return static_cast<size_t>(at);
  }

 private:
  void append(const T& value, size_t) { values_.push_back(value); }
  template <class U>
  void append(std::initializer_list<U> parts, size_t depth) {
    auto size = static_cast<int64_t>(parts.size());
    if (depth == sizes_.size()) {
      sizes_.resize(depth + 1);
      sizes_[depth] = size;
    }
    LAMELLA_CHECK(sizes_[depth] == size, "Array: expected ", sizes_[depth], " parts in dimension ",
                  depth, ", got ", size);
    for (const U& part : parts) append(part, depth + 1);
  }

  std::vector<int64_t> sizes_;
  std::vector<T> values_;
};

template <class T>
class Array2D : public Array<T> {
 public:
  Array2D() : Array<T>(std::vector<int64_t>{0, 0}) {}
  Array2D(int64_t n1, int64_t n2, T value = T()) : Array<T>(std::vector<int64_t>{n1, n2}, value) {}
  Array2D(std::initializer_list<std::initializer_list<T>> rows) : Array<T>(rows) {}
  int64_t n1() const { return this->dim(0); }
  int64_t n2() const { return this->dim(1); }
  int64_t height() const { return this->dim(0); }
  int64_t width() const { return this->dim(1); }
};
template <class T>
class Array3D : public Array<T> {
 public:
  Array3D() : Array<T>(std::vector<int64_t>{0, 0, 0}) {}
  Array3D(int64_t n1, int64_t n2, int64_t n3, T value = T())
      : Array<T>(std::vector<int64_t>{n1, n2, n3}, value) {}
  Array3D(std::initializer_list<std::initializer_list<std::initializer_list<T>>> planes)
      : Array<T>(planes) {}
  int64_t n1() const { return this->dim(0); }
  int64_t n2() const { return this->dim(1); }
  int64_t n3() const { return this->dim(2); }
};
template <class T>
class Array4D : public Array<T> {
 public:
  Array4D() : Array<T>(std::vector<int64_t>{0, 0, 0, 0}) {}
  Array4D(int64_t n1, int64_t n2, int64_t n3, int64_t n4, T value = T())
      : Array<T>(std::vector<int64_t>{n1, n2, n3, n4}, value) {}
  Array4D(
      std::initializer_list<std::initializer_list<std::initializer_list<std::initializer_list<T>>>>
          blocks)
      : Array<T>(blocks) {}
  int64_t n1() const { return this->dim(0); }
  int64_t n2() const { return this->dim(1); }
  int64_t n3() const { return this->dim(2); }
  int64_t n4() const { return this->dim(3); }
};

}  // namespace lamella::hlo
