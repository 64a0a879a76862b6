// The driver of running sums and products.
#include "lamella/kernels/cpu/scan.h"

#include <algorithm>

#include "lamella/core/interrupt.h"
#include "lamella/kernels/cpu/convert.h"
#include "lamella/kernels/device_lines.h"
#include "lamella/kernels/parallel.h"

namespace lamella::native {

namespace {

constexpr int64_t kBlock = 512;  // elements at a time, of a line or of a row

// Reads or writes runs of a tensor's elements in the type of the computation.
struct Runs {
  char* data;
  int64_t bytes, stride, inner;  // of an element; between elements of a line, and of a row
  ConvertFn convert;             // to that type, or from it
  char* at(int64_t line, int64_t dim, int64_t first_dim, const TensorBase& t) const {
    char* place = data;
    for (int64_t d = t.dim() - 1; d >= 0; --d) {
      if (d == dim || d == first_dim) continue;
      place += line % t.size(d) * t.stride(d) * bytes;
      line /= t.size(d);
    }
    return place;
  }
};
Runs runs_of(const TensorBase& t, int64_t dim, int64_t row_dim, ConvertFn convert) {
  auto bytes = static_cast<int64_t>(t.itemsize());
  auto stride = [&](int64_t d) { return d < 0 || t.dim() == 0 ? 0 : t.stride(d) * bytes; };
  return {static_cast<char*>(t.data_ptr()), bytes, stride(dim), stride(row_dim), convert};
}

struct Work {
  const ScanLoops& loops;
  Runs in, out;
  int64_t bytes;  // of an element of the type that is computed in
  char *raw, *data;

  // Scans one run of n elements, continuing from `state`.
  void step(const char* from, int64_t in_stride, char* to, int64_t out_stride, int64_t n,
            void (*fold)(const void*, void*, int64_t, void*), void* state) const {
    const char* source = from;
    if (in_stride != in.bytes) {
      move_elements(from, in_stride, raw, in.bytes, n, in.bytes);
      source = raw;
    }
    if (in.convert != nullptr) {
      in.convert(source, data, n);
      source = data;
    }
    bool direct = out.convert == nullptr && out_stride == out.bytes;
    char* result = direct ? to : data;
    fold(source, result, n, state);
    if (direct) return;
    if (out.convert != nullptr) {
      out.convert(data, raw, n);
      result = raw;
    }
    move_elements(result, out.bytes, to, out_stride, n, out.bytes);
  }
};

}  // namespace

void scan(Scan kind, const TensorBase& in, int64_t dim, const TensorBase& out) {
  const char* op = kind == Scan::kSum       ? "cumsum"
                   : kind == Scan::kProduct ? "cumprod"
                                            : "logcumsumexp";
  LAMELLA_CHECK_NOT_IMPLEMENTED(loop_index(in.dtype()) >= 0 && loop_index(out.dtype()) >= 0, op,
                                ": expected a dtype that it has a kernel for, got ", in.dtype());
  if (out.numel() == 0) return;
  if (in.device() != kCPU) {
    auto on_device = device_lines(op, in.device().type()).scan;
    return require_on_device(on_device(static_cast<int>(kind), in, dim, out), op, in);
  }
  ScalarType type = is_integral(out.dtype(), true) ? kLong : loop_type(out.dtype());
  const ScanLoops& loops = scan_on(kCPU).loops[static_cast<int>(kind)][loop_index(type)];
  int64_t length = in.dim() == 0 ? 1 : in.size(dim);
  // If neighbouring lines are closer in memory than neighbouring elements of a line, they are
  // scanned together, as rows.
  int64_t row_dim = -1;
  for (int64_t d = 0; d < in.dim(); ++d) {
    if (d == dim || in.size(d) < 2 || length < 2 || in.stride(d) >= in.stride(dim)) continue;
    if (row_dim < 0 || in.stride(d) < in.stride(row_dim)) row_dim = d;
  }
  Runs from =
      runs_of(in, dim, row_dim, in.dtype() == type ? nullptr : get_convert(in.dtype(), type));
  Runs to =
      runs_of(out, dim, row_dim, out.dtype() == type ? nullptr : get_convert(type, out.dtype()));
  auto bytes = static_cast<int64_t>(element_size(type));
  int64_t row = row_dim < 0 ? 1 : in.size(row_dim);
  int64_t in_row = (row + kBlock - 1) / kBlock;
  int64_t blocks = out.numel() / length / row * in_row;
  int64_t work = length * std::min(row, kBlock);
  parallel_for(0, blocks, std::max<int64_t>(1, kGrainSize / work), [&](int64_t begin, int64_t end) {
    alignas(64) char raw[kBlock * 16], data[kBlock * 16], state[kBlock * kScanStateBytes];
    Work step{loops, from, to, bytes, raw, data};
    for (int64_t b = begin; b < end; ++b) {
      int64_t column = b % in_row * kBlock;
      const char* source = from.at(b / in_row, dim, row_dim, in) + column * from.inner;
      char* target = to.at(b / in_row, dim, row_dim, out) + column * to.inner;
      int64_t n = std::min(kBlock, row - column);
      loops.init(state, n);
      if (row_dim >= 0) {
        for (int64_t i = 0; i < length; ++i) {
          if (i % 64 == 63) count_steps(64 * n);
          step.step(source + i * from.stride, from.inner, target + i * to.stride, to.inner, n,
                    loops.across, state);
        }
        continue;
      }
      for (int64_t i = 0; i < length; i += kBlock) {
        count_steps(kBlock);
        step.step(source + i * from.stride, from.stride, target + i * to.stride, to.stride,
                  std::min(kBlock, length - i), loops.along, state);
      }
    }
  });
}

}  // namespace lamella::native
