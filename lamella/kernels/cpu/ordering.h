// Sorting a line of elements and selecting from it, for sort, topk, median and similar operators.
#pragma once
#include "lamella/kernels/cpu/simd/order_keys.h"
#include "lamella/kernels/native.h"
#include "lamella/kernels/parallel.h"

namespace lamella::native {

// One line of n > 0 elements, which lie `stride` bytes apart.
struct Line {
  KeyKind kind;
  const char* from;
  int64_t stride;
  int64_t n;

  const char* element(int64_t i) const { return from + i * stride; }
};
// The output of an ordering: where elements and their positions in the line are written.
struct OrderedLine {
  char* values;
  int64_t value_stride;  // in bytes
  int64_t* indices;
  int64_t index_stride;  // in elements
};

// Scratch memory that is reused for all lines of one thread.
class OrderScratch {
 public:
  // Buffers of n words each; contents are lost when a larger size is requested.
  uint64_t* first(int64_t n) { return reserve(first_, n); }
  uint64_t* second(int64_t n) { return reserve(second_, n); }
  // For order_first() and settle_kth(); order_line() and select_in_line() do not use it.
  uint64_t* third(int64_t n) { return reserve(third_, n); }

 private:
  static uint64_t* reserve(Tensor& words, int64_t n);
  Tensor first_, second_, third_;
};

// Stores the first k > 0 elements of the stably sorted line.
void order_line(const Line& line, int64_t k, const OrderedLine& out, OrderScratch& scratch);
// The index in the line of the element at position k of the stable order.
int64_t select_in_line(const Line& line, int64_t k, OrderScratch& scratch);
// Note [Equals among the first few] in tied_order.cpp. Stores the first k > 0 elements, in order if
// `sorted`.
void order_first(const Line& line, int64_t k, bool sorted, const OrderedLine& out,
                 OrderScratch& scratch);
// The index of the element at position k, among those equal to the element at `found`.
int64_t settle_kth(const Line& line, int64_t k, int64_t found, OrderScratch& scratch);
// The number of elements that are NaN.
int64_t count_nan(const Line& line);

// Iterates over lines along one dimension of several tensors, whose sizes may differ only in that
// dimension.
class Lines {
 public:
  static constexpr size_t kMaxTensors = 3;

  // Of dimension `skipped`, only index 0 is visited.
  Lines(std::initializer_list<const Tensor*> tensors, int64_t dim, int64_t skipped = -1);
  int64_t size() const { return size_; }  // elements of a line of the first tensor
  int64_t count() const { return count_; }
  // The stride of a line, in elements, in the tensor of this number.
  int64_t stride(size_t tensor) const { return along_[tensor]; }
  // Calls f(number of the line, where it starts in each tensor, in elements) for lines [begin,
  // end).
  template <class F>
  void walk(int64_t begin, int64_t end, F&& f) const {
    Dims index(sizes_.size(), 0);
    int64_t starts[kMaxTensors] = {}, rest = begin;
    for (size_t d = sizes_.size(); d-- > 0; rest /= sizes_[d]) {
      index[d] = rest % sizes_[d];
      for (size_t t = 0; t < kMaxTensors; ++t) starts[t] += index[d] * strides_[t][d];
    }
    for (int64_t i = begin; i < end; ++i) {
      f(i, starts);
      for (size_t d = sizes_.size(); d-- > 0;) {
        bool wraps = ++index[d] == sizes_[d];
        int64_t steps = wraps ? 1 - sizes_[d] : 1;
        if (wraps) index[d] = 0;
        for (size_t t = 0; t < kMaxTensors; ++t) starts[t] += steps * strides_[t][d];
        if (!wraps) break;
      }
    }
  }

 private:
  int64_t size_ = 1, count_ = 1;
  Dims sizes_, strides_[kMaxTensors];  // of the other dimensions
  int64_t along_[kMaxTensors] = {};
};

// Calls f(line, starts, scratch) in parallel for all lines of the first tensor; starts as in
// walk().
template <class F>
void for_each_line(const Lines& lines, const Tensor& self, bool descending, F&& f) {
  KeyKind kind = key_kind(self.scalar_type(), descending);
  auto* data = static_cast<const char*>(self.const_data_ptr());
  parallel_for(0, lines.count(), 8192 / lines.size() + 1, [&](int64_t begin, int64_t end) {
    OrderScratch scratch;
    lines.walk(begin, end, [&](int64_t, const int64_t* starts) {
      f(Line{kind, data + starts[0] * kind.bytes, lines.stride(0) * kind.bytes, lines.size()},
        starts, scratch);
    });
  });
}

}  // namespace lamella::native
