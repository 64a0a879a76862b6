// Putting a line of elements in order, and selecting from it: what sort, topk, median and their
// like are made of.
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
// Where elements and their positions in the line go.
struct OrderedLine {
  char* values;
  int64_t value_stride;  // in bytes
  int64_t* indices;
  int64_t index_stride;  // in elements
};

// Memory that lines of one thread share.
class OrderScratch {
 public:
  // Each holds n words, whose contents are lost when more are asked for.
  uint64_t* first(int64_t n) { return reserve(first_, n); }
  uint64_t* second(int64_t n) { return reserve(second_, n); }
  // order_line() and select_in_line() leave this one alone; order_first() and settle_kth() do not.
  uint64_t* third(int64_t n) { return reserve(third_, n); }

 private:
  static uint64_t* reserve(Tensor& words, int64_t n);
  Tensor first_, second_, third_;
};

// Stores the first k > 0 elements of the line in its order, the sort being stable.
void order_line(const Line& line, int64_t k, const OrderedLine& out, OrderScratch& scratch);
// Which element is at position k of the stable order.
int64_t select_in_line(const Line& line, int64_t k, OrderScratch& scratch);
// Note [Equals among the first few] in tied_order.cpp. Stores the first k > 0 elements, in order if
// `sorted`.
void order_first(const Line& line, int64_t k, bool sorted, const OrderedLine& out,
                 OrderScratch& scratch);
// Which of the elements equal to the one at `found` is at position k.
int64_t settle_kth(const Line& line, int64_t k, int64_t found, OrderScratch& scratch);
// How many elements are NaN.
int64_t count_nan(const Line& line);

// Lines of tensors of one shape, along one dimension in which alone their sizes may differ.
class Lines {
 public:
  static constexpr size_t kMostTensors = 3;

  // The lines of dimension `skipped` but the first are left out.
  Lines(std::initializer_list<const Tensor*> tensors, int64_t dim, int64_t skipped = -1);
  int64_t size() const { return size_; }  // elements of a line of the first tensor
  int64_t count() const { return count_; }
  // Elements between neighbours of a line, in the tensor of this number.
  int64_t stride(size_t tensor) const { return along_[tensor]; }
  // Calls f(number of the line, where it starts in each tensor, in elements) for lines [begin,
  // end).
  template <class F>
  void walk(int64_t begin, int64_t end, F&& f) const {
    Dims index(sizes_.size(), 0);
    int64_t starts[kMostTensors] = {}, rest = begin;
    for (size_t d = sizes_.size(); d-- > 0; rest /= sizes_[d]) {
      index[d] = rest % sizes_[d];
      for (size_t t = 0; t < kMostTensors; ++t) starts[t] += index[d] * strides_[t][d];
    }
    for (int64_t i = begin; i < end; ++i) {
      f(i, starts);
      for (size_t d = sizes_.size(); d-- > 0;) {
        bool wraps = ++index[d] == sizes_[d];
        int64_t steps = wraps ? 1 - sizes_[d] : 1;
        if (wraps) index[d] = 0;
        for (size_t t = 0; t < kMostTensors; ++t) starts[t] += steps * strides_[t][d];
        if (!wraps) break;
      }
    }
  }

 private:
  int64_t size_ = 1, count_ = 1;
  Dims sizes_, strides_[kMostTensors];  // of the other dimensions
  int64_t along_[kMostTensors] = {};
};

// f(line, starts, scratch) for all lines of the first tensor, by threads; starts as in walk().
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
