// The operators of lamella.fft, made of the three primitive transforms.
#include <optional>
#include <string_view>

#include "lamella/kernels/families/families.h"

namespace aten::native {
namespace {

using Norm = std::optional<std::string_view>;

// The number by which the primitives know the scaling of the result; `forward` is false for inverse
// transforms.
int64_t normalization_of(const char* op, const Norm& norm, bool forward) {
  const std::string_view word = norm.value_or("backward");
  if (word == "ortho") return 1;
  LAMELLA_CHECK(word == "backward" || word == "forward", op,
                ": expected 'norm' to be forward, backward or ortho, got '", word, "'");
  return (word == "forward") == forward ? 2 : 0;
}

Tensor floating_point(const char* op, const Tensor& self, bool complex) {
  ScalarType type = floating(self.scalar_type());
  LAMELLA_CHECK_TYPE(type != kHalf && type != kBFloat16 && type != kComplexHalf, op,
                     ": expected 'self' to have elements of at least 32 bits, got ", type);
  if (complex) type = to_complex_type(type);
  return type == self.scalar_type() ? self : self.to(type);
}
Tensor real_numbers(const char* op, const Tensor& self) {
  LAMELLA_CHECK_TYPE(!self.is_complex(), op, ": expected 'self' to be real, got ",
                     self.scalar_type());
  return floating_point(op, self, false);
}

// Truncates a dimension to `size`, or pads it with zeros.
Tensor with_size(const char* op, const Tensor& self, int64_t dim, int64_t size) {
  LAMELLA_CHECK(size >= 1, op, ": expected at least one point along dimension ", dim, ", got ",
                size);
  const int64_t now = self.size(dim);
  if (now == size) return self;
  if (now > size) return self.narrow(dim, 0, size);
  Dims pad(static_cast<size_t>(2 * (self.dim() - dim)), 0);
  pad.back() = size - now;
  return lamella::constant_pad_nd(self, pad, 0);
}

struct Part {
  Dims dims, sizes;
};
// The dimensions that `s` and `dim` select, with the number of points of each.
Part part_of(const char* op, const Tensor& self, const OptionalIntArrayRef& s,
             const OptionalIntArrayRef& dim) {
  Part part;
  if (dim.has_value()) {
    for (int64_t d : *dim) {
      const int64_t at = wrapped(op, d, self.dim());
      for (int64_t other : part.dims) {
        LAMELLA_CHECK(other != at, op, ": expected each dimension once in 'dim', got ", d,
                      " twice");
      }
      part.dims.push_back(at);
    }
  } else {
    const auto count = s.has_value() ? static_cast<int64_t>(s->size()) : self.dim();
    LAMELLA_CHECK(count <= self.dim(), op, ": expected 's' to have at most ", self.dim(),
                  " entries, got ", count);
    for (int64_t d = self.dim() - count; d < self.dim(); ++d) part.dims.push_back(d);
  }
  if (s.has_value()) {
    LAMELLA_CHECK(s->size() == part.dims.size(), op, ": expected 's' to have ", part.dims.size(),
                  " entries as 'dim' has, got ", s->size());
  }
  for (size_t i = 0; i < part.dims.size(); ++i) {
    const int64_t asked = s.has_value() ? (*s)[i] : -1;
    part.sizes.push_back(asked == -1 ? self.size(part.dims[i]) : asked);
    LAMELLA_CHECK(part.sizes.back() >= 1, op, ": expected at least one point along dimension ",
                  part.dims[i], ", got ", part.sizes.back());
  }
  return part;
}
Tensor with_sizes(const char* op, Tensor self, const Part& part) {
  for (size_t i = 0; i < part.dims.size(); ++i) {
    self = with_size(op, self, part.dims[i], part.sizes[i]);
  }
  return self;
}

Tensor complex_to_complex(const char* op, const Tensor& self, const Part& part, const Norm& norm,
                          bool forward) {
  const int64_t how = normalization_of(op, norm, forward);
  const Tensor input = with_sizes(op, floating_point(op, self, !forward), part);
  if (part.dims.empty())
    return input.is_complex() ? input.clone() : input.to(to_complex_type(input.scalar_type()));
  return input.is_complex() ? aten::_fft_c2c(input, part.dims, how, forward)
                            : aten::_fft_r2c(input, part.dims, how, false);
}
// If not `forward`, the result is conjugated.
Tensor real_to_complex(const char* op, const Tensor& self, const Part& part, const Norm& norm,
                       bool forward) {
  LAMELLA_CHECK(!part.dims.empty(), op, ": expected at least one dimension, got none");
  const int64_t how = normalization_of(op, norm, forward);
  const Tensor input = with_sizes(op, real_numbers(op, self), part);
  if (forward) return aten::_fft_r2c(input, part.dims, how, true);
  // Only the last dimension is transformed from real points. The others are inverse transforms of
  // that result.
  const Tensor half =
      aten::_fft_r2c(input, IntArrayRef(&part.dims.back(), 1), how, true).conj_physical();
  if (part.dims.size() == 1) return half;
  return aten::_fft_c2c(half, IntArrayRef(part.dims.data(), part.dims.size() - 1), how, false);
}
// `last` is the size of the result's last dimension, if it was given.
Tensor complex_to_real(const char* op, const Tensor& self, Part part,
                       const std::optional<int64_t>& last, const Norm& norm, bool forward) {
  LAMELLA_CHECK(!part.dims.empty(), op, ": expected at least one dimension, got none");
  const int64_t how = normalization_of(op, norm, forward);
  const int64_t points = last.value_or(2 * (self.size(part.dims.back()) - 1));
  LAMELLA_CHECK(points >= 1, op, ": expected at least one point along dimension ", part.dims.back(),
                ", got ", points);
  part.sizes.back() = points / 2 + 1;
  Tensor input = with_sizes(op, floating_point(op, self, true), part);
  if (!forward) return aten::_fft_c2r(input, part.dims, how, points);
  if (part.dims.size() > 1) {
    input = aten::_fft_c2c(input, IntArrayRef(part.dims.data(), part.dims.size() - 1), how, true);
  }
  return aten::_fft_c2r(input.conj_physical(), IntArrayRef(&part.dims.back(), 1), how, points);
}

std::optional<int64_t> last_of(const OptionalIntArrayRef& s) {
  if (!s.has_value() || s->empty() || s->back() == -1) return std::nullopt;
  return s->back();
}
Part one_part(const char* op, const Tensor& self, const std::optional<int64_t>& n, int64_t dim) {
  LAMELLA_CHECK_INDEX(self.dim() > 0, op,
                      ": expected 'self' to have at least 1 dimension, got a tensor with 0");
  Part part{{wrapped(op, dim, self.dim())}, {}};
  part.sizes.push_back(n.value_or(self.size(part.dims[0])));
  LAMELLA_CHECK(part.sizes[0] >= 1, op, ": expected at least one point along dimension ",
                part.dims[0], ", got ", part.sizes[0]);
  return part;
}

}  // namespace

#define LAMELLA_FFT1(name, call) \
  Tensor name(const Tensor& self, std::optional<int64_t> n, int64_t dim, Norm norm) { return call; }
LAMELLA_FFT1(fft_fft,
             complex_to_complex("fft_fft", self, one_part("fft_fft", self, n, dim), norm, true))
LAMELLA_FFT1(fft_ifft,
             complex_to_complex("fft_ifft", self, one_part("fft_ifft", self, n, dim), norm, false))
LAMELLA_FFT1(fft_rfft,
             real_to_complex("fft_rfft", self, one_part("fft_rfft", self, n, dim), norm, true))
LAMELLA_FFT1(fft_ihfft,
             real_to_complex("fft_ihfft", self, one_part("fft_ihfft", self, n, dim), norm, false))
LAMELLA_FFT1(fft_irfft, complex_to_real("fft_irfft", self, one_part("fft_irfft", self, n, dim), n,
                                        norm, false))
LAMELLA_FFT1(fft_hfft,
             complex_to_real("fft_hfft", self, one_part("fft_hfft", self, n, dim), n, norm, true))

#define LAMELLA_FFT(suffix, Dim)                                                            \
  Tensor fft_fft##suffix(const Tensor& self, OptionalIntArrayRef s, Dim dim, Norm norm) {   \
    const char* op = "fft_fft" #suffix;                                                     \
    return complex_to_complex(op, self, part_of(op, self, s, dim), norm, true);             \
  }                                                                                         \
  Tensor fft_ifft##suffix(const Tensor& self, OptionalIntArrayRef s, Dim dim, Norm norm) {  \
    const char* op = "fft_ifft" #suffix;                                                    \
    return complex_to_complex(op, self, part_of(op, self, s, dim), norm, false);            \
  }                                                                                         \
  Tensor fft_rfft##suffix(const Tensor& self, OptionalIntArrayRef s, Dim dim, Norm norm) {  \
    const char* op = "fft_rfft" #suffix;                                                    \
    return real_to_complex(op, self, part_of(op, self, s, dim), norm, true);                \
  }                                                                                         \
  Tensor fft_ihfft##suffix(const Tensor& self, OptionalIntArrayRef s, Dim dim, Norm norm) { \
    const char* op = "fft_ihfft" #suffix;                                                   \
    return real_to_complex(op, self, part_of(op, self, s, dim), norm, false);               \
  }                                                                                         \
  Tensor fft_irfft##suffix(const Tensor& self, OptionalIntArrayRef s, Dim dim, Norm norm) { \
    const char* op = "fft_irfft" #suffix;                                                   \
    return complex_to_real(op, self, part_of(op, self, s, dim), last_of(s), norm, false);   \
  }                                                                                         \
  Tensor fft_hfft##suffix(const Tensor& self, OptionalIntArrayRef s, Dim dim, Norm norm) {  \
    const char* op = "fft_hfft" #suffix;                                                    \
    return complex_to_real(op, self, part_of(op, self, s, dim), last_of(s), norm, true);    \
  }
LAMELLA_FFT(2, IntArrayRef)
LAMELLA_FFT(n, OptionalIntArrayRef)

Tensor fft_fftfreq(int64_t n, double d, std::optional<ScalarType> dtype,
                   std::optional<Layout> layout, std::optional<Device> device,
                   std::optional<bool> pin_memory) {
  LAMELLA_CHECK(n >= 1, "fft_fftfreq: expected 'n' to be positive, got ", n);
  const auto options = TensorOptions(dtype.value_or(lamella::get_default_dtype()))
                           .device(device.value_or(Device(DeviceType::CPU)));
  (void)layout, (void)pin_memory;
  const Tensor low = lamella::arange(0, (n + 1) / 2, options);
  const Tensor high = lamella::arange(-(n / 2), 0, options);
  return lamella::cat({low, high}).mul(1 / (static_cast<double>(n) * d));
}
Tensor fft_rfftfreq(int64_t n, double d, std::optional<ScalarType> dtype,
                    std::optional<Layout> layout, std::optional<Device> device,
                    std::optional<bool> pin_memory) {
  LAMELLA_CHECK(n >= 1, "fft_rfftfreq: expected 'n' to be positive, got ", n);
  const auto options = TensorOptions(dtype.value_or(lamella::get_default_dtype()))
                           .device(device.value_or(Device(DeviceType::CPU)));
  (void)layout, (void)pin_memory;
  return lamella::arange(0, n / 2 + 1, options).mul(1 / (static_cast<double>(n) * d));
}

namespace {
Tensor shifted(const char* op, const Tensor& self, const OptionalIntArrayRef& dim, bool back) {
  Dims dims, shifts;
  if (dim.has_value()) {
    for (int64_t d : *dim) dims.push_back(wrapped(op, d, self.dim()));
  } else {
    for (int64_t d = 0; d < self.dim(); ++d) dims.push_back(d);
  }
  for (int64_t d : dims) shifts.push_back(back ? (self.size(d) + 1) / 2 : self.size(d) / 2);
  return dims.empty() ? self.clone() : lamella::roll(self, shifts, dims);
}
}  // namespace

Tensor fft_fftshift(const Tensor& self, OptionalIntArrayRef dim) {
  return shifted("fft_fftshift", self, dim, false);
}
Tensor fft_ifftshift(const Tensor& self, OptionalIntArrayRef dim) {
  return shifted("fft_ifftshift", self, dim, true);
}

}  // namespace aten::native
