// Running sums and products.
#include "lamella/kernels/cpu/scan.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>

#include "lamella/core/interrupt.h"
#include "lamella/kernels/cpu/convert.h"
#include "lamella/kernels/parallel.h"

namespace lamella::native {
namespace {

constexpr int64_t kBlock = 512;

// Folds n contiguous elements in place, on from *state.
using ScanFn = void (*)(void* data, int64_t n, void* state);
template <class T, class Acc, bool product>
void scan_run(void* data, int64_t n, void* state) {
  auto* x = static_cast<T*>(data);
  Acc acc = *static_cast<Acc*>(state);
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_integral_v<T>) {
      auto a = static_cast<uint64_t>(acc), b = static_cast<uint64_t>(x[i]);
      acc = static_cast<Acc>(product ? a * b : a + b);
    } else {
      acc = product ? acc * Acc(x[i]) : acc + Acc(x[i]);
    }
    x[i] = static_cast<T>(acc);
  }
  *static_cast<Acc*>(state) = acc;
}
// log(exp(a) + exp(b)) with the larger real part taken out, which is b's of equal ones and decides
// the branch of a complex logarithm; infinities stay.
inline double log_add(double a, double b) {
  double most = std::max(a, b), least = std::min(a, b);
  if (a != a || b != b) return a + b;
  return std::isinf(most) ? most : most + std::log1p(std::exp(least - most));
}
inline complex<double> log_add(complex<double> a, complex<double> b) {
  std::complex<double> x(a.real(), a.imag()), y(b.real(), b.imag());
  if (x.real() <= y.real()) std::swap(x, y);
  if (std::isinf(x.real()) && x.real() < 0) return {y.real(), y.imag()};
  std::complex<double> sum = x + std::log(1.0 + std::exp(y - x));
  return {sum.real(), sum.imag()};
}
template <class T, class Acc>
void log_sum_run(void* data, int64_t n, void* state) {
  auto* x = static_cast<T*>(data);
  Acc acc = *static_cast<Acc*>(state);
  for (int64_t i = 0; i < n; ++i) x[i] = static_cast<T>(acc = log_add(acc, Acc(x[i])));
  *static_cast<Acc*>(state) = acc;
}
template <class T, class Acc>
ScanFn pick(Scan kind, void* state) {
  if constexpr (!std::is_integral_v<T>) {
    if (kind == Scan::kLogSumExp) {
      *static_cast<Acc*>(state) = Acc(-std::numeric_limits<double>::infinity());
      return &log_sum_run<T, Acc>;
    }
  }
  *static_cast<Acc*>(state) = kind == Scan::kProduct ? Acc(1) : Acc(0);
  return kind == Scan::kProduct ? &scan_run<T, Acc, true> : &scan_run<T, Acc, false>;
}
ScanFn pick(Scan kind, ScalarType type, void* state) {
  switch (type) {
    case kLong:
      return pick<int64_t, int64_t>(kind, state);
    case kFloat:
      return pick<float, double>(kind, state);
    case kDouble:
      return pick<double, double>(kind, state);
    case kComplexFloat:
      return pick<complex<float>, complex<double>>(kind, state);
    default:
      return pick<complex<double>, complex<double>>(kind, state);
  }
}

}  // namespace

void scan(Scan kind, const TensorBase& in, int64_t dim, const TensorBase& out) {
  const char* op = kind == Scan::kSum       ? "cumsum"
                   : kind == Scan::kProduct ? "cumprod"
                                            : "logcumsumexp";
  LAMELLA_CHECK_NOT_IMPLEMENTED(loop_index(in.dtype()) >= 0 && loop_index(out.dtype()) >= 0, op,
                                ": expected a dtype that it has a kernel for, got ", in.dtype());
  if (out.numel() == 0) return;
  ScalarType type = is_integral(out.dtype(), true) ? kLong : loop_type(out.dtype());
  auto in_bytes = static_cast<int64_t>(in.itemsize());
  auto out_bytes = static_cast<int64_t>(out.itemsize());
  auto bytes = static_cast<int64_t>(element_size(type));
  ConvertFn load = in.dtype() == type ? nullptr : get_convert(in.dtype(), type);
  ConvertFn store = out.dtype() == type ? nullptr : get_convert(type, out.dtype());
  int64_t ndim = in.dim();
  int64_t length = ndim == 0 ? 1 : in.size(dim);
  int64_t in_stride = ndim == 0 ? 0 : in.stride(dim) * in_bytes;
  int64_t out_stride = ndim == 0 ? 0 : out.stride(dim) * out_bytes;
  int64_t lines = out.numel() / length;
  int64_t grain = std::max<int64_t>(1, kGrainSize / length);
  parallel_for(0, lines, grain, [&](int64_t begin, int64_t end) {
    alignas(64) char raw[kBlock * 16], data[kBlock * 16];
    alignas(16) char state[16];
    for (int64_t line = begin; line < end; ++line) {
      auto* from = static_cast<const char*>(in.data_ptr());
      auto* to = static_cast<char*>(out.data_ptr());
      int64_t rest = line;
      for (int64_t d = ndim - 1; d >= 0; --d) {
        if (d == dim) continue;
        int64_t at = rest % in.size(d);
        rest /= in.size(d);
        from += at * in.stride(d) * in_bytes;
        to += at * out.stride(d) * out_bytes;
      }
      ScanFn run = pick(kind, type, state);
      for (int64_t i = 0; i < length; i += kBlock) {
        count_steps(kBlock);
        int64_t n = std::min(kBlock, length - i);
        move_elements(from + i * in_stride, in_stride, load ? raw : data, in_bytes, n, in_bytes);
        if (load) load(raw, data, n);
        run(data, n, state);
        if (store) store(data, raw, n);
        move_elements(store ? raw : data, store ? out_bytes : bytes, to + i * out_stride,
                      out_stride, n, out_bytes);
      }
    }
  });
}

}  // namespace lamella::native
