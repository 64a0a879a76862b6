// Windows of signals, and the short-time Fourier transform, which transforms windowed pieces of a
// signal.
#include "lamella/kernels/families/families.h"

namespace aten::native {
namespace {

constexpr double kPi = 3.14159265358979323846;

struct Options {
  std::optional<ScalarType> dtype;
  std::optional<Layout> layout;
  std::optional<Device> device;
  std::optional<bool> pin_memory;
};

// Makes a window by f(points, number of steps), with points 0, 1, ... in float64. A periodic window
// is the symmetric window with one more point, without its last point.
template <class F>
Tensor window(const char* op, int64_t length, bool periodic, const Options& options, F f) {
  LAMELLA_CHECK(length >= 0, op, ": expected 'window_length' not to be negative, got ", length);
  const ScalarType type = options.dtype.value_or(lamella::get_default_dtype());
  LAMELLA_CHECK_TYPE(is_floating_point(type), op, ": expected 'dtype' to be floating point, got ",
                     type);
  if (options.layout && *options.layout != Layout::Strided) {
    throw NotImplementedError(str(op, ": expected 'layout' to be strided, got another layout"));
  }
  LAMELLA_CHECK(!options.pin_memory.value_or(false), op,
                ": expected 'pin_memory' to be False on a machine without an accelerator");
  const auto made = TensorOptions(kDouble).device(options.device.value_or(Device(DeviceType::CPU)));
  if (length <= 1) return lamella::ones({length}, made.dtype(type));
  const int64_t steps = periodic ? length : length - 1;
  return f(lamella::arange(length, made), static_cast<double>(steps)).to(type);
}

// a - b cos t + c cos 2 t.
Tensor cosines(const Tensor& points, double steps, double a, double b, double c) {
  const Tensor turn = points.mul(2 * kPi / steps);
  Tensor result = turn.cos().mul(-b).add(a);
  if (c != 0) result = result.add(turn.mul(2).cos().mul(c));
  return result;
}

Tensor hamming(const char* op, int64_t length, bool periodic, double alpha, double beta,
               const Options& options) {
  return window(op, length, periodic, options, [=](const Tensor& points, double steps) {
    return cosines(points, steps, alpha, beta, 0);
  });
}
Tensor kaiser(int64_t length, bool periodic, double beta, const Options& options) {
  return window("kaiser_window", length, periodic, options,
                [=](const Tensor& points, double steps) {
                  const Tensor x = points.mul(2 / steps).sub(1);
                  const Tensor root = x.mul(x).neg().add(1).clamp_min(0).sqrt().mul(beta);
                  const Tensor top = lamella::i0(lamella::scalar_tensor(beta, points.options()));
                  return lamella::i0(root).div(top);
                });
}

}  // namespace

#define LAMELLA_OPTIONS                                                                        \
  std::optional<ScalarType> dtype, std::optional<Layout> layout, std::optional<Device> device, \
      std::optional<bool> pin_memory
#define LAMELLA_GIVEN \
  Options { dtype, layout, device, pin_memory }

Tensor bartlett_window(int64_t window_length, bool periodic, LAMELLA_OPTIONS) {
  return window("bartlett_window", window_length, periodic, LAMELLA_GIVEN,
                [](const Tensor& points, double steps) {
                  return points.mul(2 / steps).sub(1).abs().neg().add(1);
                });
}
Tensor bartlett_window(int64_t window_length, LAMELLA_OPTIONS) {
  return bartlett_window(window_length, true, dtype, layout, device, pin_memory);
}
Tensor blackman_window(int64_t window_length, bool periodic, LAMELLA_OPTIONS) {
  return window("blackman_window", window_length, periodic, LAMELLA_GIVEN,
                [](const Tensor& points, double steps) {
                  return cosines(points, steps, 0.42, 0.5, 0.08).abs();
                });
}
Tensor blackman_window(int64_t window_length, LAMELLA_OPTIONS) {
  return blackman_window(window_length, true, dtype, layout, device, pin_memory);
}
Tensor hann_window(int64_t window_length, bool periodic, LAMELLA_OPTIONS) {
  return hamming("hann_window", window_length, periodic, 0.5, 0.5, LAMELLA_GIVEN);
}
Tensor hann_window(int64_t window_length, LAMELLA_OPTIONS) {
  return hamming("hann_window", window_length, true, 0.5, 0.5, LAMELLA_GIVEN);
}
Tensor hamming_window(int64_t window_length, bool periodic, double alpha, double beta,
                      LAMELLA_OPTIONS) {
  return hamming("hamming_window", window_length, periodic, alpha, beta, LAMELLA_GIVEN);
}
Tensor hamming_window(int64_t window_length, bool periodic, double alpha, LAMELLA_OPTIONS) {
  return hamming("hamming_window", window_length, periodic, alpha, 0.46, LAMELLA_GIVEN);
}
Tensor hamming_window(int64_t window_length, bool periodic, LAMELLA_OPTIONS) {
  return hamming("hamming_window", window_length, periodic, 0.54, 0.46, LAMELLA_GIVEN);
}
Tensor hamming_window(int64_t window_length, LAMELLA_OPTIONS) {
  return hamming("hamming_window", window_length, true, 0.54, 0.46, LAMELLA_GIVEN);
}
Tensor kaiser_window(int64_t window_length, bool periodic, double beta, LAMELLA_OPTIONS) {
  return kaiser(window_length, periodic, beta, LAMELLA_GIVEN);
}
Tensor kaiser_window(int64_t window_length, bool periodic, LAMELLA_OPTIONS) {
  return kaiser(window_length, periodic, 12, LAMELLA_GIVEN);
}
Tensor kaiser_window(int64_t window_length, LAMELLA_OPTIONS) {
  return kaiser(window_length, true, 12, LAMELLA_GIVEN);
}

// ---- Short-time transforms ----

namespace {

// The window of n_fft points: ones if none is given; a shorter one is centred between zeros.
Tensor full_window(const char* op, const std::optional<Tensor>& given, int64_t win_length,
                   int64_t n_fft, const TensorOptions& options) {
  const bool has = given.has_value() && given->defined();
  LAMELLA_CHECK(win_length > 0 && win_length <= n_fft, op, ": expected 'win_length' to be in [1, ",
                n_fft, "], got ", win_length);
  LAMELLA_CHECK(!has || (given->dim() == 1 && given->size(0) == win_length), op,
                ": expected 'window' to have ", win_length, " elements, got ",
                has ? given->sizes() : IntArrayRef());
  const Tensor window = has ? *given : lamella::ones({win_length}, options);
  if (win_length == n_fft) return window;
  const int64_t before = (n_fft - win_length) / 2;
  return lamella::constant_pad_nd(window, {before, n_fft - win_length - before}, 0);
}

}  // namespace

Tensor stft(const Tensor& self, int64_t n_fft, std::optional<int64_t> hop_length,
            std::optional<int64_t> win_length, const std::optional<Tensor>& window, bool center,
            std::string_view pad_mode, bool normalized, std::optional<bool> onesided,
            std::optional<bool> return_complex, std::optional<bool> align_to_window) {
  const char* op = "stft";
  LAMELLA_CHECK_TYPE(self.is_floating_point() || self.is_complex(), op,
                     ": expected 'self' to be floating point or complex, got ", self.scalar_type());
  LAMELLA_CHECK(self.dim() == 1 || self.dim() == 2, op,
                ": expected 'self' to have 1 or 2 dimensions, got ", self.sizes());
  LAMELLA_CHECK(!(center && align_to_window.has_value()), op,
                ": expected no 'align_to_window' with 'center', got both");
  const int64_t hop = hop_length.value_or(n_fft / 4);
  LAMELLA_CHECK(n_fft > 0 && hop > 0, op,
                ": expected 'n_fft' and 'hop_length' to be positive, got ", n_fft, " and ", hop);
  const int64_t width = win_length.value_or(n_fft);
  Tensor x = self.dim() == 1 ? self.unsqueeze(0) : self;
  if (center) {
    x = lamella::pad(x.unsqueeze(1), {n_fft / 2, n_fft / 2}, pad_mode, std::nullopt).squeeze(1);
  }
  const bool aligned = align_to_window.value_or(false);
  const int64_t length = x.size(-1), least = aligned ? width : n_fft;
  LAMELLA_CHECK(length >= least, op, ": expected 'n_fft' to be at most ", length,
                ", the length of the signal, got ", n_fft);
  if (aligned) {
    const int64_t before = (n_fft - width) / 2;
    x = lamella::constant_pad_nd(x, {before, n_fft - width - before}, 0);
  }
  const bool has = window.has_value() && window->defined();
  const Tensor under =
      full_window(op, window, width, n_fft,
                  self.options().dtype(self.is_complex() ? to_real_type(self.scalar_type())
                                                         : self.scalar_type()));
  const bool complex = self.is_complex() || (has && window->is_complex());
  const bool complex_result = return_complex.value_or(complex);
  LAMELLA_CHECK(return_complex.has_value() || complex, op,
                ": expected 'return_complex' to be given for real 'self' and 'window', got None");
  const bool half = onesided.value_or(!complex);
  LAMELLA_CHECK(!(half && complex), op, ": expected 'onesided' to be false for complex numbers");
  Tensor pieces = x.unfold(-1, n_fft, hop).mul(under);
  const std::string_view norm = normalized ? "ortho" : "backward";
  Tensor result = half ? aten::fft_rfft(pieces, std::nullopt, -1, norm)
                       : aten::fft_fft(pieces, std::nullopt, -1, norm);
  result = result.transpose(-2, -1);
  if (self.dim() == 1) result = result.squeeze(0);
  return complex_result ? result : lamella::view_as_real(result);
}
Tensor stft(const Tensor& self, int64_t n_fft, std::optional<int64_t> hop_length,
            std::optional<int64_t> win_length, const std::optional<Tensor>& window, bool normalized,
            std::optional<bool> onesided, std::optional<bool> return_complex,
            std::optional<bool> align_to_window) {
  return aten::stft(self, n_fft, hop_length, win_length, window, false, "constant", normalized,
                    onesided, return_complex, align_to_window);
}

// Adds the overlapping pieces, and divides by the sum of the squared windows.
Tensor istft(const Tensor& self, int64_t n_fft, std::optional<int64_t> hop_length,
             std::optional<int64_t> win_length, const std::optional<Tensor>& window, bool center,
             bool normalized, std::optional<bool> onesided, std::optional<int64_t> length,
             bool return_complex) {
  const char* op = "istft";
  LAMELLA_CHECK_TYPE(self.is_complex(), op, ": expected 'self' to be complex, got ",
                     self.scalar_type());
  LAMELLA_CHECK(self.dim() == 2 || self.dim() == 3, op,
                ": expected 'self' to have 2 or 3 dimensions, got ", self.sizes());
  const int64_t hop = hop_length.value_or(n_fft / 4), width = win_length.value_or(n_fft);
  const int64_t rows = self.size(-2), pieces = self.size(-1);
  const bool half = onesided.value_or(rows != n_fft);
  LAMELLA_CHECK(n_fft > 0 && hop > 0 && hop <= width, op, ": expected 'hop_length' to be in [1, ",
                width, "], got ", hop);
  LAMELLA_CHECK(rows == (half ? n_fft / 2 + 1 : n_fft), op, ": expected ",
                half ? n_fft / 2 + 1 : n_fft, " rows for 'n_fft' ", n_fft, ", got ", rows);
  LAMELLA_CHECK(!(return_complex && half), op,
                ": expected 'onesided' to be false for a complex result");
  const Tensor under =
      full_window(op, window, width, n_fft, self.options().dtype(to_real_type(self.scalar_type())));
  const Tensor x = (self.dim() == 2 ? self.unsqueeze(0) : self).transpose(1, 2);
  const std::string_view norm = normalized ? "ortho" : "backward";
  Tensor parts;
  if (return_complex) {
    parts = aten::fft_ifft(x, std::nullopt, -1, norm);
  } else {
    LAMELLA_CHECK(!under.is_complex(), op, ": expected 'window' to be real for a real result");
    parts = aten::fft_irfft(half ? x : x.narrow(-1, 0, n_fft / 2 + 1), n_fft, -1, norm);
  }
  const int64_t whole = n_fft + hop * (pieces - 1);
  // Adds each piece at its position in the signal.
  auto joined = [&](const Tensor& t) {
    const Tensor at = lamella::arange(whole, t.options().dtype(kLong)).unfold(0, n_fft, hop);
    return lamella::zeros({t.size(0), whole}, t.options())
        .index_add(1, at.reshape({-1}), t.reshape({t.size(0), -1}));
  };
  const Tensor square = under.mul(under).unsqueeze(0).expand({pieces, n_fft}).unsqueeze(0);
  Tensor sum = joined(parts.mul(under)), weight = joined(square);
  const int64_t start = center ? n_fft / 2 : 0;
  int64_t end = whole - (center ? n_fft / 2 : 0);
  if (length.has_value()) end = start + *length;
  const int64_t there = end < whole ? end : whole;
  sum = sum.narrow(1, start, there - start);
  weight = weight.narrow(1, start, there - start);
  if (!weight.is_meta() && weight.numel() > 0 && !weight.is_complex()) {
    LAMELLA_CHECK(
        weight.abs().min().item().toDouble() > 1e-11, op,
        ": expected windows to cover every point, got a sum of their squares below 1e-11");
  }
  Tensor result = sum.div(weight);
  if (end > whole) result = lamella::constant_pad_nd(result, {0, end - whole}, 0);
  return self.dim() == 2 ? result.squeeze(0) : result;
}

}  // namespace aten::native
