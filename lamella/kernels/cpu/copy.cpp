// copy_: between any shapes, strides and dtypes on the CPU, and to other devices through
// _copy_from.
#include <cstring>

#include "lamella/core/byte_span.h"
#include "lamella/core/visit_dtype.h"
#include "lamella/kernels/cpu/convert.h"
#include "lamella/kernels/cpu/copy.h"
#include "lamella/kernels/cpu/movement.h"
#include "lamella/kernels/native.h"
#include "lamella/kernels/strided_loop.h"

namespace lamella::native {

namespace {

constexpr int64_t kCopyGrain = 65536;  // elements

// Merges elements that are adjacent in both operands into larger ones if their addresses allow it.
// Returns the bytes of the merged elements.
int64_t widen(StridedLoop<2>& loop, int64_t bytes) {
  while (loop.ndim() > 1 && loop.stride(0, 0) == bytes && loop.stride(0, 1) == bytes) {
    const int64_t together = loop.size(0) * bytes;
    if (together > 16 || (together & (together - 1)) != 0) break;
    int64_t places = 0;
    for (int i = 0; i < 2; ++i) {
      places |= static_cast<int64_t>(reinterpret_cast<intptr_t>(loop.data(i)));
      for (int d = 1; d < loop.ndim(); ++d) places |= loop.stride(d, i);
    }
    if ((places & (together - 1)) != 0) break;
    loop.drop_inner();
    bytes = together;
  }
  return bytes;
}

// Dimension 0 is contiguous in dst, dimension 1 in src. Bands of whole lines of src go to threads.
void copy_transposed(const StridedLoop<2>& loop, int64_t bytes, const Movement& move) {
  const int64_t columns = loop.size(0), rows = loop.size(1), line = 256 / bytes;
  const int64_t outer = loop.numel() / (columns * rows);
  const int64_t band = (kCopyGrain / columns + line) / line * line;
  const int64_t bands = (rows + band - 1) / band;
  const int64_t each = columns * (band < rows ? band : rows);
  parallel_for(0, outer * bands, kCopyGrain / each + 1, [&](int64_t begin, int64_t end) {
    for (int64_t job = begin; job < end; ++job) {
      const int64_t first = job % bands * band;
      Plane p[2];
      for (int i = 0; i < 2; ++i) {
        p[i] = {loop.data(i) + first * loop.stride(1, i), {loop.stride(0, i), loop.stride(1, i)}};
        int64_t rest = job / bands;
        for (int d = 2; d < loop.ndim(); ++d) {
          p[i].data += rest % loop.size(d) * loop.stride(d, i);
          rest /= loop.size(d);
        }
      }
      move.plane(p[0], p[1], columns, rows - first < band ? rows - first : band, false);
    }
  });
}

void copy_same_type(StridedLoop<2>& loop, int64_t bytes) {
  const bool stream = loop.numel() * bytes >= kStreamBytes;
  bytes = widen(loop, bytes);
  const Movement& move = movement_on(kCPU, bytes);
  if (loop.stride(0, 0) == bytes && loop.stride(0, 1) != bytes) {
    for (int d = 1; d < loop.ndim(); ++d) {
      if (loop.stride(d, 1) != bytes) continue;
      loop.bring(d, 1);
      return copy_transposed(loop, bytes, move);
    }
  }
  loop.parallel_planes(
      [&](char* const* p, const int64_t* s, int64_t n0, int64_t n1) {
        move.plane({p[0], {s[0], s[2]}}, {p[1], {s[1], s[3]}}, n0, n1, stream);
      },
      kCopyGrain);
}

// ---- Types without direct conversions: float8 and complex32 are converted by way of another. ----

struct Bridge {
  ScalarType core;
  ConvertFn decode, encode;  // null for a type with direct conversions
};
template <class From, class To>
void convert_each(const void* src, void* dst, int64_t n) {
  auto* a = static_cast<const From*>(src);
  auto* b = static_cast<To*>(dst);
  for (int64_t i = 0; i < n; ++i) b[i] = static_cast<To>(a[i]);
}
Bridge bridge_of(ScalarType type) {
  switch (type) {
#define LAMELLA_SCALAR_TYPE(T, name, ...)                                                         \
  case ScalarType::name:                                                                          \
    if constexpr (is_float8(ScalarType::name)) {                                                  \
      return {kFloat, &convert_each<T, float>, &convert_each<float, T>};                          \
    } else if constexpr (ScalarType::name == kComplexHalf) {                                      \
      return {kComplexFloat, &convert_each<T, complex<float>>, &convert_each<complex<float>, T>}; \
    } else {                                                                                      \
      break;                                                                                      \
    }
#include "lamella/core/scalar_type.def"
    default:
      break;
  }
  return {type, nullptr, nullptr};
}

// Converts contiguous runs from one dtype to another.
class Converter {
 public:
  Converter(ScalarType from, ScalarType to)
      : in_(bridge_of(from)),
        out_(bridge_of(to)),
        middle_(in_.core == out_.core ? nullptr : get_convert(in_.core, out_.core)),
        from_bytes_(static_cast<int64_t>(element_size(from))),
        to_bytes_(static_cast<int64_t>(element_size(to))) {}

  void operator()(const void* from, void* to, int64_t n) const {
    if (in_.decode == nullptr && out_.encode == nullptr) return middle_(from, to, n);
    constexpr int64_t kBlock = 256;
    alignas(16) char decoded[kBlock * 16];
    alignas(16) char converted[kBlock * 16];
    for (int64_t i = 0; i < n; i += kBlock) {
      int64_t m = n - i < kBlock ? n - i : kBlock;
      const void* at = static_cast<const char*>(from) + i * from_bytes_;
      void* target = static_cast<char*>(to) + i * to_bytes_;
      if (in_.decode != nullptr) {
        void* end = middle_ == nullptr && out_.encode == nullptr ? target : decoded;
        in_.decode(at, end, m);
        at = end;
      }
      if (middle_ != nullptr) {
        void* end = out_.encode == nullptr ? target : converted;
        middle_(at, end, m);
        at = end;
      }
      if (out_.encode != nullptr) out_.encode(at, target, m);
    }
  }

 private:
  Bridge in_, out_;
  ConvertFn middle_;  // null where the core types are the same
  int64_t from_bytes_, to_bytes_;
};

void copy_converting(StridedLoop<2>& loop, ScalarType dst, ScalarType src) {
  constexpr int64_t kBlock = 512;
  auto dst_bytes = static_cast<int64_t>(element_size(dst));
  auto src_bytes = static_cast<int64_t>(element_size(src));
  const Converter convert(src, dst);
  loop.parallel([&](char* const* p, const int64_t* s, int64_t n) {
    bool dst_dense = s[0] == dst_bytes, src_dense = s[1] == src_bytes;
    if (dst_dense && src_dense) return convert(p[1], p[0], n);
    alignas(64) char in[kBlock * 16];
    alignas(64) char out[kBlock * 16];
    for (int64_t i = 0; i < n; i += kBlock) {
      int64_t m = n - i < kBlock ? n - i : kBlock;
      char* to = p[0] + i * s[0];
      const char* from = p[1] + i * s[1];
      if (!src_dense) {
        move_elements(from, s[1], in, src_bytes, m, src_bytes);
        from = in;
      }
      convert(from, dst_dense ? to : out, m);
      if (!dst_dense) move_elements(out, dst_bytes, to, s[0], m, dst_bytes);
    }
  });
}

}  // namespace

void copy_strided(const int64_t* sizes, int64_t ndim, const StridedArray& dst,
                  const StridedArray& src) {
  auto n = static_cast<size_t>(ndim);
  StridedLoop<2> loop({sizes, n});
  if (loop.numel() == 0) return;
  loop.operand(0, dst.data, {dst.strides, n}, element_size(dst.dtype));
  loop.operand(1, src.data, {src.strides, n}, element_size(src.dtype));
  loop.plan();
  if (dst.dtype == src.dtype) {
    copy_same_type(loop, static_cast<int64_t>(element_size(dst.dtype)));
  } else {
    copy_converting(loop, dst.dtype, src.dtype);
  }
}

namespace {
// True if the memory from the first to the last element of one overlaps that of the other.
bool spans_meet(const Tensor& a, const Tensor& b) {
  auto end = [](const Tensor& t) {
    int64_t last = 0;
    for (size_t d = 0; d < t.sizes().size(); ++d) last += (t.sizes()[d] - 1) * t.strides()[d];
    return static_cast<const char*>(t.const_data_ptr()) + (last + 1) * t.element_size();
  };
  return a.const_data_ptr() < end(b) && b.const_data_ptr() < end(a);
}

void copy_on_cpu(const Tensor& self, const Tensor& src) {
  bool same_layout =
      self.sizes().equals(src.sizes()) &&
      ((self.is_contiguous() && src.is_contiguous()) ||
       (self.is_non_overlapping_and_dense() && self.strides().equals(src.strides())));
  if (same_layout) {
    int64_t n = self.numel();
    ScalarType to = self.scalar_type(), from = src.scalar_type();
    auto* dst_data = static_cast<char*>(self.data_ptr());
    auto* src_data = static_cast<const char*>(src.const_data_ptr());
    auto to_bytes = static_cast<int64_t>(element_size(to));
    auto from_bytes = static_cast<int64_t>(element_size(from));
    // Overlapping memory must be moved in one piece.
    const bool alone = !self.is_alias_of(src);
    const bool stream = alone && n * to_bytes >= kStreamBytes;
    std::optional<Converter> convert;
    if (to != from) convert.emplace(from, to);
    auto part = [&](int64_t begin, int64_t end) {
      if (to == from && stream) {
        const int64_t bytes = (end - begin) * to_bytes;
        movement_on(kCPU, 1).plane({dst_data + begin * to_bytes, {1, bytes}},
                                   {const_cast<char*>(src_data) + begin * to_bytes, {1, bytes}},
                                   bytes, 1, true);
      } else if (to == from) {
        std::memmove(dst_data + begin * to_bytes, src_data + begin * to_bytes,
                     static_cast<size_t>((end - begin) * to_bytes));
      } else {
        (*convert)(src_data + begin * from_bytes, dst_data + begin * to_bytes, end - begin);
      }
    };
    if (n <= kCopyGrain || !alone) {
      part(0, n);
    } else {
      parallel_for(0, n, kCopyGrain, part);
    }
    return;
  }
  if (self.is_alias_of(src) && spans_meet(self, src)) {
    copy_on_cpu(self, src.clone(MemoryFormat::Contiguous));
    return;
  }
  Dims strides = broadcast_strides(src.sizes(), src.strides(), self.sizes());
  copy_strided(self.sizes().data(), self.dim(),
               {self.data_ptr(), self.strides().data(), self.scalar_type()},
               {src.data_ptr(), strides.data(), src.scalar_type()});
}
}  // namespace

Tensor& copy_(Tensor& self, const Tensor& src, bool non_blocking) {
  if (self.is_same(src)) return self;
  LAMELLA_CHECK(src.defined(), "copy_: expected 'src' to be defined");
  LAMELLA_CHECK(is_expandable(src.sizes(), self.sizes()),
                "copy_: expected 'src' to be broadcastable to ", self.sizes(), ", got ",
                src.sizes());
  check_no_internal_overlap("copy_", "self", self);
  if (self.numel() == 0 || self.is_meta()) return self;
  LAMELLA_CHECK_NOT_IMPLEMENTED(!src.is_meta(),
                                "copy_: expected 'src' to have data, got a tensor on meta");
  if (self.is_cpu() && src.is_cpu()) {
    copy_on_cpu(self, src);
  } else {
    lamella::_copy_from(src, self, non_blocking);
  }
  return self;
}

namespace {
void copy_span(const Tensor& to, const Tensor& from, bool non_blocking) {
  lamella::detail::check(lamella_device_copy(place_of(to.impl()), place_of(from.impl()),
                                             byte_span(from.impl()).size(), non_blocking));
}
// The tensor itself if it is on the CPU; otherwise a tensor there with the same strides, which need
// not be dense, and with its contents if `contents`.
Tensor on_cpu(const Tensor& self, bool contents) {
  if (self.is_cpu()) return self;
  Tensor image = new_strided(self.sizes(), self.strides(), self.scalar_type(), kCPU);
  if (contents) copy_span(image, self, false);
  return image;
}
}  // namespace

// Copies between devices of which at least one is a backend's, with the backend's copy of bytes;
// strides and dtypes are converted on the CPU.
Tensor _copy_from(const Tensor& self, const Tensor& dst, bool non_blocking) {
  if (dst.numel() == 0) return dst;
  Tensor target = dst;
  bool dense = dst.is_non_overlapping_and_dense();
  bool alike =
      dense && self.sizes().equals(dst.sizes()) &&
      (self.strides().equals(dst.strides()) || (self.is_contiguous() && dst.is_contiguous()));
  if (self.is_cpu() && dst.is_cpu()) {
    copy_(target, self, non_blocking);
  } else if (alike && self.scalar_type() == dst.scalar_type()) {
    copy_span(dst, self, non_blocking);
  } else if (dst.is_cpu()) {
    copy_(target, on_cpu(self, true), non_blocking);
  } else {
    // Memory between the elements is written back unchanged.
    Tensor image = on_cpu(dst, !dense);
    copy_(image, on_cpu(self, true), false);
    copy_span(dst, image, false);
  }
  return dst;
}

Scalar _local_scalar_dense(const Tensor& self) {
  LAMELLA_CHECK(self.numel() == 1, "_local_scalar_dense: expected 'self' to have one element, got ",
                self.numel());
  LAMELLA_CHECK(!self.is_meta(), "item: expected 'self' to have data, got a tensor on meta");
  return visit_stored(self.scalar_type(), "_local_scalar_dense", [&](auto tag) -> Scalar {
    using T = type_of<decltype(tag)>;
    T value = *static_cast<const Stored<T>*>(self.const_data_ptr());
    if constexpr (is_complex_type_v<T>) {
      return Scalar(
          complex<double>(static_cast<double>(value.real_), static_cast<double>(value.imag_)));
    } else {
      return Scalar(value);
    }
  });
}

}  // namespace lamella::native
