// Plans and launches scans: Note [Scans of rows and of columns] in kernels/scan.h.
#include <algorithm>

#include "lamella/cuda/line_launch.h"

#include "lamella/cuda/kernels/scan.h"

namespace lamella::cuda {
namespace {

// False: there are too many dimensions.
bool launch_scan(ScanParameters& p, const char* kernel, bool fraction, bool in_order,
                 const TensorBase& in, int64_t dim, const TensorBase& out,
                 const TensorBase& indices) {
  p.length = p.lines = 1;
  StridedDims lines;
  bool columns = false;
  for (int64_t d = in.dim() - 1; d >= 0; --d) {
    const int64_t strides[] = {stride_of(in, d), stride_of(out, d), stride_of(indices, d)};
    if (d == dim) {
      p.length = in.size(d);
      p.in_step = strides[0];
      p.out_step = strides[1];
      p.index_step = strides[2];
      continue;
    }
    p.lines *= in.size(d);
    columns |= in.size(d) != 1 && in.stride(d) < in.stride(dim);
    lines.add(in.size(d), strides[0], strides[1], strides[2]);
  }
  lines.join();
  if (lines.count > kLineDims) return false;
  lines.store(&p.dims, p.in_strides, p.out_strides, p.index_strides);
  p.in = address_of(in);
  p.out = address_of(out);
  p.indices = address_of(indices);
  Shape shape;
  constexpr int64_t kManyLines = 4096, kShort = 32;
  p.by_thread = in_order || p.length <= kShort || (columns && p.lines >= kManyLines) ? 1 : 0;
  const int64_t each = p.by_thread != 0 ? kScanThreads : 1;
  shape.grid[0] = static_cast<unsigned>(std::min<int64_t>((p.lines + each - 1) / each, 0x7fffffff));
  shape.block[0] = kScanThreads;
  return launch_lines(in, kernel, fraction ? "f64" : "i64", &p, shape);
}

}  // namespace

bool scan(int kind, const TensorBase& in, int64_t dim, const TensorBase& out) {
  ScanParameters p{};
  const int in_kind = line_kind(in.scalar_type()), out_kind = line_kind(out.scalar_type());
  if (in_kind < 0 || out_kind < 0) return false;
  const bool fraction = out_kind >= kF32;
  // Conversions that lose digits first are the CPU's.
  if (!fraction && in_kind >= kF32) return false;
  if (fraction && (in_kind == kI32 || in_kind == kI64)) return false;
  if (in_kind == kF64 && out_kind != kF64) return false;
  p.in_kind = static_cast<Kind>(in_kind);
  p.out_kind = static_cast<Kind>(out_kind);
  p.mode = kind;
  // In another order, products of float64 between others may leave the range of numbers.
  const bool in_order = out_kind == kF64 && kind == kScanProduct;
  return launch_scan(p, "scan_running", fraction, in_order, in, dim, out, TensorBase());
}

bool cum_extreme(bool largest, const TensorBase& in, int64_t dim, const TensorBase& values,
                 const TensorBase& indices) {
  ScanParameters p{};
  const int kind = line_kind(in.scalar_type());
  if (kind < 0) return false;
  p.in_kind = p.out_kind = static_cast<Kind>(kind);
  p.mode = largest ? 1 : 0;
  return launch_scan(p, "scan_extreme", kind >= kF32, false, in, dim, values, indices);
}

}  // namespace lamella::cuda
