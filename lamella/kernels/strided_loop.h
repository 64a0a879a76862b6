// StridedLoop: iterates over N operands of one shape. Dimensions are ordered by the first operand's
// strides, adjacent ones that form a single strided run are merged, and the innermost one is passed
// to the kernel as a run.
#pragma once
#include "lamella/core/interrupt.h"
#include "lamella/kernels/dims.h"
#include "lamella/kernels/parallel.h"
#include "lamella/kernels/strided_walk.h"

namespace lamella::native {

// The least number of elements for which a thread pays.
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
  // Must be called after the last operand. `keep_order` keeps the elements in row-major order.
  void plan(bool keep_order = false) {
    drop_ones();
    if (!keep_order) order();
    ndim_ = merge_dims(kCount, ndim_, sizes_, strides_[0]);
    if (ndim_ == 0) {
      ndim_ = 1;
      sizes_[0] = 1;
      for (int i = 0; i < N; ++i) strides_[0][i] = 0;
    }
  }

  // Moves dimension d down to position `to`; the others keep their order.
  void bring(int d, int to) {
    for (; d > to; --d) swap_dims(d, d - 1);
  }
  // Leaves the innermost dimension to the caller. There must be another one.
  void drop_inner() {
    numel_ /= sizes_[0];
    --ndim_;
    for (int d = 0; d < ndim_; ++d) move_dim(d + 1, d);
  }

  int ndim() const { return ndim_; }
  int64_t numel() const { return numel_; }
  int64_t size(int d) const { return sizes_[d]; }
  int64_t stride(int d, int i) const { return strides_[d][i]; }
  char* data(int i) const { return data_[i]; }

  // Keeps [begin, end) of dimension d.
  void narrow(int d, int64_t begin, int64_t end) {
    numel_ = numel_ / sizes_[d] * (end - begin);
    sizes_[d] = end - begin;
    for (int i = 0; i < N; ++i) data_[i] += begin * strides_[d][i];
  }

  // f(char* const* data, const int64_t* strides, int64_t count) for each run; strides in bytes.
  template <class F>
  void serial(F&& f) const {
    pieces([&](int64_t begin, int64_t end) { range(begin, end, f); });
  }
  // The same over planes: f(data, strides of dimension 0 and then of 1, size 0, size 1).
  template <class F>
  void serial_planes(F&& f) const {
    pieces([&](int64_t begin, int64_t end) { walk(begin, end, f); });
  }
  template <class F>
  void parallel(F&& f, int64_t grain = kGrain) const {
    if (numel_ <= grain) {
      range(0, numel_, f);
      return;
    }
    parallel_for(0, numel_, grain, [&](int64_t begin, int64_t end) { range(begin, end, f); });
  }
  template <class F>
  void parallel_planes(F&& f, int64_t grain = kGrain) const {
    parallel_for(0, numel_, grain, [&](int64_t begin, int64_t end) { walk(begin, end, f); });
  }
  template <class F>
  void range(int64_t begin, int64_t end, F&& f) const {
    walk(begin, end, [&](char** p, const int64_t* s, int64_t size0, int64_t size1) {
      f(p, s, size0);
      for (int64_t j = 1; j < size1; ++j) {
        for (int i = 0; i < N; ++i) p[i] += s[N + i];
        f(p, s, size0);
      }
    });
  }

 private:
  static_assert(N <= kMaxWalked);
  static constexpr std::integral_constant<int, N> kCount{};

  // Runs in pieces and checks for an interrupt between them.
  template <class F>
  void pieces(F&& f) const {
    constexpr int64_t kUnchecked = 1 << 20;
    for (int64_t begin = 0; begin < numel_; begin += kUnchecked) {
      if (begin != 0) check_interrupt();
      f(begin, numel_ - begin < kUnchecked ? numel_ : begin + kUnchecked);
    }
  }
  template <class F>
  void walk(int64_t begin, int64_t end, F&& f) const {
    walk_planes(kCount, ndim_, sizes_, strides_[0], data_, begin, end, f);
  }
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

  int ndim_;
  int64_t numel_ = 1;
  int64_t sizes_[kMaxDims];
  int64_t strides_[kMaxDims][N];
  char* data_[N];
};

}  // namespace lamella::native
