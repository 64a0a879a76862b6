// What fills the parameters of kernels along lines, and launches them.
#pragma once
#include <algorithm>
#include <cstdlib>

#include "lamella/cuda/driver.h"
#include "lamella/cuda/launch.h"
#include "lamella/kernels/device_lines.h"
#include "lamella/lamella.h"
// After the others, which have an LAMELLA_DEVICE of their own.
#include "lamella/cuda/kernels/team.h"

namespace lamella::cuda {

// ---- reduce.cpp ----
bool reduce(const char* name, ScalarType type, const TensorBase& in, uint64_t mask,
            const TensorBase& out, const void* params, const TensorBase& values);
// ---- scan.cpp ----
bool scan(int kind, const TensorBase& in, int64_t dim, const TensorBase& out);
bool cum_extreme(bool largest, const TensorBase& in, int64_t dim, const TensorBase& values,
                 const TensorBase& indices);
// ---- norm.cpp ----
void set_norms(native::DeviceLines& lines);
// ---- loss.cpp ----
void set_losses(native::DeviceLines& lines);

// The kind of a dtype; -1: kernels do not read it.
int line_kind(ScalarType dtype);
// The suffix of the type that floating-point numbers of a dtype are computed in; null: none.
inline const char* wide_suffix(ScalarType dtype) {
  const int kind = line_kind(dtype);
  return kind < kF32 ? nullptr : kind == kF64 ? "f64" : "f32";
}
inline int64_t power_of_two(int64_t least) {
  int64_t power = 1;
  while (power < least) power *= 2;
  return power;
}

// In bytes; 0 in an undefined tensor.
inline int64_t stride_of(const TensorBase& t, int64_t d) {
  return t.defined() ? t.stride(d) * static_cast<int64_t>(t.itemsize()) : 0;
}

// Dimensions of lines from the innermost in the input on, with their strides in bytes in up to
// three operands: the input, the output and others.
struct StridedDims {
  struct Dim {
    int64_t size, strides[3];
  };
  Dim all[66];
  int count = 0;
  void add(int64_t size, int64_t in, int64_t out, int64_t others) {
    if (size == 1) return;
    int at = count++;
    for (; at > 0 && std::abs(all[at - 1].strides[0]) > std::abs(in); --at) all[at] = all[at - 1];
    all[at] = {size, {in, out, others}};
  }
  // Joins those whose strides allow it.
  void join() {
    int kept = 0;
    for (int i = 1; i < count; ++i) {
      Dim& last = all[kept];
      bool joins = true;
      for (int k = 0; k < 3; ++k) joins &= all[i].strides[k] == last.strides[k] * last.size;
      if (joins) {
        last.size *= all[i].size;
      } else {
        all[++kept] = all[i];
      }
    }
    if (count != 0) count = kept + 1;
  }
  int64_t innermost() const { return count == 0 ? INT64_MAX : std::abs(all[0].strides[0]); }
  // A dimension of size 1 if there is none.
  void store(LineDims* dims, int64_t* in, int64_t* out, int64_t* others) const {
    dims->count = std::max(count, 1);
    dims->sizes[0] = 1;
    for (int d = 0; d < count; ++d) {
      dims->sizes[d] = all[d].size;
      in[d] = all[d].strides[0];
      if (out != nullptr) out[d] = all[d].strides[1];
      if (others != nullptr) others[d] = all[d].strides[2];
    }
  }
};

// The elements of a dtype in 16 bytes where kernels read so many at once; `aligned`: of addresses
// and steps in bytes, combined by |.
inline int pack_of(ScalarType dtype, uint64_t aligned) {
  const int kind = line_kind(dtype);
  if (aligned % 16 != 0) return 1;
  return kind == kF32 ? 4 : kind == kF16 || kind == kBF16 ? 8 : 1;
}

// Launches the kernel name_suffix; false: there is none.
bool launch_lines(const TensorBase& on, const char* name, const char* suffix,
                  const void* parameters, const Shape& shape);

// The block of teams for lines of `length` elements, and blocks along x for all lines; see Note
// [Teams] in kernels/team.h.
Shape team_shape(bool across, int64_t lines, int64_t length);
// The blocks that keep a device busy.
int64_t busy_blocks(const TensorBase& on, const Shape& shape);
// Blocks without teams, for each of `numel` elements.
Shape element_shape(const TensorBase& on, int64_t numel);

}  // namespace lamella::cuda
