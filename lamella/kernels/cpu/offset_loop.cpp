// Reading and writing at byte offsets.
#include "lamella/kernels/cpu/offset_loop.h"

#include <algorithm>
#include <cstring>

#include "lamella/core/visit_dtype.h"

namespace lamella::native {

namespace {
[[noreturn]] LAMELLA_COLD void throw_index(const char* op, int64_t index, int64_t size, bool wrap) {
  throw IndexError(
      str(op, ": expected 'index' in [", wrap ? -size : 0, ", ", size - 1, "], got ", index));
}
}  // namespace

void add_offsets(const char* op, const Tensor& index, int64_t size, int64_t stride_bytes,
                 int64_t* out, bool wrap) {
  Tensor dense = index.contiguous();
  int64_t n = dense.numel();
  if (n == 0) return;  // of any dtype, as in PyTorch
  visit_index(dense.scalar_type(), op, [&](auto tag) {
    using T = type_of<decltype(tag)>;
    const T* from = dense.const_data_ptr<T>();
    int64_t least = wrap ? -size : 0;
    parallel_for(0, n, kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        int64_t at = from[i];
        if (LAMELLA_UNLIKELY(at < least || at >= size)) throw_index(op, at, size, wrap);
        if (at < 0) at += size;
        out[i] += at * stride_bytes;
      }
    });
  });
}

void gather_elements(const StridedLoop<3>& loop, size_t bytes) {
  visit_bytes(bytes, [&](auto tag) {
    using T = type_of<decltype(tag)>;
    loop.parallel([](char* const* p, const int64_t* s, int64_t n) {
      char* to = p[0];
      const char* from = p[1];
      const char* offset = p[2];
      if (s[2] == 0) {  // one offset for the whole run
        from += *reinterpret_cast<const int64_t*>(offset);
        if (s[0] == sizeof(T) && s[1] == sizeof(T)) {
          std::memcpy(to, from, static_cast<size_t>(n) * sizeof(T));
          return;
        }
        for (int64_t i = 0; i < n; ++i) {
          *reinterpret_cast<T*>(to + i * s[0]) = *reinterpret_cast<const T*>(from + i * s[1]);
        }
        return;
      }
      for (int64_t i = 0; i < n; ++i) {
        int64_t at = *reinterpret_cast<const int64_t*>(offset + i * s[2]);
        *reinterpret_cast<T*>(to + i * s[0]) = *reinterpret_cast<const T*>(from + i * s[1] + at);
      }
    });
  });
}

ScatterMode scatter_mode(const char* op, std::string_view reduce) {
  if (reduce == "add" || reduce == "sum") return ScatterMode::kAdd;
  if (reduce == "multiply" || reduce == "prod") return ScatterMode::kMultiply;
  if (reduce == "amax") return ScatterMode::kMaximum;
  if (reduce == "amin") return ScatterMode::kMinimum;
  LAMELLA_CHECK(reduce == "mean", op, ": expected 'reduce' to be sum, prod, mean, amax or amin",
                ", got '", reduce, "'");
  return ScatterMode::kMean;
}

namespace {
template <class T, class F>
void scatter_runs(const StridedLoop<3>& loop, F&& combine) {
  loop.serial([&](char* const* p, const int64_t* s, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      int64_t at = *reinterpret_cast<const int64_t*>(p[2] + i * s[2]);
      T& to = *reinterpret_cast<T*>(p[0] + i * s[0] + at);
      to = combine(to, *reinterpret_cast<const T*>(p[1] + i * s[1]));
    }
  });
}
template <class T>
bool is_nan(T value) {
  return value != value;
}
}  // namespace

void scatter_elements(const char* op, const StridedLoop<3>& loop, ScalarType dtype,
                      ScatterMode mode) {
  if (mode == ScatterMode::kAssign) {
    visit_bytes(element_size(dtype), [&](auto tag) {
      using T = type_of<decltype(tag)>;
      scatter_runs<T>(loop, [](T, T value) { return value; });
    });
    return;
  }
  if (mode == ScatterMode::kMaximum || mode == ScatterMode::kMinimum) {
    visit_real(dtype, op, [&](auto tag) {
      using T = type_of<decltype(tag)>;
      if (mode == ScatterMode::kMaximum) {
        scatter_runs<T>(loop, [](T a, T b) { return is_nan(a) || a > b ? a : b; });
      } else {
        scatter_runs<T>(loop, [](T a, T b) { return is_nan(a) || a < b ? a : b; });
      }
    });
    return;
  }
  visit_all(dtype, op, [&](auto tag) {
    using T = type_of<decltype(tag)>;
    if constexpr (std::is_same_v<T, bool>) {
      if (mode == ScatterMode::kMultiply) {
        scatter_runs<T>(loop, [](T a, T b) { return a && b; });
      } else {
        scatter_runs<T>(loop, [](T a, T b) { return a || b; });
      }
    } else if (mode == ScatterMode::kMultiply) {
      scatter_runs<T>(loop, [](T a, T b) { return static_cast<T>(a * b); });
    } else {
      scatter_runs<T>(loop, [](T a, T b) { return static_cast<T>(a + b); });
    }
  });
}

Tensor offsets_along(const char* op, const Tensor& target, int64_t dim, const Tensor& index,
                     bool wrap) {
  Tensor offsets = new_tensor(index.sizes(), kLong, kCPU);
  auto* out = offsets.mutable_data_ptr<int64_t>();
  std::fill_n(out, offsets.numel(), 0);
  int64_t size = target.dim() == 0 ? 1 : target.sizes()[static_cast<size_t>(dim)];
  int64_t stride = target.dim() == 0 ? 1 : target.strides()[static_cast<size_t>(dim)];
  add_offsets(op, index, size, stride * target.element_size(), out, wrap);
  return offsets;
}

void index_select_into(const char* op, const Tensor& self, int64_t dim, const Tensor& index,
                       const Tensor& out, bool wrap) {
  Tensor offsets = offsets_along(op, self, dim, index, wrap);
  if (out.numel() == 0) return;
  Dims from(self.strides());
  Dims at(static_cast<size_t>(out.dim()), 0);
  if (self.dim() != 0) {
    from[static_cast<size_t>(dim)] = 0;
    at[static_cast<size_t>(dim)] = 1;
  } else {
    from.resize(static_cast<size_t>(out.dim()), 0);
    if (out.dim() != 0) at[0] = 1;
  }
  StridedLoop<3> loop(out.sizes());
  loop.operand(0, out.data_ptr(), out.strides(), out.itemsize());
  loop.operand(1, self.data_ptr(), from, out.itemsize());
  loop.operand(2, offsets.data_ptr(), at, sizeof(int64_t));
  loop.plan();
  gather_elements(loop, out.itemsize());
}

}  // namespace lamella::native
