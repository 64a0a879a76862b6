// Dims: a short list of sizes, strides or dimensions on the stack, and the arithmetic on shapes
// that kernels share.
#pragma once
#include <cstdint>

#include "lamella/core/array_ref.h"
#include "lamella/core/error.h"
#include "lamella/core/memory_format.h"
#include "lamella/core/wrap_dim.h"

namespace lamella::native {

inline constexpr size_t kMaxDims = 64;

// Up to kMaxDims numbers, without a heap allocation and without touching what is not used.
class Dims {
 public:
  Dims() {}                          // NOLINT: the elements stay uninitialised on purpose
  Dims(IntArrayRef list) : Dims() {  // NOLINT: implicit as a copy of the list
    check_room(list.size());
    for (int64_t v : list) values_[size_++] = v;
  }
  Dims(size_t count, int64_t value) : Dims() { resize(count, value); }
  Dims(const Dims& other) : Dims(IntArrayRef(other)) {}
  Dims& operator=(const Dims& other) {
    size_ = other.size_;
    for (size_t i = 0; i < size_; ++i) values_[i] = other.values_[i];
    return *this;
  }

  size_t size() const { return size_; }
  int64_t ndim() const { return static_cast<int64_t>(size_); }
  bool empty() const { return size_ == 0; }
  int64_t* data() { return values_; }
  const int64_t* data() const { return values_; }
  int64_t* begin() { return values_; }
  int64_t* end() { return values_ + size_; }
  const int64_t* begin() const { return values_; }
  const int64_t* end() const { return values_ + size_; }
  int64_t& operator[](size_t i) { return values_[i]; }
  int64_t operator[](size_t i) const { return values_[i]; }
  int64_t& back() { return values_[size_ - 1]; }
  int64_t back() const { return values_[size_ - 1]; }
  void push_back(int64_t value) {
    check_room(size_ + 1);
    values_[size_++] = value;
  }
  void pop_back() { --size_; }
  void resize(size_t count, int64_t value = 0) {
    check_room(count);
    while (size_ < count) values_[size_++] = value;
    size_ = count;
  }
  // Room for `count` values that the caller is about to write.
  int64_t* grow_uninitialised(size_t count) {
    check_room(count);
    size_ = count;
    return values_;
  }
  void insert(size_t at, int64_t value) {
    push_back(0);
    for (size_t i = size_ - 1; i > at; --i) values_[i] = values_[i - 1];
    values_[at] = value;
  }
  void erase(size_t at) {
    for (size_t i = at; i + 1 < size_; ++i) values_[i] = values_[i + 1];
    --size_;
  }
  void append_all(IntArrayRef list) {
    for (int64_t v : list) push_back(v);
  }
  operator IntArrayRef() const { return {values_, size_}; }  // NOLINT
  IntArrayRef ref() const { return {values_, size_}; }

 private:
  static void check_room(size_t count) {
    LAMELLA_CHECK(count <= kMaxDims, "expected a tensor of at most ", kMaxDims, " dimensions, got ",
                  count);
  }

  size_t size_ = 0;
  int64_t values_[kMaxDims];
};

inline void append(std::string& out, const Dims& dims) { lamella::append(out, dims.ref()); }

inline int64_t product(IntArrayRef sizes) {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  return n;
}

inline Dims contiguous_strides_of(IntArrayRef sizes) {
  Dims strides;
  contiguous_strides(sizes, strides.grow_uninitialised(sizes.size()));
  return strides;
}

// The strides of a dense tensor in `format`; Preserve counts as contiguous.
inline Dims strides_in_format(IntArrayRef sizes, MemoryFormat format) {
  Dims strides;
  strides_of_format(sizes, format == MemoryFormat::Preserve ? MemoryFormat::Contiguous : format,
                    strides.grow_uninitialised(sizes.size()));
  return strides;
}

// Whether `from` can be broadcast to `to`.
inline bool is_expandable(IntArrayRef from, IntArrayRef to) {
  if (from.size() > to.size()) return false;
  for (size_t i = 0; i < from.size(); ++i) {
    int64_t f = from[from.size() - 1 - i];
    if (f != 1 && f != to[to.size() - 1 - i]) return false;
  }
  return true;
}

// The shape that both broadcast to. Throws `op: expected 'other' to be broadcastable to ...`.
inline Dims broadcast_shapes(IntArrayRef a, IntArrayRef b, const char* op, const char* name) {
  Dims out(a.size() > b.size() ? a : b);
  size_t least = a.size() < b.size() ? a.size() : b.size();
  for (size_t i = 1; i <= least; ++i) {
    int64_t x = a[a.size() - i], y = b[b.size() - i];
    LAMELLA_CHECK(x == y || x == 1 || y == 1, op, ": expected '", name, "' to be broadcastable to ",
                  a, ", got ", b);
    out[out.size() - i] = x == 1 ? y : x;
  }
  return out;
}

// Strides that make a tensor of `sizes` look like one of `shape`; the shape must be reachable.
inline Dims broadcast_strides(IntArrayRef sizes, IntArrayRef strides, IntArrayRef shape) {
  Dims out(shape.size(), 0);
  size_t lead = shape.size() - sizes.size();
  for (size_t i = 0; i < sizes.size(); ++i) {
    out[lead + i] = sizes[i] == 1 && shape[lead + i] != 1 ? 0 : strides[i];
  }
  return out;
}

// Replaces the one -1 of a requested shape. Throws if the element counts cannot agree.
Dims infer_size(const char* op, IntArrayRef requested, int64_t numel);

// Strides for seeing a tensor of `sizes` and `strides` as one of `shape`; false if that needs a
// copy.
bool compute_view_strides(IntArrayRef sizes, IntArrayRef strides, IntArrayRef shape, Dims& out);

// Dense strides in the order of the given strides: what preserve_format means for a tensor that is
// not dense.
Dims infer_dense_strides(IntArrayRef sizes, IntArrayRef strides);

// Dense strides for a result whose dimensions are ordered like those of several operands. The order
// of two dimensions is that of the first operand whose strides decide it.
Dims dense_strides_like(IntArrayRef shape, ArrayRef<Dims> operand_strides);

// Distinct dimensions as a set of flags. Throws `op: expected 'dims' to be distinct ...`.
class DimSet {
 public:
  DimSet(const char* op, const char* name, IntArrayRef dims, int64_t ndim) {
    for (int64_t d : dims) {
      int64_t wrapped = maybe_wrap_dim(d, ndim, op);
      LAMELLA_CHECK(!has(wrapped), op, ": expected '", name, "' to be distinct, got ", dims);
      bits_ |= uint64_t{1} << wrapped;
    }
  }
  bool has(int64_t dim) const { return (bits_ >> dim) & 1; }

 private:
  uint64_t bits_ = 0;
};

}  // namespace lamella::native
