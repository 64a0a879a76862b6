// StridedLoop: N operands of one shape, walked together. Dimensions are ordered by the first
// operand's strides, those that lie in memory like one are merged, and the innermost is handed to
// the kernel as a run.
#pragma once
#include "lamella/core/interrupt.h"
#include "lamella/kernels/dims.h"
#include "lamella/kernels/parallel.h"

namespace lamella::native {

// Elements that are worth a thread.
inline constexpr int64_t kGrain = 32768;

template <int N>
class StridedLoop {
 public:
  explicit StridedLoop(IntArrayRef shape) : ndim_(static_cast<int>(shape.size())) {
    LAMELLA_CHECK(shape.size() <= kMaxDims, "expected at most ", kMaxDims, " dimensions, got ",
                  shape.size());
    for (int d = 0; d < ndim_; ++d) {
      sizes_[d] = shape[static_cast<size_t>(ndim_ - 1 - d)];  // innermost first
      numel_ *= sizes_[d];
    }
  }
  // Strides count elements of `bytes` bytes.
  StridedLoop& operand(int i, const void* data, IntArrayRef strides, size_t bytes) {
    data_[i] = static_cast<char*>(const_cast<void*>(data));
    for (int d = 0; d < ndim_; ++d) {
      strides_[d][i] = strides[static_cast<size_t>(ndim_ - 1 - d)] * static_cast<int64_t>(bytes);
    }
    return *this;
  }
  // After the last operand. `keep_order` leaves the elements in row-major order.
  void plan(bool keep_order = false) {
    drop_ones();
    if (!keep_order) order();
    merge();
    if (ndim_ == 0) {
      ndim_ = 1;
      sizes_[0] = 1;
      for (int i = 0; i < N; ++i) strides_[0][i] = 0;
    }
  }

  int ndim() const { return ndim_; }
  int64_t numel() const { return numel_; }
  int64_t size(int d) const { return sizes_[d]; }
  int64_t stride(int d, int i) const { return strides_[d][i]; }
  char* data(int i) const { return data_[i]; }

  // f(char* const* data, const int64_t* strides, int64_t count) for each run; strides in bytes.
  template <class F>
  void serial(F&& f) const {
    constexpr int64_t kUnchecked = 1 << 20;
    for (int64_t begin = 0; begin < numel_; begin += kUnchecked) {
      if (begin != 0) check_interrupt();
      range(begin, numel_ - begin < kUnchecked ? numel_ : begin + kUnchecked, f);
    }
  }
  template <class F>
  void parallel(F&& f, int64_t grain = kGrain) const {
    if (numel_ <= grain) {
      range(0, numel_, f);
      return;
    }
    parallel_for(0, numel_, grain, [&](int64_t begin, int64_t end) { range(begin, end, f); });
  }
  // The same over planes: f(data, strides of dimension 0, size 0, strides of dimension 1, size 1).
  // Needs ndim() >= 2.
  template <class F>
  void planes(F&& f) const {
    int64_t count = numel_ == 0 ? 0 : numel_ / (sizes_[0] * sizes_[1]);
    int64_t at[kMaxDims];
    char* p[N];
    start(2, 0, at, p);
    for (int64_t i = 0; i < count; ++i) {
      f(p, strides_[0], sizes_[0], strides_[1], sizes_[1]);
      step(2, at, p);
    }
  }

  template <class F>
  void range(int64_t begin, int64_t end, F&& f) const {
    if (begin >= end) return;
    int64_t at[kMaxDims];
    char* p[N];
    int64_t inner = sizes_[0];
    int64_t skip = begin % inner;
    start(1, begin / inner, at, p);
    while (begin < end) {
      int64_t count = inner - skip < end - begin ? inner - skip : end - begin;
      if (skip != 0) {
        char* q[N];
        for (int i = 0; i < N; ++i) q[i] = p[i] + skip * strides_[0][i];
        f(q, strides_[0], count);
      } else {
        f(p, strides_[0], count);
      }
      begin += count;
      skip = 0;
      step(1, at, p);
    }
  }

 private:
  void drop_ones() {
    int kept = 0;
    for (int d = 0; d < ndim_; ++d) {
      if (sizes_[d] == 1) continue;
      move_dim(d, kept++);
    }
    ndim_ = kept;
  }
  void move_dim(int from, int to) {
    if (from == to) return;
    sizes_[to] = sizes_[from];
    for (int i = 0; i < N; ++i) strides_[to][i] = strides_[from][i];
  }
  void swap_dims(int a, int b) {
    std::swap(sizes_[a], sizes_[b]);
    for (int i = 0; i < N; ++i) std::swap(strides_[a][i], strides_[b][i]);
  }
  static int64_t magnitude(int64_t v) { return v < 0 ? -v : v; }
  // Whether dimension a should be outside of b: decided by the first operand that can.
  bool outside(int a, int b) const {
    for (int i = 0; i < N; ++i) {
      int64_t x = magnitude(strides_[a][i]), y = magnitude(strides_[b][i]);
      if (x == y || x == 0 || y == 0) continue;
      return x > y;
    }
    return false;
  }
  void order() {
    for (int d = 1; d < ndim_; ++d) {
      for (int e = d; e > 0 && outside(e - 1, e); --e) swap_dims(e - 1, e);
    }
  }
  void merge() {
    if (ndim_ == 0) return;
    int last = 0;
    for (int d = 1; d < ndim_; ++d) {
      bool one = true;
      for (int i = 0; i < N; ++i) one &= strides_[d][i] == strides_[last][i] * sizes_[last];
      if (one) {
        sizes_[last] *= sizes_[d];
      } else {
        move_dim(d, ++last);
      }
    }
    ndim_ = last + 1;
  }
  // Position `index` among the blocks of the dimensions from `first` on.
  void start(int first, int64_t index, int64_t* at, char** p) const {
    for (int i = 0; i < N; ++i) p[i] = data_[i];
    for (int d = first; d < ndim_; ++d) {
      at[d] = index % sizes_[d];
      index /= sizes_[d];
      for (int i = 0; i < N; ++i) p[i] += at[d] * strides_[d][i];
    }
  }
  void step(int first, int64_t* at, char** p) const {
    for (int d = first; d < ndim_; ++d) {
      for (int i = 0; i < N; ++i) p[i] += strides_[d][i];
      if (++at[d] < sizes_[d]) return;
      at[d] = 0;
      for (int i = 0; i < N; ++i) p[i] -= strides_[d][i] * sizes_[d];
    }
  }

  int ndim_;
  int64_t numel_ = 1;
  int64_t sizes_[kMaxDims];
  int64_t strides_[kMaxDims][N];
  char* data_[N];
};

}  // namespace lamella::native
