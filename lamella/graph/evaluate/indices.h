// Readers of index operands: starts of slices, indices of gather and scatter.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "lamella/graph/evaluate/numbers.h"
#include "lamella/graph/runtime/value.h"

namespace lamella::hlo {

// Reads an array of any integer type as int64_t; larger numbers saturate.
class IndexReader {
 public:
  explicit IndexReader(const Value& array) : data_(array.data()) {
    visit_integers(array.shape().element_type(), [&]<class Number>() { read_ = read<Number>; });
  }
  int64_t operator[](int64_t n) const { return read_(data_, n); }

 private:
  template <class Number>
  static int64_t read(const void* data, int64_t n) {
    auto value = load_wide<Number>(data, n);
    if constexpr (std::is_unsigned_v<decltype(value)>) {
      return static_cast<int64_t>(std::min<uint64_t>(value, INT64_MAX));
    } else {
      return value;
    }
  }

  const void* data_;
  int64_t (*read_)(const void*, int64_t) = nullptr;
};

// The index vectors of an index array, one for each batch index, converted to start indices in an
// operand: dimension map[k] starts at component k of the vector, a batching dimension at the batch
// index, and all others at 0.
class IndexVectors {
 public:
  IndexVectors(const Value& indices, int64_t vector_dim, std::span<const int64_t> map,
               std::span<const int64_t> operand_batching, std::span<const int64_t> batching)
      : read_(indices), map_(map), operand_batching_(operand_batching) {
    std::vector<int64_t> strides = row_major_strides(indices.shape().dimensions());
    for (int64_t d = 0; d < indices.shape().rank(); ++d) {
      if (d == vector_dim) {
        vector_stride_ = strides[static_cast<size_t>(d)];
      } else {
        batch_sizes_.push_back(indices.shape().dimension(d));
        strides_.push_back(strides[static_cast<size_t>(d)]);
      }
    }
    for (int64_t d : batching) {
      batching_.push_back(static_cast<size_t>(d < vector_dim ? d : d - 1));
    }
  }
  std::span<const int64_t> batch_sizes() const { return batch_sizes_; }
  // Reads the starts for a batch index; `starts` has one element for each dimension of the operand.
  void read(std::span<const int64_t> batch, std::span<int64_t> starts) const {
    std::fill(starts.begin(), starts.end(), 0);
    int64_t place = place_of(batch, strides_);
    for (size_t k = 0; k < map_.size(); ++k) {
      starts[static_cast<size_t>(map_[k])] =
          read_[place + static_cast<int64_t>(k) * vector_stride_];
    }
    for (size_t n = 0; n < operand_batching_.size(); ++n) {
      starts[static_cast<size_t>(operand_batching_[n])] = batch[batching_[n]];
    }
  }

 private:
  IndexReader read_;
  std::span<const int64_t> map_, operand_batching_;
  std::vector<size_t> batching_;  // positions in the batch index
  std::vector<int64_t> batch_sizes_, strides_;
  int64_t vector_stride_ = 0;
};

// The valid start nearest to `start` for a slice of `slice` elements in a dimension of `size`.
inline int64_t clamped_start(int64_t start, int64_t size, int64_t slice) {
  return std::clamp<int64_t>(start, 0, size - slice);
}

}  // namespace lamella::hlo
