// Cumulative sums, products and logsumexp along one dimension.
#pragma once
#include "lamella/core/tensor_base.h"
#include "lamella/kernels/cpu/loops.h"

namespace lamella::native {

enum class Scan { kSum, kProduct, kLogSumExp };
// out[..., i, ...] = the fold of in[..., 0..i, ...]. Same shapes; computed in out's dtype, float32
// in double precision.
void scan(Scan kind, const TensorBase& in, int64_t dim, const TensorBase& out);

// A state has kScanStateBytes, float64 or complex128 for fractions and int64 for integers. `in` and
// `out` are the same memory or do not overlap.
inline constexpr int64_t kScanStateBytes = 16;
struct ScanLoops {
  void (*init)(void* state, int64_t n);
  // Scans one line, starting from *state and updating it.
  void (*along)(const void* in, void* out, int64_t n, void* state);
  // Advances n scans by one step each: element j of a row with state j.
  void (*across)(const void* in, void* out, int64_t n, void* state);
};
struct ScanTable {
  ScanLoops loops[3][kLoopTypes];  // by kind; for int64, fractions and complex numbers
};
using scan_fn = const ScanTable& (*)();
LAMELLA_KERNEL(scan_fn, scan_on);

}  // namespace lamella::native
