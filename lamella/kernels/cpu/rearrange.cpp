// Rearrangements that need the elements themselves: flip, repeat_interleave of counts, and the
// triangles tril and triu.
#include <algorithm>
#include <cstring>

#include "lamella/core/visit_dtype.h"
#include "lamella/kernels/cpu/copy.h"
#include "lamella/kernels/cpu/movement.h"
#include "lamella/kernels/native.h"
#include "lamella/kernels/parallel.h"

namespace lamella {
namespace native {

Tensor flip(const Tensor& self, IntArrayRef dims) {
  DimSet which("flip", "dims", dims, self.dim());
  Dims order[1] = {Dims(self.strides())};
  Dims strides = dense_strides_like(self.sizes(), order);
  Tensor result = new_strided(self.sizes(), strides, self.scalar_type(), self.device());
  if (self.is_meta() || self.numel() == 0) return result;
  // The source is walked backwards along the flipped dimensions.
  Dims from(self.strides());
  auto* start = static_cast<char*>(self.data_ptr());
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (!which.has(d)) continue;
    auto i = static_cast<size_t>(d);
    start += (self.sizes()[i] - 1) * from[i] * self.element_size();
    from[i] = -from[i];
  }
  copy_strided(self.sizes().data(), self.dim(),
               {result.data_ptr(), result.strides().data(), self.scalar_type()},
               {start, from.data(), self.scalar_type()});
  return result;
}

Tensor repeat_interleave(const Tensor& repeats, std::optional<int64_t> output_size) {
  LAMELLA_CHECK(repeats.dim() == 1, "repeat_interleave: expected 'repeats' to have one dimension, ",
                "got ", repeats.sizes());
  LAMELLA_CHECK(repeats.scalar_type() == kLong || repeats.scalar_type() == kInt,
                "repeat_interleave: expected 'repeats' to be int64 or int32, got ",
                repeats.scalar_type());
  if (repeats.is_meta()) {
    LAMELLA_CHECK(output_size.has_value(),
                  "repeat_interleave: expected 'output_size' for a tensor on meta");
    return new_tensor({*output_size}, repeats.scalar_type(), repeats.device());
  }
  Tensor counts = repeats.contiguous();
  return visit_index(counts.scalar_type(), "repeat_interleave", [&](auto tag) {
    using T = type_of<decltype(tag)>;
    const T* p = counts.const_data_ptr<T>();
    int64_t n = counts.numel(), total = 0;
    for (int64_t i = 0; i < n; ++i) {
      LAMELLA_CHECK(p[i] >= 0, "repeat_interleave: expected 'repeats' of at least 0, got ", p[i]);
      LAMELLA_CHECK(!__builtin_add_overflow(total, int64_t{p[i]}, &total),
                    "repeat_interleave: expected the sum of 'repeats' to be at most ", INT64_MAX,
                    ", got more");
    }
    LAMELLA_CHECK(!output_size || *output_size == total,
                  "repeat_interleave: expected 'output_size' to be ", total, ", got ", output_size);
    Tensor result = new_tensor({total}, counts.scalar_type(), kCPU);
    T* to = result.mutable_data_ptr<T>();
    const Movement& move = movement_on(kCPU, sizeof(T));
    constexpr int64_t kShort = 16;  // shorter runs cost less than a call
    for (int64_t i = 0; i < n; to += p[i++]) {
      const T value = static_cast<T>(i);
      if (p[i] < kShort) {
        std::fill_n(to, p[i], value);
      } else {
        move.fill(reinterpret_cast<char*>(to), reinterpret_cast<const char*>(&value), p[i]);
      }
    }
    return result;
  });
}

namespace {
// Copies columns [0, row + diagonal] (lower) or [row + diagonal, ...) (upper) of each row of the
// matrices; the others become 0.
void keep_triangle(const Tensor& self, const Tensor& out, int64_t diagonal, bool lower) {
  if (out.numel() == 0) return;
  Tensor from = self.contiguous();
  Tensor to = out.is_contiguous() ? out : new_tensor(out.sizes(), out.scalar_type(), kCPU);
  auto n = static_cast<size_t>(out.dim());
  int64_t rows = out.sizes()[n - 2], columns = out.sizes()[n - 1];
  // Diagonals beyond the corners are all equivalent.
  diagonal = diagonal < -rows ? -rows : diagonal > columns ? columns : diagonal;
  int64_t bytes = out.element_size(), row_bytes = columns * bytes;
  auto* a = static_cast<const char*>(from.const_data_ptr());
  auto* b = static_cast<char*>(to.data_ptr());
  parallel_for(0, out.numel() / columns, 32768 / columns + 1, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      int64_t edge = r % rows + diagonal + (lower ? 1 : 0);
      edge = edge < 0 ? 0 : edge > columns ? columns : edge;
      auto head = static_cast<size_t>(edge * bytes);
      auto tail = static_cast<size_t>(row_bytes) - head;
      char* row = b + r * row_bytes;
      const char* source = a + r * row_bytes;
      if (lower) {
        if (row != source) std::memcpy(row, source, head);
        std::memset(row + head, 0, tail);
      } else {
        std::memset(row, 0, head);
        if (row != source) std::memcpy(row + head, source + head, tail);
      }
    }
  });
  if (!to.is_same(out)) const_cast<Tensor&>(out).copy_(to);
}
void check_matrices(const char* op, const Tensor& self) {
  LAMELLA_CHECK(self.dim() >= 2, op, ": expected 'self' to have at least 2 dimensions, got ",
                self.sizes());
}
}  // namespace
}  // namespace native

namespace meta {
LAMELLA_META_FUNC(tril)(const Tensor& self, int64_t diagonal) {
  native::check_matrices("tril", self);
  set_output_raw_strided(0, self.sizes(), {}, self.options());
}
LAMELLA_META_FUNC(triu)(const Tensor& self, int64_t diagonal) {
  native::check_matrices("triu", self);
  set_output_raw_strided(0, self.sizes(), {}, self.options());
}
}  // namespace meta

namespace native {
LAMELLA_IMPL_FUNC(tril_cpu)(const Tensor& self, int64_t diagonal, const Tensor& out) {
  keep_triangle(self, out, diagonal, true);
}
LAMELLA_IMPL_FUNC(triu_cpu)(const Tensor& self, int64_t diagonal, const Tensor& out) {
  keep_triangle(self, out, diagonal, false);
}
}  // namespace native
}  // namespace lamella
