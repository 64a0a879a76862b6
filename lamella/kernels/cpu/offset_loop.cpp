// Reading and writing at places given by indices.
#include "lamella/kernels/cpu/offset_loop.h"

#include <atomic>
#include <cstring>

#include "lamella/core/visit_dtype.h"
#include "lamella/kernels/cpu/movement.h"
#include "lamella/kernels/cpu/selecting.h"

namespace lamella::native {

namespace {
[[noreturn]] LAMELLA_COLD void throw_index(const char* op, int64_t index, int64_t size, bool wrap) {
  throw IndexError(
      str(op, ": expected 'index' in [", wrap ? -size : 0, ", ", size - 1, "], got ", index));
}
}  // namespace

Places places_of(const char* op, int64_t size, int64_t scale, const Tensor& index, bool wrap,
                 const Tensor& written) {
  Places places{index, 0, scale, size * (scale < 0 ? -scale : scale)};
  if (index.numel() == 0) return places;  // of any dtype, as in PyTorch
  LAMELLA_INTERNAL_ASSERT(index.scalar_type() == kLong || index.scalar_type() == kInt);
  if (index.scalar_type() == kInt) {
    places.index = index.to(kLong);
  } else if (written.defined() && may_share_memory(index, written)) {
    places.index = index.clone();
  }
  // Each index is checked once, even if it is expanded.
  Tensor once = places.index;
  for (int64_t d = 0; d < once.dim(); ++d) {
    if (once.strides()[static_cast<size_t>(d)] == 0) once = once.narrow(d, 0, 1);
  }
  if (!once.is_non_overlapping_and_dense()) once = once.contiguous();
  const auto* from = once.const_data_ptr<int64_t>();
  const int64_t least = wrap ? -size : 0;
  std::atomic<int> found{0};
  parallel_for(0, once.numel(), 4 * kGrain, [&](int64_t begin, int64_t end) {
    int part = selecting_on(kCPU).check(from + begin, end - begin, least, size);
    if (part != 0) found.fetch_or(part, std::memory_order_relaxed);
  });
  if (LAMELLA_UNLIKELY((found & Selecting::kOutside) != 0)) {
    // Finds the first bad index, in the order of the elements.
    Tensor dense = places.index.contiguous();
    from = dense.const_data_ptr<int64_t>();
    for (int64_t i = 0; i < dense.numel(); ++i) {
      if (from[i] < least || from[i] >= size) throw_index(op, from[i], size, wrap);
    }
  }
  if ((found & Selecting::kNegative) != 0) places.size = size;
  return places;
}

Places places_along(const char* op, const Tensor& target, int64_t dim, const Tensor& index,
                    bool wrap, const Tensor& written) {
  auto d = static_cast<size_t>(dim);
  int64_t size = target.dim() == 0 ? 1 : target.sizes()[d];
  int64_t stride = target.dim() == 0 ? 1 : target.strides()[d];
  return places_of(op, size, stride * target.element_size(), index, wrap, written);
}

Places sum_of(const std::vector<Places>& parts) {
  if (parts.size() == 1) return parts[0];
  Places sum{new_tensor(parts[0].index.sizes(), kLong, kCPU)};
  auto* out = sum.index.mutable_data_ptr<int64_t>();
  for (const Places& part : parts) {
    sum.reach += part.reach;
    Tensor dense = part.index.contiguous();
    const auto* from = dense.const_data_ptr<int64_t>();
    parallel_for(0, dense.numel(), kGrain, [&](int64_t begin, int64_t end) {
      selecting_on(kCPU).offsets(from + begin, end - begin, part.size, part.scale,
                                 &part == parts.data(), out + begin);
    });
  }
  return sum;
}

namespace {
// Converts an index to a byte offset from the base.
struct Offset {
  int64_t size, scale;

  int64_t operator()(int64_t index) const { return (index + (index >> 63 & size)) * scale; }
  int64_t at(const char* index) const { return (*this)(*reinterpret_cast<const int64_t*>(index)); }
};

// The distance of prefetches, in indices: memory answers in about the time of so many steps.
constexpr int64_t kAhead = 24;
// A source of at most this many bytes fits the first-level cache, so it needs no prefetch.
constexpr int64_t kNear = 32768;

// Elements of one dense source, one after the other.
template <class T, bool kPrefetch>
void gather_run(T* to, const T* from, const int64_t* index, int64_t n) {
  int64_t i = 0;
  if constexpr (kPrefetch) {
    for (; i + kAhead < n; ++i) {
      __builtin_prefetch(from + index[i + kAhead]);
      to[i] = from[index[i]];
    }
  }
#pragma GCC unroll 4
  for (; i < n; ++i) to[i] = from[index[i]];
}

template <class T>
void gather_plane(char* const* p, const int64_t* s, int64_t n0, int64_t n1, Offset offset,
                  bool far) {
  constexpr int64_t kBytes = sizeof(T);
  const int64_t* s1 = s + 3;
  if (s[2] == 0 && s[0] == kBytes && s[1] == kBytes) {  // one index for each run
    const RunCopier copy(n0 * kBytes);
    for (int64_t j = 0; j < n1; ++j) {
      const char* index = p[2] + j * s1[2];
      if (j + 4 < n1) __builtin_prefetch(p[1] + (j + 4) * s1[1] + offset.at(index + 4 * s1[2]));
      copy(p[0] + j * s1[0], p[1] + j * s1[1] + offset.at(index));
    }
    return;
  }
  const bool dense = offset.size == 0 && offset.scale == kBytes && s[0] == kBytes && s[1] == 0 &&
                     s[2] == sizeof(int64_t);
  for (int64_t j = 0; j < n1; ++j) {
    char* to = p[0] + j * s1[0];
    const char* from = p[1] + j * s1[1];
    const char* index = p[2] + j * s1[2];
    if (dense) {
      auto gather = far ? &gather_run<T, true> : &gather_run<T, false>;
      gather(reinterpret_cast<T*>(to), reinterpret_cast<const T*>(from),
             reinterpret_cast<const int64_t*>(index), n0);
      continue;
    }
    if (s[2] == 0) {
      from += offset.at(index);
      for (int64_t i = 0; i < n0; ++i) {
        *reinterpret_cast<T*>(to + i * s[0]) = *reinterpret_cast<const T*>(from + i * s[1]);
      }
      continue;
    }
    for (int64_t i = 0; i < n0; ++i) {
      *reinterpret_cast<T*>(to + i * s[0]) =
          *reinterpret_cast<const T*>(from + i * s[1] + offset.at(index + i * s[2]));
    }
  }
}
}  // namespace

void gather_elements(const StridedLoop<3>& loop, size_t bytes, const Places& places) {
  visit_bytes(bytes, [&](auto tag) {
    using T = type_of<decltype(tag)>;
    const Offset offset{places.size, places.scale};
    const bool far = places.reach > kNear;
    loop.parallel_planes([&](char* const* p, const int64_t* s, int64_t n0, int64_t n1) {
      gather_plane<T>(p, s, n0, n1, offset, far);
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
// Different indices of a dimension in which the target has a stride address different places, so
// threads may divide it, and the values for one place still arrive in order.
template <class F>
void share_out(const StridedLoop<3>& loop, F&& f) {
  int widest = -1;
  for (int d = 0; d < loop.ndim(); ++d) {
    if (loop.stride(d, 0) != 0 && (widest < 0 || loop.size(d) > loop.size(widest))) widest = d;
  }
  if (widest < 0 || loop.numel() <= kGrain) {
    loop.serial_planes(f);
    return;
  }
  // Threads must not share cache lines.
  const int64_t size = loop.size(widest), least = widest == 0 ? 32 : 1;
  const int64_t grain = kGrain / (loop.numel() / size) + least;
  parallel_for(0, size, grain, [&](int64_t begin, int64_t end) {
    StridedLoop<3> part = loop;
    part.narrow(widest, begin, end);
    part.serial_planes(f);
  });
}

// Combines a run of values with as many elements, where there is a loop for that.
struct WholeRun {
  AddRun add = nullptr;
  LoopFn loop = nullptr;

  explicit operator bool() const { return add != nullptr || loop != nullptr; }
  void operator()(char* to, const char* from, int64_t n) const {
    if (add != nullptr) return add(to, from, n);
    char* const data[3] = {to, to, const_cast<char*>(from)};
    loop(data, n, nullptr);
  }
};

template <class T, class F>
void scatter_plane(char* const* p, const int64_t* s, int64_t n0, int64_t n1, Offset offset,
                   bool far, WholeRun whole_run, const F& combine) {
  constexpr int64_t kBytes = sizeof(T);
  const bool dense = offset.size == 0 && offset.scale == kBytes && s[0] == 0 && s[1] == kBytes &&
                     s[2] == sizeof(int64_t);
  const bool runs = whole_run && s[2] == 0 && s[0] == kBytes && s[1] == kBytes;
  for (int64_t j = 0; j < n1; ++j) {
    char* to = p[0] + j * s[3];
    const char* from = p[1] + j * s[4];
    const char* index = p[2] + j * s[5];
    if (runs) {
      if (j + 4 < n1) __builtin_prefetch(to + 4 * s[3] + offset.at(index + 4 * s[5]));
      whole_run(to + offset.at(index), from, n0);
      continue;
    }
    if (dense) {
      auto* targets = reinterpret_cast<T*>(to);
      auto* values = reinterpret_cast<const T*>(from);
      auto* places = reinterpret_cast<const int64_t*>(index);
      int64_t i = 0;
      for (; far && i + kAhead < n0; ++i) {
        __builtin_prefetch(targets + places[i + kAhead], 1);
        targets[places[i]] = combine(targets[places[i]], values[i]);
      }
      for (; i < n0; ++i) targets[places[i]] = combine(targets[places[i]], values[i]);
      continue;
    }
    for (int64_t i = 0; i < n0; ++i) {
      T& place = *reinterpret_cast<T*>(to + i * s[0] + offset.at(index + i * s[2]));
      place = combine(place, *reinterpret_cast<const T*>(from + i * s[1]));
    }
  }
}

template <class T, class F>
void scatter_runs(const StridedLoop<3>& loop, const Places& places, WholeRun whole_run,
                  const F& combine) {
  const Offset offset{places.size, places.scale};
  const bool far = places.reach > kNear;
  share_out(loop, [&](char* const* p, const int64_t* s, int64_t n0, int64_t n1) {
    scatter_plane<T>(p, s, n0, n1, offset, far, whole_run, combine);
  });
}

template <class T>
void assign_runs(const StridedLoop<3>& loop, const Places& places) {
  constexpr int64_t kBytes = sizeof(T);
  const Offset offset{places.size, places.scale};
  const bool far = places.reach > kNear;
  share_out(loop, [&](char* const* p, const int64_t* s, int64_t n0, int64_t n1) {
    if (s[2] != 0 || s[0] != kBytes || (s[1] != kBytes && s[1] != 0)) {
      scatter_plane<T>(p, s, n0, n1, offset, far, {}, [](T, T value) { return value; });
      return;
    }
    // One index for each run.
    const RunCopier copy(n0 * kBytes);
    const Movement& move = movement_on(kCPU, kBytes);
    for (int64_t j = 0; j < n1; ++j) {
      const char* index = p[2] + j * s[5];
      char* to = p[0] + j * s[3] + offset.at(index);
      const char* from = p[1] + j * s[4];
      if (s[1] == 0) {
        move.fill(to, from, n0);
      } else {
        copy(to, from);
      }
    }
  });
}

template <class T>
bool is_nan(T value) {
  return value != value;
}
}  // namespace

void scatter_elements(const char* op, const StridedLoop<3>& loop, ScalarType dtype,
                      ScatterMode mode, const Places& places) {
  if (mode == ScatterMode::kAssign) {
    visit_bytes(element_size(dtype),
                [&](auto tag) { assign_runs<type_of<decltype(tag)>>(loop, places); });
    return;
  }
  if (mode == ScatterMode::kMaximum || mode == ScatterMode::kMinimum) {
    visit_real(dtype, op, [&](auto tag) {
      using T = type_of<decltype(tag)>;
      if (mode == ScatterMode::kMaximum) {
        scatter_runs<T>(loop, places, {.loop = combining_loop_on(kCPU, Combining::kMaximum, dtype)},
                        [](T a, T b) { return is_nan(a) || a >= b ? a : b; });
      } else {
        scatter_runs<T>(loop, places, {.loop = combining_loop_on(kCPU, Combining::kMinimum, dtype)},
                        [](T a, T b) { return is_nan(a) || a <= b ? a : b; });
      }
    });
    return;
  }
  visit_all(dtype, op, [&](auto tag) {
    using T = type_of<decltype(tag)>;
    if constexpr (std::is_same_v<T, bool>) {
      if (mode == ScatterMode::kMultiply) {
        scatter_runs<T>(loop, places, {}, [](T a, T b) { return a && b; });
      } else {
        scatter_runs<T>(loop, places, {}, [](T a, T b) { return a || b; });
      }
    } else if (mode == ScatterMode::kMultiply) {
      scatter_runs<T>(loop, places, {.loop = combining_loop_on(kCPU, Combining::kMultiply, dtype)},
                      [](T a, T b) { return static_cast<T>(a * b); });
    } else {
      scatter_runs<T>(loop, places, {.add = add_run_on(kCPU, dtype)},
                      [](T a, T b) { return static_cast<T>(a + b); });
    }
  });
}

void index_select_into(const char* op, const Tensor& self, int64_t dim, const Tensor& index,
                       const Tensor& out, bool wrap) {
  Places places = places_along(op, self, dim, index, wrap, out);
  if (out.numel() == 0) return;
  const int64_t step = index.dim() == 0 ? 0 : places.index.strides()[0];
  Dims from(self.strides());
  Dims at(static_cast<size_t>(out.dim()), 0);
  if (self.dim() != 0) {
    from[static_cast<size_t>(dim)] = 0;
    at[static_cast<size_t>(dim)] = step;
  } else {
    from.resize(static_cast<size_t>(out.dim()), 0);
    if (out.dim() != 0) at[0] = step;
  }
  StridedLoop<3> loop(out.sizes());
  loop.operand(0, out.data_ptr(), out.strides(), out.itemsize());
  loop.operand(1, self.data_ptr(), from, out.itemsize());
  loop.operand(2, places.index.data_ptr(), at, sizeof(int64_t));
  loop.plan();
  gather_elements(loop, out.itemsize(), places);
}

}  // namespace lamella::native
